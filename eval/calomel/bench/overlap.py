"""`calomel bench overlap`: long holes with canvases one behind the other, and with the next begun beside the last."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calomel.bench.answer import matches
from calomel.bench.decoding.records import begun
from calomel.bench.heldout import read_heldout
from calomel.bench.holes import SEVERAL_LINES, Hole, make_holes
from calomel.bench.machine import describe_run
from calomel.bench.model import OpenModel, open_model
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Table, Value, number_cell, percent_cell, points_cell, put_interval
from calomel.bench.stats import Interval, paired_difference, ratio_of_sums, wilson
from calomel.suggest.fill import FillRequest
from calomel.suggest.filler import DEFAULT_MAX_STEPS, DEFAULT_POLICY

HOLES, QUICK_HOLES = 240, 40

NOTES = (
    (
        "Held-out holes of several lines, filled greedily on the bare prompt, whose context is encoded before, untimed."
        " Overlap N: when no more than N positions of a canvas are masked, and no end is found, the next one is"
        " denoised beside it. Each row with an overlap is compared with the same canvases one behind the other."
    ),
    (
        "Begun: the share of the truth's visible characters that the beginning of the answer has right. Tokens per"
        " forward are those of answers, their ends left out."
    ),
    "Brackets are 95 % intervals: Wilson's for shares, a paired bootstrap for differences and ratios.",
)


@dataclass(frozen=True, slots=True)
class Way:
    """How canvases follow each other."""

    policy: str
    max_steps: int
    canvas: int
    overlap: int = 0

    @property
    def name(self) -> str:
        """Of its row."""
        return f"{self.policy}@{self.max_steps}, canvas {self.canvas}, overlap {self.overlap}"


# The shipped policy and a slow, careful one; each group begins with the one that the others are compared with.
GROUPS = tuple(
    tuple(Way(policy, steps, canvas, overlap) for overlap in (0, canvas // 4, canvas // 2))
    for policy, steps in ((DEFAULT_POLICY, DEFAULT_MAX_STEPS), ("threshold:0.9", 8))
    for canvas in (8, 15)
)


@dataclass(frozen=True, slots=True)
class OverlapOptions:
    """What to measure, and where the results go.

    Attributes:
        model: checkpoint folder; None is the one that ships.
        holes: None: 240, quick 40.
        heldout: held-out files; None is the committed ones.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    holes: int | None = None
    seed: int = 1
    quick: bool = False
    json: Path | None = None
    results: Path | None = None
    heldout: Path | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class _Answered:
    exact: bool
    begun: float
    tokens: int
    forwards: int
    milliseconds: float


def run_overlap(options: OverlapOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError, TokenizerError: there is no checkpoint that can be asked.
    """
    provenance, progress = describe_run(options.command), Progress()
    count = options.holes or (QUICK_HOLES if options.quick else HOLES)
    with open_model(options.model, device=options.device, threads=options.threads) as model:
        made = make_holes(read_heldout(options.heldout), model.measure, per_kind=count, seed=options.seed)
        holes = [hole for hole in made if hole.row == SEVERAL_LINES]
        answers = _answers(model, holes, progress)
        flat: dict[str, Value] = {"quick": options.quick, "weights": model.weights_hash, "seed": options.seed}
    lines = []
    for first, *others in GROUPS:
        for way in (first, *others):
            figures = _Figures.of(answers[way], answers[first])
            key = f"{way.policy}@{way.max_steps}.{way.canvas}.{way.overlap}"
            for name, interval in figures.intervals.items():
                put_interval(flat, f"{key}.{name}", interval)
            flat[f"{key}.tokens_per_forward"] = figures.pace
            lines.append((way.name, *figures.cells(compared=way is not first)))
    columns = ("canvases", "exact match", "in points", "begun, in points", "tokens per forward", "forwards", "time")
    table = Table(f"{len(holes)} holes of several lines", columns, tuple(lines))
    name = "bench overlap quick" if options.quick else "bench overlap"
    report = Report(name, {"n": len(holes), **flat}, (table,), NOTES, provenance)
    report.write(json_path=options.json, results=options.results)
    return report


def _answers(model: OpenModel, holes: Sequence[Hole], progress: Progress) -> dict[Way, list[_Answered]]:
    ways = [way for group in GROUPS for way in group]
    found: dict[Way, list[_Answered]] = {way: [] for way in ways}
    progress.phase("holes", len(holes))
    for turn, hole in enumerate(holes):
        _ask(model, hole, ways[0])  # encodes the context
        start = turn % len(ways)
        for way in (*ways[start:], *ways[:start]):
            found[way].append(_ask(model, hole, way))
        progress.step()
    return found


def _ask(model: OpenModel, hole: Hole, way: Way) -> _Answered:
    asked = FillRequest(
        prefix=hole.prefix,
        suffix=hole.suffix,
        path=hole.path,
        max_tokens=hole.max_tokens,
        policy=way.policy,
        max_steps=way.max_steps,
        canvas_lengths=(way.canvas,),
        overlap=way.overlap,
        whole_word=False,
        recall=False,
    )
    began = time.perf_counter()
    fill = model.filler.fill(asked)
    took = (time.perf_counter() - began) * 1e3
    exact, right = matches(hole, fill.text), begun(hole.answer, fill.text)
    return _Answered(exact, right, fill.completion_tokens, fill.forwards, took)


@dataclass(frozen=True, slots=True)
class _Figures:
    intervals: dict[str, Interval | None]
    pace: float | None

    @classmethod
    def of(cls, ours: Sequence[_Answered], plain: Sequence[_Answered]) -> _Figures:
        forwards = sum(one.forwards for one in ours)
        intervals = {
            "exact": wilson(sum(one.exact for one in ours), len(ours)),
            "exact_difference": paired_difference([float(one.exact) for one in ours], [float(o.exact) for o in plain]),
            "begun_difference": paired_difference([one.begun for one in ours], [one.begun for one in plain]),
            "forwards_ratio": ratio_of_sums([one.forwards for one in ours], [one.forwards for one in plain]),
            "time_ratio": ratio_of_sums([one.milliseconds for one in ours], [one.milliseconds for one in plain]),
        }
        return cls(intervals, sum(one.tokens for one in ours) / forwards if forwards else None)

    def cells(self, *, compared: bool) -> tuple[str, ...]:
        """Of a row; differences and ratios only where it is compared with another one."""
        points = [points_cell(self.intervals[name]) for name in ("exact_difference", "begun_difference")]
        ratios = [_ratio(self.intervals[name]) for name in ("forwards_ratio", "time_ratio")]
        pace = number_cell(self.pace, 2)
        if not compared:
            points, ratios = ["-", "-"], ["-", "-"]
        return (percent_cell(self.intervals["exact"]), *points, pace, *ratios)


def _ratio(found: Interval | None) -> str:
    return "-" if found is None else f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
