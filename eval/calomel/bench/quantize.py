"""`calomel bench quantize`: what weights in eight bits cost in exact matches, and save in memory and time.

The same held-out holes as `bench infill`, asked of every kind of weights in turn, so that another load on the machine
falls on all of them alike. The differences are paired: hole by hole, to the weights as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from calomel.bench.answer import matches
from calomel.bench.heldout import read_heldout
from calomel.bench.holes import KINDS, Hole, make_holes
from calomel.bench.load import LoadWatch
from calomel.bench.machine import describe_run, source_hash
from calomel.bench.model import OpenModel, open_model
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Table, Value, number_cell, percent_cell, put_interval
from calomel.bench.stats import Interval, paired_difference, ratio_of_sums, wilson
from calomel.suggest.fill import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from calomel.engine.quantize import Quantization  # imports torch

WHOLE: Final = ("float32", "bfloat16")
EIGHT_BITS: Final[tuple[Quantization, ...]] = ("int8", "fp8")
HOLES_PER_KIND, QUICK_HOLES_PER_KIND = 400, 48
# What nano was trained on; a longer one takes most of the time, and says no more about roundings.
QUICK_CONTEXT: Final = 512

NOTES = (
    (
        "Exact match as in `bench infill`, over the five held-out kinds of holes, with the default policy. The"
        " difference, in points, is to the first row, hole by hole, with a paired bootstrap's 95 % interval. In a quick"
        " run the model reads 512 tokens of context at most."
    ),
    "Weights: embeddings and head, which stay as they are, included.",
    "A step: time behind the encoding of the context over forwards; its ratio is to the first row, of the same holes.",
)
CPU_NOTES = (
    (
        "int8 on a CPU: activations are rounded to int8 by token, too, and the product is one of integers; fp8 is only"
        " emulated there, for the quality of its roundings: its time says nothing."
    ),
)


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """What to measure, on what, and where the results go.

    Attributes:
        model: checkpoint folder; None is the one that ships.
        kinds: of weights, the first one the reference, which is not rounded; empty for all that there are.
        holes_per_kind: held-out holes of each kind, all languages together; None: 400, quick 48.
        heldout: held-out files; None is the committed ones.
        command: the command line to record; None is this process's own.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    kinds: tuple[str, ...] = ()
    holes_per_kind: int | None = None
    seed: int = 1
    quick: bool = False
    heldout: Path | None = None
    json: Path | None = None
    results: Path | None = None
    command: str | None = None


@dataclass(slots=True)
class Row:
    """What one kind of weights did, hole by hole."""

    weights_mib: float
    matched: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    forwards: list[float] = field(default_factory=list)

    def ask(self, model: OpenModel, hole: Hole, context: int) -> None:
        """Answer `hole` with so many tokens of context at most."""
        found = model.fill(hole, policy=None, max_steps=None, max_tokens=hole.max_tokens, max_context=context)
        self.matched.append(float(matches(hole, found.text)))
        self.texts.append(found.text)
        self.seconds.append(found.result.denoise_seconds)
        self.forwards.append(float(found.forwards))

    @property
    def step_ms(self) -> float:
        """Milliseconds of a forward behind the context."""
        return 1e3 * sum(self.seconds) / max(1.0, sum(self.forwards))


def run_quantize(options: QuantizeOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure, or its family has no weights in eight bits.
        ValueError: there is no such kind of weights, or the first of them is rounded.
    """
    provenance = describe_run(options.command)
    cpu = options.device == "cpu"
    kinds = options.kinds or ((*WHOLE, *EIGHT_BITS) if cpu else ("bfloat16", *EIGHT_BITS))
    if kinds[0] in EIGHT_BITS or not {*kinds} <= {*WHOLE, *EIGHT_BITS}:
        raise ValueError(f"weights {', '.join(kinds)}: there are {', '.join((*WHOLE, *EIGHT_BITS))}, not rounded first")
    load, others = LoadWatch(), list[float]()
    with ExitStack() as stack:
        models = {name: stack.enter_context(_opened(options, name, kinds[0])) for name in kinds}
        weights = models[kinds[0]].weights_hash
        rows = _asked(options, models, load, others)
    state = load.summary(others)
    flat: dict[str, Value] = {
        "quick": options.quick,
        "loaded": state.loaded,
        "load_other_cores": state.others_mean,
        "load_other_cores_max": state.others_max,
        "loadavg": state.loadavg,
        "device": options.device,
        "seed": options.seed,
        "weights": weights,
        "sources": source_hash(),
        **_flat(rows),
    }
    notes = NOTES + (CPU_NOTES if cpu else ())
    report = Report("bench quantize", flat, (_table(rows),), notes, provenance)
    report.write(json_path=options.json, results=options.results)
    return report


def _opened(options: QuantizeOptions, name: str, reference: str) -> AbstractContextManager[OpenModel]:
    eight = next((kind for kind in EIGHT_BITS if kind == name), None)
    dtype = name if eight is None else reference
    return open_model(options.model, device=options.device, threads=options.threads, dtype=dtype, quantize=eight)


def _asked(
    options: QuantizeOptions, models: Mapping[str, OpenModel], load: LoadWatch, others: list[float]
) -> dict[str, Row]:
    names, progress = list(models), Progress()
    per_kind = options.holes_per_kind or (QUICK_HOLES_PER_KIND if options.quick else HOLES_PER_KIND)
    measure = models[names[0]].measure
    made = make_holes(read_heldout(options.heldout), measure, per_kind=per_kind, seed=options.seed)
    holes = [hole for hole in made if hole.row in KINDS]
    rows = {name: Row(model.weight_bytes / 2**20) for name, model in models.items()}
    progress.phase("holes", len(holes))
    for number, hole in enumerate(holes):
        first = number % len(names)  # each is the first one as often as any other
        for name in names[first:] + names[:first]:
            rows[name].ask(models[name], hole, QUICK_CONTEXT if options.quick else DEFAULT_CONTEXT)
        others.append(load.others())
        progress.step()
    return rows


def _flat(rows: Mapping[str, Row]) -> dict[str, Value]:
    flat: dict[str, Value] = {}
    reference = next(iter(rows.values()))
    for name, row in rows.items():
        put_interval(flat, f"{name}.exact_match", wilson(int(sum(row.matched)), len(row.matched)))
        put_interval(flat, f"{name}.exact_match_difference", paired_difference(row.matched, reference.matched))
        same = sum(ours == theirs for ours, theirs in zip(row.texts, reference.texts, strict=True))
        flat[f"{name}.same_answers"] = same / max(1, len(row.texts))
        flat[f"{name}.weights_mib"] = row.weights_mib
        flat[f"{name}.step_ms"] = row.step_ms
        put_interval(flat, f"{name}.step_ratio", _ratio(row, reference))
    return flat


def _ratio(row: Row, reference: Row) -> Interval | None:
    """Time of a step to the reference's: seconds by forwards, in case an answer took another number of them."""
    ours, theirs = (
        [seconds / max(1.0, forwards) for seconds, forwards in zip(one.seconds, one.forwards, strict=True)]
        for one in (row, reference)
    )
    return ratio_of_sums(ours, theirs)


def _table(rows: Mapping[str, Row]) -> Table:
    reference = next(iter(rows.values()))
    cells = []
    for name, row in rows.items():
        difference = paired_difference(row.matched, reference.matched)
        ratio = _ratio(row, reference)
        same = sum(ours == theirs for ours, theirs in zip(row.texts, reference.texts, strict=True))
        cells.append(
            (
                name,
                percent_cell(wilson(int(sum(row.matched)), len(row.matched))),
                "-" if row is reference or difference is None else _points(difference),
                f"{same / max(1, len(row.texts)):.1%}",
                number_cell(row.weights_mib, 1),
                number_cell(row.step_ms, 1),
                "-" if row is reference or ratio is None else f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]",
            )
        )
    columns = ("weights", "exact match", "difference", "same answers", "MiB", "ms a step", "of the first row's")
    return Table("Weights in eight bits", columns, tuple(cells))


def _points(found: Interval) -> str:
    return f"{100 * found.value:+.2f} [{100 * found.low:+.2f}, {100 * found.high:+.2f}]"
