"""`calomel bench recall`: held-out holes with and without recalled texts; and the fit of what these are worth."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calomel.bench.heldout import BenchDataError, HeldoutFile, read_heldout
from calomel.bench.holes import Hole, make_holes
from calomel.bench.machine import describe_run
from calomel.bench.model import OpenModel, open_model
from calomel.bench.progress import Progress
from calomel.bench.recall.fit import fit
from calomel.bench.recall.sample import right, sample
from calomel.bench.report import Report, Table, Value, number_cell, percent_cell, put_interval
from calomel.bench.stats import Interval, paired_difference, ratio_of_sums, wilson
from calomel.suggest.fill import DEFAULT_CONTEXT, FillRequest

PER_KIND, QUICK_PER_KIND = 240, 24
# Of files that a fit reads: so many characters at most, so many files of a package.
LARGEST, FILES_PER_PACKAGE = 40_000, 20

NOTES = (
    (
        "The same weights on the same held-out holes, without and with recalled texts; greedily, the way the doors ask."
        " Exact match but for white space at the end. The context is encoded before, untimed, for both."
    ),
    (
        "Recalled: something was found that stands elsewhere between the same text. Sure: so much agrees that the"
        " model's own answer was not asked for. Forwards are those of an answer behind its prefill."
    ),
    "Brackets are 95 % intervals: Wilson's for shares, a paired bootstrap for differences and ratios.",
)


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """What to measure or to fit, and where the results go.

    Attributes:
        model: checkpoint folder in our own layout; None is the one that ships.
        holes_per_kind: None: 240, quick 24.
        documents: files to cut holes from, as a corpus has them; None is the committed held-out ones.
        fit: write `recall.json` of this model into this folder, fitted on `documents`; nothing is measured then.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    holes_per_kind: int | None = None
    seed: int = 1
    quick: bool = False
    documents: Path | None = None
    fit: Path | None = None
    json: Path | None = None
    results: Path | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class _Answered:
    hole: Hole
    exact: bool
    forwards: int
    milliseconds: float


def run_recall(options: RecallOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: documents are absent or damaged, or too few to fit.
        CheckpointError, TokenizerError: the checkpoint is none of our own.
    """
    provenance = describe_run(options.command)
    progress = Progress()
    files = read_heldout(options.documents)
    with open_model(options.model, device=options.device, threads=options.threads) as model:
        if options.fit is not None:
            return _fitted(options, model, _to_fit_on(options, files), progress)
        count = options.holes_per_kind or (QUICK_PER_KIND if options.quick else PER_KIND)
        holes = make_holes(files, model.measure, per_kind=count, seed=options.seed)
        answers = _answers(model, holes, progress)
        report = Report(
            "bench recall quick" if options.quick else "bench recall",
            {"quick": options.quick, "weights": model.weights_hash, "seed": options.seed, **_flat(answers)},
            (_table(answers),),
            NOTES,
            provenance,
        )
    report.write(json_path=options.json, results=options.results)
    return report


def _answers(model: OpenModel, holes: Sequence[Hole], progress: Progress) -> list[tuple[_Answered, _Answered]]:
    progress.phase("holes", len(holes))
    found = []
    for turn, hole in enumerate(holes):
        _ask(model, hole, recalls=False)  # encodes the context
        order = (False, True) if turn % 2 else (True, False)
        pair = {recalls: _ask(model, hole, recalls=recalls) for recalls in order}
        found.append((pair[False], pair[True]))
        progress.step()
    return found


def _ask(model: OpenModel, hole: Hole, *, recalls: bool) -> _Answered:
    asked = FillRequest(
        prefix=hole.prefix, suffix=hole.suffix, path=hole.path, max_tokens=hole.max_tokens, recall=recalls
    )
    began = time.perf_counter()
    fill = model.filler.fill(asked)
    took = (time.perf_counter() - began) * 1e3
    return _Answered(hole, right(fill.text, hole), fill.forwards, took)


def _flat(answers: Sequence[tuple[_Answered, _Answered]]) -> dict[str, Value]:
    flat: dict[str, Value] = {"n": len(answers)}
    rows = dict.fromkeys(plain.hole.row for plain, _ in answers)
    for name, part in [("", answers), *((f"{row}.", _of(answers, row)) for row in rows)]:
        for index, kind in enumerate(("plain", "recalling")):
            put_interval(flat, f"{name}exact_match_{kind}", _exact(part, index))
        difference = paired_difference([float(b.exact) for _, b in part], [float(a.exact) for a, _ in part])
        put_interval(flat, f"{name}exact_match_gain", difference)
        forwards = ratio_of_sums([b.forwards for _, b in part], [a.forwards for a, _ in part])
        put_interval(flat, f"{name}forwards_ratio", forwards)
        put_interval(
            flat,
            f"{name}time_ratio",
            ratio_of_sums([b.milliseconds for _, b in part], [a.milliseconds for a, _ in part]),
        )
    return flat


def _table(answers: Sequence[tuple[_Answered, _Answered]]) -> Table:
    lines = []
    for row in dict.fromkeys(plain.hole.row for plain, _ in answers):
        part = _of(answers, row)
        forwards = ratio_of_sums([b.forwards for _, b in part], [a.forwards for a, _ in part])
        spent = ratio_of_sums([b.milliseconds for _, b in part], [a.milliseconds for a, _ in part])
        lines.append(
            (
                row,
                str(len(part)),
                percent_cell(_exact(part, 0)),
                percent_cell(_exact(part, 1)),
                number_cell(None if forwards is None else forwards.value, 2),
                number_cell(None if spent is None else spent.value, 2),
            )
        )
    columns = ("holes", "n", "exact match", "recalling", "forwards / without", "time / without")
    return Table("Holes without and with recalled texts", columns, tuple(lines))


def _of(answers: Sequence[tuple[_Answered, _Answered]], row: str) -> list[tuple[_Answered, _Answered]]:
    return [pair for pair in answers if pair[0].hole.row == row]


def _exact(part: Sequence[tuple[_Answered, _Answered]], index: int) -> Interval | None:
    return wilson(sum(pair[index].exact for pair in part), len(part))


def _to_fit_on(options: RecallOptions, files: Sequence[HeldoutFile]) -> tuple[HeldoutFile, ...]:
    if options.documents is None:
        raise BenchDataError("--fit needs --documents: the held-out files are what a fit is measured on")
    held = {file.package for file in read_heldout()}
    shared = sorted({file.package for file in files} & held)
    if shared:
        raise BenchDataError(f"{options.documents} has held-out packages ({', '.join(shared)}); leave them out")
    packages: defaultdict[str, list[HeldoutFile]] = defaultdict(list)
    for file in files:
        if len(file.text) <= LARGEST:
            packages[file.package].append(file)
    rng = random.Random(options.seed)  # noqa: S311 - seeded, not secret
    return tuple(file for found in packages.values() for file in rng.sample(found, min(len(found), FILES_PER_PACKAGE)))


def _fitted(options: RecallOptions, model: OpenModel, files: Sequence[HeldoutFile], progress: Progress) -> Report:
    holes = make_holes(files, model.measure, per_kind=options.holes_per_kind or PER_KIND, seed=options.seed)
    progress.phase("holes", len(holes))
    samples = []
    for hole in holes:
        samples.append(sample(model, hole, DEFAULT_CONTEXT))
        progress.step()
    worth = fit(samples)
    worth.write(options.fit or model.folder)
    drafts = [one for one in samples if one.draft is not None]
    flat: dict[str, Value] = {"n": len(samples), "recalled": len(drafts)}
    put_interval(flat, "own_right", wilson(sum(one.own_right for one in samples), len(samples)))
    put_interval(flat, "recalled_right", wilson(sum(one.draft_right for one in drafts), len(drafts)))
    weights = [
        (part, name, number_cell(value, 3))
        for part in ("prior", "draft", "own")
        for name, value in getattr(worth, part).items()
    ]
    return Report(
        "bench recall fit",
        flat,
        (Table("Weights", ("regression", "feature", "weight"), tuple(weights)),),
        (),
        describe_run(options.command),
    )
