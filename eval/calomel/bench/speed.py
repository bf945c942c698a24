"""`calomel bench speed`: how long answers take, cold and warm, by size of context and length of answer.

Cold: nothing of the prompt is in the prefix cache. Warm: the same place one keystroke later. Both for the policy and
for the same weights left to right, taking turns at being first, through the same `Filler` as every door.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from calomel.bench.holes import Cell, TokenMeasure, as_run, before_keystroke, cell_holes, size_name
from calomel.bench.model import BASELINE, LEFT_TO_RIGHT, Contender, OpenModel, open_model
from calomel.report.heldout import HeldoutFile, Hole, read_heldout
from calomel.report.result import (
    Report,
    Table,
    Value,
    describe_run,
    number_cell,
    peak_memory,
    put_interval,
    source_hash,
    value_of,
)
from calomel.report.running import Journal, LoadWatch, Progress, cache_folder
from calomel.report.stats import Interval, percentile, percentile_interval, ratio_of_sums
from calomel.suggest.filler import DEFAULT_MAX_STEPS, DEFAULT_POLICY

CONTEXTS = (512, 2048, 8192, 32768)
ANSWERS = (8, 32, 128)
CASES = 20
# Beyond this context a case takes many seconds on a CPU, and their times scatter little.
LONG_CONTEXT, CASES_LONG = 8192, 5
# A quick run asks beyond this context only after everything else.
QUICK_CASES, QUICK_CONTEXT, QUICK_CASES_LONG = 8, 2048, 2
# Loading and the report fit into what is left of three minutes.
QUICK_SECONDS = 110.0

NOTES = (
    (
        "Cold: nothing of the prompt is cached. Warm: the same place one keystroke later. Times are whole calls:"
        " rendering and tokenizing the prompt, prefill, denoising, decoding."
    ),
    (
        "Answers are bounded by the stated length, and what was in the place has that length; a model may end earlier:"
        " `kept` is how many tokens it gave."
    ),
    (
        "Tokens per forward: kept answer tokens plus one end token, over all forwards after prefill, length probe and"
        " verification included. Tokens per second: the same tokens over the whole warm call."
    ),
)


# `warm_2k_p50_ms` and its like are for answers of this length.
TYPICAL_ANSWER = 32
OURS = "policy"


@dataclass(frozen=True, slots=True)
class Timing:
    """One timed call.

    Attributes:
        milliseconds: the whole call.
        kept_tokens: answer tokens plus one for an end token.
        forwards: all forwards after prefill.
        denoise_milliseconds: the part of the call after prefill, as the engine counts it.
    """

    milliseconds: float
    kept_tokens: int
    forwards: int
    prompt_tokens: int
    cached_tokens: int
    denoise_milliseconds: float


Ask = Callable[[Hole, Contender, int], Timing]


@dataclass(frozen=True, slots=True)
class SpeedOptions:
    """What to measure, on what, and where the results go; fields that `InfillOptions` has too mean the same.

    Attributes:
        contexts: sizes of context, in tokens; those beyond the model's positions are left out, and said so.
        answers: lengths of answers, in tokens.
        cases: repetitions of each; None: 20 (5 beyond 8,192 tokens), quick 8 (2 beyond 2,048).
        seconds: begin no case after this time; None: no bound, quick 110.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    policy: str | None = None
    max_steps: int | None = None
    contexts: tuple[int, ...] = CONTEXTS
    answers: tuple[int, ...] = ANSWERS
    cases: int | None = None
    seed: int = 1
    quick: bool = False
    seconds: float | None = None
    heldout: Path | None = None
    cache: Path | None = None
    resume: bool = True
    json: Path | None = None
    results: Path | None = None
    command: str | None = None


def run_speed(options: SpeedOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
        ValueError: the policy's bound on steps is no number.
    """
    progress = Progress()
    files = read_heldout(options.heldout)
    with open_model(options.model, device=options.device, threads=options.threads) as model:
        subject = Subject(
            ask=ModelClock(model),
            measure=model.measure,
            weights=model.weights_hash,
            positions=model.engine.config.max_position_embeddings,
            baseline=model.verifiable,
        )
        report = measure_speed(options, subject, files, progress)
    report.write(json_path=options.json, results=options.results)
    return report


class ModelClock:
    """Times whole calls of a model's filler."""

    def __init__(self, model: OpenModel, clock: Callable[[], float] = time.perf_counter) -> None:
        self._model = model
        self._clock = clock

    def __call__(self, hole: Hole, contender: Contender, context: int) -> Timing:
        """One call with a prompt of at most `context` tokens."""
        started = self._clock()
        fill = self._model.fill(
            hole,
            policy=contender.policy,
            max_steps=contender.max_steps,
            max_tokens=hole.max_tokens,
            max_context=context,
        )
        milliseconds = (self._clock() - started) * 1e3
        return Timing(
            milliseconds=milliseconds,
            kept_tokens=fill.completion_tokens + (fill.result.end_log_prob is not None),
            forwards=fill.forwards,
            prompt_tokens=fill.prompt_tokens,
            cached_tokens=fill.cached_tokens,
            denoise_milliseconds=fill.result.denoise_seconds * 1e3,
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """What is timed: how to ask it, its token measure, and what to say about it.

    Attributes:
        positions: the longest context plus answer, in tokens.
        baseline: whether left to right means anything for it.
    """

    ask: Ask
    measure: TokenMeasure
    weights: str
    positions: int
    baseline: bool = True


def measure_speed(
    options: SpeedOptions,
    subject: Subject,
    files: Sequence[HeldoutFile],
    progress: Progress,
) -> Report:
    """The bench over anything that can be timed; writes nothing but its journal."""
    provenance = describe_run(options.command)
    ours = replace(Contender.chosen(options.policy, options.max_steps), name=OURS)
    contenders = (ours, BASELINE) if subject.baseline else (ours,)
    contexts = [context for context in options.contexts if context <= subject.positions]
    cells = [Cell(context, answer) for context in contexts for answer in options.answers]
    load = LoadWatch()
    depends_on = {
        "weights": subject.weights,
        "sources": source_hash(),
        "seed": options.seed,
        "device": options.device,
        "threads": options.threads,
        "contenders": contenders,
        "heldout": options.heldout,
    }
    seconds = QUICK_SECONDS if options.seconds is None and options.quick else options.seconds
    plan = plan_rounds(
        cells, lambda cell: _cases(options, cell), last=lambda cell: options.quick and cell.context > QUICK_CONTEXT
    )
    holes = {cell.name: cell_holes(cell, files, subject.measure, seed=options.seed) for cell in cells}
    with Journal(options.cache or cache_folder(), "speed", depends_on, resume=options.resume) as journal:
        records = measure_rounds(plan, holes, contenders, subject.ask, journal, progress, load, seconds)
        resumed = journal.resumed
    missing = [cell.name for cell in cells if not any(record["cell"] == cell.name for record in records)]
    missing += [f"{size_name(context)} context" for context in options.contexts if context not in contexts]
    flat: dict[str, Value] = {
        "quick": options.quick,
        **load.keys([float(record["others"]) for record in records]),
        "resumed_records": resumed,
        "weights": subject.weights,
        "seed": options.seed,
        "policy": ours.policy or DEFAULT_POLICY,
        "max_steps": ours.max_steps or DEFAULT_MAX_STEPS,
        "left_out": ", ".join(missing) or None,
        **peak_memory(options.device),
        **flat_timings(records, cells, [contender.name for contender in contenders]),
    }
    notes = [*NOTES, f"Left out for lack of time or positions: {', '.join(missing)}."] if missing else list(NOTES)
    name = "speed quick" if options.quick else "speed"
    return Report(f"bench {name}", flat, (timing_table(records, cells),), tuple(notes), provenance)


def _cases(options: SpeedOptions, cell: Cell) -> int:
    if options.cases is not None:
        return options.cases
    if options.quick:
        return QUICK_CASES if cell.context <= QUICK_CONTEXT else QUICK_CASES_LONG
    return CASES_LONG if cell.context > LONG_CONTEXT else CASES


def plan_rounds(cells: Sequence[Cell], cases: Callable[[Cell], int], *, last: Callable[[Cell], bool]) -> list[Cell]:
    """Every cell as often as it has cases, in rounds over the cells; those that `last` names come behind all others."""
    most = max((cases(cell) for cell in cells), default=0)
    rounds = [cell for turn in range(most) for cell in cells if turn < cases(cell)]
    return sorted(rounds, key=last)


def measure_rounds(
    plan: Sequence[Cell],
    holes: Mapping[str, Iterator[Hole]],
    contenders: Sequence[Contender],
    ask: Ask,
    journal: Journal,
    progress: Progress,
    load: LoadWatch,
    seconds: float | None,
) -> list[dict[str, Any]]:
    """One record a case; a case that would not fit into `seconds`, by what was seen so far, is left out."""
    started = time.monotonic()
    progress.phase("cases", len(plan))
    took: dict[str, float] = {}
    per_token = 0.0
    records: list[dict[str, Any]] = []
    for turn, cell in enumerate(plan):
        hole = next(holes[cell.name])
        record = journal.get(hole.key)
        if record is None:
            # Attention makes a token of a longer context dearer, never cheaper: for a new cell this is the least.
            expected = took.get(cell.name, per_token * cell.context)
            if seconds is not None and time.monotonic() - started + expected > seconds:
                continue
            began = time.monotonic()
            record = _case(hole, cell, turn, contenders, ask)
            record["others"] = load.others()
            took[cell.name] = time.monotonic() - began
            per_token = took[cell.name] / cell.context
            journal.put(hole.key, record)
        records.append(record)
        progress.step(cell.name)
    return records


def _case(hole: Hole, cell: Cell, turn: int, contenders: Sequence[Contender], ask: Ask) -> dict[str, Any]:
    """Cold and warm for every contender, each under a path of its own and so with a cache of its own."""
    shift = turn % len(contenders)
    record: dict[str, Any] = {"cell": cell.name}
    for contender in (*contenders[shift:], *contenders[:shift]):
        run = f"{hole.key}-{contender.name}"
        cold = ask(before_keystroke(hole, run), contender, cell.context)
        warm = ask(as_run(hole, run), contender, cell.context)
        record[contender.name] = {"cold": asdict(cold), "warm": asdict(warm)}
    return record


Records = Sequence[Mapping[str, Any]]


def flat_timings(records: Records, cells: Sequence[Cell], contenders: Sequence[str]) -> dict[str, Value]:
    """Every figure: over all cells, for the typical answer by context, then cell by cell."""
    flat: dict[str, Value] = {}
    put_interval(flat, "tokens_per_forward", _tokens_per(records, OURS, "forwards"))
    put_interval(flat, "vs_left_to_right", _time_ratio(records, "warm"))
    put_interval(flat, "vs_left_to_right_cold", _time_ratio(records, "cold"))
    for cell in cells:
        mine = [record for record in records if record["cell"] == cell.name]
        typical = cell.answer == TYPICAL_ANSWER
        for name in contenders:
            tail = "" if name == OURS else f"_{name}"
            for state in ("warm", "cold"):
                times = _values(mine, name, state, "milliseconds")
                for rank in (50, 95):
                    interval = percentile_interval(times, rank)
                    put_interval(flat, f"{cell.name}.{state}_p{rank}_ms{tail}", interval)
                    if typical:
                        put_interval(flat, f"{state}_{size_name(cell.context)}_p{rank}_ms{tail}", interval)
            flat[f"{cell.name}.kept_tokens{tail}"] = _mean(_values(mine, name, "warm", "kept_tokens"))
            flat[f"{cell.name}.prompt_tokens{tail}"] = _mean(_values(mine, name, "warm", "prompt_tokens"))
            flat[f"{cell.name}.cached_tokens{tail}"] = _mean(_values(mine, name, "warm", "cached_tokens"))
            put_interval(flat, f"{cell.name}.tokens_per_forward{tail}", _tokens_per(mine, name, "forwards"))
            put_interval(flat, f"{cell.name}.tokens_per_second{tail}", _tokens_per_second(mine, name))
        put_interval(flat, f"{cell.name}.vs_left_to_right", _time_ratio(mine, "warm"))
    return flat


def timing_table(records: Records, cells: Sequence[Cell]) -> Table:
    """One line a cell, ours next to left to right."""
    rows = []
    for cell in cells:
        mine = [record for record in records if record["cell"] == cell.name]
        if not mine:
            continue
        rows.append(
            (
                f"{size_name(cell.context)} context, {cell.answer} answer",
                str(len(mine)),
                *(_pair(mine, name, state) for state in ("warm", "cold") for name in (OURS, LEFT_TO_RIGHT)),
                number_cell(value_of(_tokens_per(mine, OURS, "forwards"))),
                number_cell(value_of(_tokens_per_second(mine, OURS)), 0),
                number_cell(value_of(_tokens_per_second(mine, LEFT_TO_RIGHT)), 0),
                " / ".join(
                    number_cell(_mean(_values(mine, name, "warm", "kept_tokens")), 1) for name in (OURS, LEFT_TO_RIGHT)
                ),
                number_cell(value_of(_time_ratio(mine, "warm"))),
            )
        )
    columns = (
        "tokens",
        "n",
        "warm p50 / p95 ms",
        "left to right",
        "cold p50 / p95 ms",
        "left to right",
        "tokens per forward",
        "tokens/s",
        "left to right",
        "kept, ours / left to right",
        "warm time / left to right",
    )
    return Table("Time by size of context and length of answer", columns, tuple(rows))


def _values(records: Records, contender: str, state: str, field: str) -> list[float]:
    return [float(record[contender][state][field]) for record in records if contender in record]


def _tokens_per(records: Records, contender: str, field: str) -> Interval | None:
    return ratio_of_sums(_values(records, contender, "warm", "kept_tokens"), _values(records, contender, "warm", field))


def _tokens_per_second(records: Records, contender: str) -> Interval | None:
    tokens = _values(records, contender, "warm", "kept_tokens")
    return ratio_of_sums(tokens, [time / 1e3 for time in _values(records, contender, "warm", "milliseconds")])


def _time_ratio(records: Records, state: str) -> Interval | None:
    paired = [record for record in records if LEFT_TO_RIGHT in record]
    return ratio_of_sums(
        _values(paired, OURS, state, "milliseconds"), _values(paired, LEFT_TO_RIGHT, state, "milliseconds")
    )


def _pair(records: Records, contender: str, state: str) -> str:
    times = _values(records, contender, state, "milliseconds")
    return f"{number_cell(percentile(times, 50), 1)} / {number_cell(percentile(times, 95), 1)}"


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
