"""`calomel bench speculation`: what the engine does for what is accepted, with second steps guessed and without.

Answers have to be the same both ways, on held-out holes and in replays; what differs is what the engine did for them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from calomel.bench.answer import matches
from calomel.bench.heldout import read_heldout
from calomel.bench.holes import KINDS, Hole, make_holes
from calomel.bench.load import LoadWatch
from calomel.bench.machine import describe_run, source_hash
from calomel.bench.model import OpenModel, open_model
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Table, Value, number_cell, put_interval
from calomel.bench.stats import ratio_of_sums
from calomel.replay.logs import read_logs
from calomel.replay.opportunity import LogResult, Opportunity
from calomel.replay.options import ReplayOptions
from calomel.replay.runs import replay_logs
from calomel.replay.summary import summarize
from calomel.suggest.fill import DEFAULT_CONTEXT

HOLES_PER_KIND, QUICK_HOLES_PER_KIND = 100, 24
# Minutes of every log.
QUICK_MINUTES: Final = 12.0
QUICK_CONTEXT: Final = 512
# Seconds of every answer: with measured ones, another load on the machine would decide what is asked.
_LATENCY: Final = 0.15
WAYS: Final = ("without", "with")
_COUNTS: Final = ("opportunities", "shown", "accepted", "partly", "steps", "rows")
_FIGURES: Final = (
    "acceptance_rate",
    "characters_per_opportunity",
    "steps_per_question",
    "rows_per_question",
    "steps_per_accepted_token",
    "steps_per_accepted_character",
    "rows_per_accepted_character",
)

NOTES = (
    (
        "A step is a forward that does more than encode context: it denoises canvases, or judges texts. Rows are those"
        " of all forwards, context included."
    ),
    (
        "Without: every denoising step is a forward of its own. With: what canvases often look like behind their first"
        " step rides on it, and a second step that begins so is done."
    ),
    (
        "Holes: the held-out kinds of `bench infill`, both ways in turn. Time is the processor's, for all of an answer"
        " whose context is encoded already; its ratio has a paired bootstrap's 95 % interval."
    ),
    (
        "Replays: every answer takes 150 ms, so that both ways are asked the same. Same outcomes: the opportunities at"
        " which both showed the same, or were silent for the same reason."
    ),
)


@dataclass(frozen=True, slots=True)
class SpeculationOptions:
    """What to measure, on what, and where the results go.

    Attributes:
        logs: to be replayed; none leaves that out.
        model: checkpoint folder; None is the one that ships.
        holes_per_kind: held-out holes of each kind, all languages together; None: 100, quick 24.
        limit_minutes: of each log's time; None for all of it, or for twelve minutes in a quick run.
        heldout: held-out files; None is the committed ones.
        cache: folder of journals of interrupted replays; None for the usual one.
        command: the command line to record; None is this process's own.
    """

    logs: tuple[Path, ...] = ()
    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    holes_per_kind: int | None = None
    limit_minutes: float | None = None
    seed: int = 1
    quick: bool = False
    heldout: Path | None = None
    cache: Path | None = None
    json: Path | None = None
    results: Path | None = None
    command: str | None = None

    @property
    def minutes(self) -> float | None:
        """Of each log."""
        return QUICK_MINUTES if self.limit_minutes is None and self.quick else self.limit_minutes


@dataclass(slots=True)
class Way:
    """What one way did, hole by hole."""

    texts: list[str] = field(default_factory=list)
    matched: list[bool] = field(default_factory=list)
    forwards: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def ask(self, model: OpenModel, hole: Hole, context: int) -> None:
        """Answer `hole` with so many tokens of context at most, which are encoded before."""
        model.fill(hole, policy=None, max_steps=1, max_tokens=1, max_context=context)
        began = time.process_time()
        found = model.fill(hole, policy=None, max_steps=None, max_tokens=hole.max_tokens, max_context=context)
        self.seconds.append(time.process_time() - began)
        self.texts.append(found.text)
        self.matched.append(matches(hole, found.text))
        self.forwards.append(float(found.forwards))


def run_speculation(options: SpeculationOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
        LogError: a log cannot be read.
    """
    provenance = describe_run(options.command)
    load, others = LoadWatch(), list[float]()
    holes = _holes(options, load, others)
    replays = {way: _replayed(options, speculate=way == "with") for way in WAYS} if options.logs else {}
    state = load.summary([*others, load.others()])
    flat: dict[str, Value] = {
        "quick": options.quick,
        "loaded": state.loaded,
        "load_other_cores": state.others_mean,
        "device": options.device,
        "seed": options.seed,
        "sources": source_hash(),
        **_flat_of_holes(holes),
        **_flat_of_replays(replays),
    }
    tables = (_holes_table(flat), *((_replay_table(flat),) if replays else ()))
    report = Report("bench speculation", flat, tables, NOTES, provenance)
    report.write(json_path=options.json, results=options.results)
    return report


def _holes(options: SpeculationOptions, load: LoadWatch, others: list[float]) -> dict[str, Way]:
    from calomel.engine.foresight import Foresight  # imports torch

    per_kind = options.holes_per_kind or (QUICK_HOLES_PER_KIND if options.quick else HOLES_PER_KIND)
    progress = Progress()
    with ExitStack() as stack:
        models = {
            way: stack.enter_context(open_model(options.model, device=options.device, threads=options.threads))
            for way in WAYS
        }
        foresee = getattr(models["without"].engine, "foresee", None)
        if foresee is not None:
            foresee(Foresight(rows=0))
        made = make_holes(read_heldout(options.heldout), models["with"].measure, per_kind=per_kind, seed=options.seed)
        holes = [hole for hole in made if hole.row in KINDS]
        ways = {way: Way() for way in WAYS}
        progress.phase("holes", len(holes))
        for number, hole in enumerate(holes):
            for way in WAYS if number % 2 else WAYS[::-1]:
                ways[way].ask(models[way], hole, QUICK_CONTEXT if options.quick else DEFAULT_CONTEXT)
            others.append(load.others())
            progress.step()
    return ways


def _replayed(options: SpeculationOptions, *, speculate: bool) -> list[LogResult]:
    replay = ReplayOptions(
        model=options.model,
        device=options.device,
        threads=options.threads,
        latency=_LATENCY,
        limit_minutes=options.minutes,
        speculate=speculate,
    )
    logs = [log for path in options.logs for log in read_logs(path)]
    return replay_logs(logs, replay, folder=options.cache)


def _flat_of_holes(ways: Mapping[str, Way]) -> dict[str, Value]:
    before, after = (ways[way] for way in WAYS)
    flat: dict[str, Value] = {"holes": len(before.texts)}
    flat["holes_same_text"] = sum(one == other for one, other in zip(before.texts, after.texts, strict=True))
    for way, found in ways.items():
        flat[f"holes_exact_match_{way}"] = sum(found.matched) / max(1, len(found.matched))
        flat[f"holes_forwards_{way}"] = sum(found.forwards) / max(1, len(found.forwards))
        flat[f"holes_cpu_ms_{way}"] = 1e3 * sum(found.seconds) / max(1, len(found.seconds))
    put_interval(flat, "holes_forwards_ratio", ratio_of_sums(after.forwards, before.forwards))
    put_interval(flat, "holes_cpu_ratio", ratio_of_sums(after.seconds, before.seconds))
    return flat


def _flat_of_replays(replays: Mapping[str, Sequence[LogResult]]) -> dict[str, Value]:
    flat: dict[str, Value] = {}
    for way, results in replays.items():
        summary = summarize(results)
        flat.update({f"{name}_{way}": summary[name] for name in _COUNTS})
        for name in _FIGURES:
            flat.update({f"{name}_{way}{end}": summary[f"{name}{end}"] for end in ("", "_low", "_high")})
    if replays:
        pairs = zip(*(map(_outcome, _opportunities(replays[way])) for way in WAYS), strict=False)
        same = [one == other for one, other in pairs]
        flat["same_outcomes"] = sum(same) / max(1, len(same))
    return flat


def _opportunities(results: Sequence[LogResult]) -> list[Opportunity]:
    return [each for result in results for each in result.opportunities]


def _outcome(item: Opportunity) -> tuple[Any, ...]:
    shown = item.candidate if item.shown else None
    return item.log, item.entry, item.kind, item.silence, None if shown is None else shown.edits


def _holes_table(flat: Mapping[str, Value]) -> Table:
    named = (("exact match", "exact_match"), ("forwards an answer", "forwards"), ("processor, ms an answer", "cpu_ms"))
    rows = [(words, *(_cell(flat[f"holes_{key}_{way}"], 3) for way in WAYS)) for words, key in named]
    for words, key in (("forwards, with : without", "forwards"), ("processor, with : without", "cpu")):
        value, low, high = (_cell(flat[f"holes_{key}_ratio{end}"], 3) for end in ("", "_low", "_high"))
        rows.append((words, "", f"{value} [{low}, {high}]"))
    rows.append(("same text", "", f"{flat['holes_same_text']} of {flat['holes']}"))
    return Table("Held-out holes", ("figure", *WAYS), tuple(rows))


def _replay_table(flat: Mapping[str, Value]) -> Table:
    rows = [(name.replace("_", " "), *(_cell(flat[f"{name}_{way}"], 0) for way in WAYS)) for name in _COUNTS]
    rows += [(name.replace("_", " "), *(_cell(flat[f"{name}_{way}"], 3) for way in WAYS)) for name in _FIGURES]
    rows.append(("same outcomes", "", _cell(flat["same_outcomes"], 4)))
    return Table("Replay", ("figure", *WAYS), tuple(rows))


def _cell(value: Value, digits: int) -> str:
    return number_cell(float(value) if isinstance(value, int | float) else None, digits)
