"""`calomel bench decoding`: the same weights and the same held-out holes, decoded in many ways, in one table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from calomel.bench.decoding.asker import Asker, open_asker
from calomel.bench.decoding.records import Answered, Answers, answers, choices
from calomel.bench.decoding.variants import SHIPPED, VARIANTS
from calomel.bench.heldout import HeldoutFile, read_heldout
from calomel.bench.holes import KINDS, REST_OF_LINE, Hole, TokenMeasure, make_holes
from calomel.bench.journal import Journal, cache_folder
from calomel.bench.machine import Provenance, describe_run, source_hash
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Table, Value, number_cell, percent_cell, points_cell, put_interval
from calomel.bench.stats import Interval, paired_difference, wilson

# Three quarters of the holes are rests of lines; the other four kinds share the rest, to see what would get worse.
HOLES, QUICK_HOLES = 400, 48
QUICK_SECONDS = 120.0

NOTES = (
    (
        "Every variant differs from the shipped way in what its name says, and in nothing else; greedily, on the same"
        " holes. Differences are paired: the same hole with and without, in points."
    ),
    (
        "Begun: the share of the truth's visible characters that the beginning of the answer has right. It moves where"
        " exact matches are too few to."
    ),
    (
        "The shipped way asks from the word's beginning: the prefix ends before the word that the cursor stands in,"
        " and the answer has to begin with what was left out, so that no token is cut by the cursor. Recalled text is"
        " left out here."
    ),
    (
        "Choices ask several variants and take the answer that the causal mode thinks likelier; `if one knew` is what"
        " no choice can exceed. Their forwards are those of all, and one to read each answer."
    ),
    "Brackets are 95 % intervals: Wilson's for shares, a paired bootstrap for differences.",
)


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """What to compare on, and where the results go.

    Attributes:
        model: checkpoint folder in our own layout; None is the one that ships.
        holes: held-out holes, three quarters of them rests of lines; None: 400, quick 48.
        heldout: held-out files; None is the committed ones.
        cache: folder of the journal; None is the user's cache folder.
        command: the command line to record; None is this process's own.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    holes: int | None = None
    seed: int = 1
    quick: bool = False
    resume: bool = True
    json: Path | None = None
    results: Path | None = None
    heldout: Path | None = None
    cache: Path | None = None
    command: str | None = None


def run_decoding(options: DecodingOptions) -> Report:
    """Ask, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError, TokenizerError: there is no checkpoint of our own to ask.
    """
    with ExitStack() as stack:
        asker = stack.enter_context(open_asker(options.model, device=options.device, threads=options.threads))
        report = measure_decoding(options, asker, asker.measure, Progress(), weights=asker.weights)
    report.write(json_path=options.json, results=options.results)
    return report


def measure_decoding(
    options: DecodingOptions, asker: Asker, measure: TokenMeasure, progress: Progress, *, weights: str
) -> Report:
    """The bench over any asker; writes nothing but its journal."""
    provenance = describe_run(options.command)
    count = options.holes or (QUICK_HOLES if options.quick else HOLES)
    holes = chosen(read_heldout(options.heldout), measure, count, options.seed)
    depends_on = {
        "weights": weights,
        "sources": source_hash(),
        "device": options.device,
        "variants": [repr(variant) for variant in VARIANTS],
    }
    deadline = time.monotonic() + QUICK_SECONDS if options.quick else None
    rows: list[tuple[Hole, Answers]] = []
    progress.phase("holes", len(holes))
    with Journal(options.cache or cache_folder(), "decoding", depends_on, resume=options.resume) as journal:
        for hole in holes:
            record = journal.get(hole.key)
            if record is None:
                if deadline is not None and time.monotonic() > deadline:
                    continue
                record = {name: answered.to_json() for name, answered in answers(hole, asker).items()}
                journal.put(hole.key, record)
            found = {name: Answered.from_json(answered) for name, answered in record.items()}
            rows.append((hole, {**found, **choices(found)}))
            progress.step()
    return decoding_report(rows, options, provenance, weights)


def chosen(files: Sequence[HeldoutFile], measure: TokenMeasure, count: int, seed: int) -> list[Hole]:
    """About `count` holes, most of them rests of lines, in turns so that any beginning of the list is as mixed."""
    ends = max(1, count * 3 // 4)
    others = max(1, (count - ends) // (len(KINDS) - 1))
    made = make_holes(files, measure, per_kind=ends, seed=seed)
    kinds = {kind: [hole for hole in made if hole.row == kind] for kind in KINDS}
    parts = [kinds[REST_OF_LINE][:ends], *(kinds[kind][:others] for kind in KINDS if kind != REST_OF_LINE)]
    placed = [((at + 0.5) / len(part), part[at]) for part in parts for at in range(len(part))]
    return [hole for _, hole in sorted(placed, key=lambda entry: entry[0])]


def decoding_report(
    rows: Sequence[tuple[Hole, Answers]], options: DecodingOptions, provenance: Provenance, weights: str
) -> Report:
    """The result as one page and its keys."""
    ends = [answered for hole, answered in rows if hole.row == REST_OF_LINE]
    others = [answered for hole, answered in rows if hole.row != REST_OF_LINE]
    flat: dict[str, Value] = {
        "quick": options.quick,
        "seed": options.seed,
        "weights": weights,
        "rest_of_line_holes": len(ends),
        "other_holes": len(others),
    }
    names = list(rows[0][1]) if rows else []
    cells = []
    for name in names:
        figures = _figures(name, ends, others)
        key = _key(name)
        for figure in ("exact", "difference", "begun", "others"):
            put_interval(flat, f"{key}.{figure}", figures[figure])
        forwards = [answered[name].forwards for answered in ends]
        flat[f"{key}.forwards"] = sum(forwards) / len(forwards) if forwards else None
        shipped = name == SHIPPED.name
        cells.append((
            f"**{name}**" if shipped else name,
            percent_cell(figures["exact"]),
            "-" if shipped else points_cell(figures["difference"]),
            "-" if shipped else points_cell(figures["begun"]),
            "-" if shipped else points_cell(figures["others"]),
            number_cell(sum(forwards) / len(forwards) if forwards else None, 1),
        ))  # fmt: skip
    columns = ("decoding", "exact match", "against shipped", "begun", "exact on other kinds", "forwards")
    title = f"Rests of lines: {len(ends)} held-out holes; other kinds: {len(others)}"
    name = "bench decoding quick" if options.quick else "bench decoding"
    return Report(name, flat, (Table(title, columns, tuple(cells)),), NOTES, provenance)


def _figures(name: str, ends: Sequence[Answers], others: Sequence[Answers]) -> Mapping[str, Interval | None]:
    def right(found: Sequence[Answers], variant: str) -> list[float]:
        return [float(answered[variant].right) for answered in found]

    return {
        "exact": wilson(int(sum(right(ends, name))), len(ends)),
        "difference": paired_difference(right(ends, name), right(ends, SHIPPED.name)),
        "begun": paired_difference(
            [answered[name].began for answered in ends], [answered[SHIPPED.name].began for answered in ends]
        ),
        "others": paired_difference(right(others, name), right(others, SHIPPED.name)),
    }


def _key(name: str) -> str:
    """A row's name as a key."""
    return "".join(sign if sign.isalnum() or sign in ".+-" else "_" for sign in name.replace("'", ""))
