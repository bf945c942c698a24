"""`calomel bench speed`: how long answers take, cold and warm, by size of context and length of answer.

Cold: nothing of the prompt is in the prefix cache. Warm: the same place one keystroke later. Both for the policy and
for the same weights left to right, taking turns going first, through the same `Filler` as every door.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from calomel.bench.holes import Cell, as_run, before_keystroke, cell_holes, size_name
from calomel.bench.model import (
    BASELINE,
    LEFT_TO_RIGHT,
    Attempt,
    BenchOptions,
    Contender,
    OpenModel,
    in_turns,
    open_model,
)
from calomel.bench.prefill import measure_prefill, measure_steps
from calomel.infer.filler import DEFAULT_MAX_STEPS, DEFAULT_POLICY
from calomel.report.heldout import HeldoutFile, Hole, read_heldout
from calomel.report.progress import Progress
from calomel.report.result import Report, Table, Value, number_cell, peak_memory, put_interval
from calomel.report.running import LoadWatch
from calomel.report.stats import Interval, percentile, percentile_interval, ratio_of_sums

CONTEXTS = (512, 2048, 8192, 32768)
ANSWERS = (8, 32, 128)
CASES = 20
# Beyond this context a case takes many seconds on a CPU, and times vary little.
LONG_CONTEXT, CASES_LONG = 8192, 5
# A quick run measures longer contexts last.
QUICK_CASES, QUICK_CONTEXT, QUICK_CASES_LONG = 8, 2048, 2
# Loading and the report fit into the rest of three minutes.
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
    (
        "`prefill_over_bare`: encoding 8,192 tokens of which nothing is cached (`cold_8k_ms`), over one forward of all"
        " layers over the same tokens without chunks and cache, by `torch.compile` where `bare_compiled`."
    ),
    (
        "`step_CONTEXT_ROWS_ms`: a forward of a canvas on one core, processor time; `_mb`: the bytes of its weights and"
        " keys, `_mmul`: its multiplications, in millions."
    ),
)


OURS = "policy"


Ask = Callable[[Hole, Contender, int], Attempt]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedOptions(BenchOptions):
    """What is measured, and on what.

    Attributes:
        contexts: context sizes in tokens; those beyond the model's positions are skipped, with a note.
        answers: lengths of answers, in tokens.
        cases: repetitions of each; None: 20 (5 beyond 8,192 tokens), quick 8 (2 beyond 2,048).
        seconds: start no case after this time; None: no bound, quick 110.
    """

    contexts: tuple[int, ...] = CONTEXTS
    answers: tuple[int, ...] = ANSWERS
    cases: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One place, asked cold and warm, by contender."""

    cell: str
    cold: dict[str, Attempt] = field(default_factory=dict)
    warm: dict[str, Attempt] = field(default_factory=dict)


def run_speed(options: SpeedOptions) -> Report:
    """Run the bench.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
        ValueError: the policy's bound on steps is not a number.
    """
    files = read_heldout(options.heldout)
    with open_model(options.model, device=options.device, threads=options.threads) as model:
        prefill = {**measure_steps(model), **measure_prefill(model, files, options.threads)}
        report = measure_speed(options, model, files, Progress())
    return replace(report, flat={**report.flat, **prefill})


def measure_speed(options: SpeedOptions, model: OpenModel, files: Sequence[HeldoutFile], progress: Progress) -> Report:
    """The bench over a model; writes nothing. Left to right is skipped where it means nothing."""
    ours = replace(Contender.parse(options.policy or "default"), name=OURS)
    contenders = (ours, BASELINE) if model.verifiable else (ours,)
    contexts = [context for context in options.contexts if context <= model.engine.config.max_position_embeddings]
    cells = [Cell(context, answer) for context in contexts for answer in options.answers]
    load = LoadWatch()
    seconds = QUICK_SECONDS if options.seconds is None and options.quick else options.seconds
    plan = plan_rounds(
        cells, lambda cell: _cases(options, cell), last=lambda cell: options.quick and cell.context > QUICK_CONTEXT
    )
    holes = {cell.name: cell_holes(cell, files, model.measure, seed=options.seed) for cell in cells}
    cases = measure_rounds(plan, holes, contenders, model.attempt, progress, seconds)
    missing = [cell.name for cell in cells if not any(case.cell == cell.name for case in cases)]
    missing += [f"{size_name(context)} context" for context in options.contexts if context not in contexts]
    flat: dict[str, Value] = {
        "quick": options.quick,
        **load.keys(),
        "weights": model.weights_hash,
        "seed": options.seed,
        "policy": ours.policy or DEFAULT_POLICY,
        "max_steps": ours.max_steps or DEFAULT_MAX_STEPS,
        "left_out": ", ".join(missing) or None,
        **peak_memory(options.device),
        **flat_timings(cases, cells, [contender.name for contender in contenders]),
    }
    notes = (*NOTES, f"Left out for lack of time or positions: {', '.join(missing)}.") if missing else NOTES
    name = "bench speed quick" if options.quick else "bench speed"
    return Report(name, flat, (timing_table(cases, cells),), notes)


def _cases(options: SpeedOptions, cell: Cell) -> int:
    if options.cases is not None:
        return options.cases
    if options.quick:
        return QUICK_CASES if cell.context <= QUICK_CONTEXT else QUICK_CASES_LONG
    return CASES_LONG if cell.context > LONG_CONTEXT else CASES


def plan_rounds(cells: Sequence[Cell], cases: Callable[[Cell], int], *, last: Callable[[Cell], bool]) -> list[Cell]:
    """Every cell as often as it has cases, in rounds over the cells; those selected by `last` come after all others."""
    most = max((cases(cell) for cell in cells), default=0)
    rounds = [cell for turn in range(most) for cell in cells if turn < cases(cell)]
    return sorted(rounds, key=last)


def measure_rounds(
    plan: Sequence[Cell],
    holes: Mapping[str, Iterator[Hole]],
    contenders: Sequence[Contender],
    ask: Ask,
    progress: Progress,
    seconds: float | None,
) -> list[Case]:
    """Runs the plan; a case that would not fit into `seconds`, judging by earlier ones, is skipped."""
    started = time.monotonic()
    progress.phase("cases", len(plan))
    took: dict[str, float] = {}
    per_token = 0.0
    cases: list[Case] = []
    for turn, cell in enumerate(plan):
        hole = next(holes[cell.name])
        # Attention makes tokens of a longer context costlier, never cheaper: for a new cell this is a lower bound.
        expected = took.get(cell.name, per_token * cell.context)
        began = time.monotonic()
        if seconds is not None and began - started + expected > seconds:
            continue
        case = Case(cell.name)
        for contender in in_turns(contenders, turn):
            # Each has its own path, and so shares no cached prompt.
            run = f"{hole.key}-{contender.name}"
            case.cold[contender.name] = ask(before_keystroke(hole, run), contender, cell.context)
            case.warm[contender.name] = ask(as_run(hole, run), contender, cell.context)
        cases.append(case)
        took[cell.name] = time.monotonic() - began
        per_token = took[cell.name] / cell.context
        progress.step()
    return cases


def flat_timings(cases: Sequence[Case], cells: Sequence[Cell], contenders: Sequence[str]) -> dict[str, Value]:
    """Every figure: over all cells, then per cell."""
    flat: dict[str, Value] = {}
    put_interval(flat, "tokens_per_forward", _tokens_per_forward(cases, OURS))
    put_interval(flat, "vs_left_to_right", _time_ratio(cases, "warm"))
    put_interval(flat, "vs_left_to_right_cold", _time_ratio(cases, "cold"))
    for cell in cells:
        mine = [case for case in cases if case.cell == cell.name]
        for name in contenders:
            tail = "" if name == OURS else f"_{name}"
            for state in ("warm", "cold"):
                times = _values(mine, name, state, "milliseconds")
                for rank in (50, 95):
                    put_interval(flat, f"{cell.name}.{state}_p{rank}_ms{tail}", percentile_interval(times, rank))
            for figure in ("kept_tokens", "prompt_tokens", "cached_tokens"):
                flat[f"{cell.name}.{figure}{tail}"] = _mean(_values(mine, name, "warm", figure))
            put_interval(flat, f"{cell.name}.tokens_per_forward{tail}", _tokens_per_forward(mine, name))
            put_interval(flat, f"{cell.name}.tokens_per_second{tail}", _tokens_per_second(mine, name))
        put_interval(flat, f"{cell.name}.vs_left_to_right", _time_ratio(mine, "warm"))
    return flat


def timing_table(cases: Sequence[Case], cells: Sequence[Cell]) -> Table:
    """One line per cell, ours next to left to right."""
    both = (OURS, LEFT_TO_RIGHT)
    rows = []
    for cell in cells:
        mine = [case for case in cases if case.cell == cell.name]
        if mine:
            kept = (number_cell(_mean(_values(mine, name, "warm", "kept_tokens")), 1) for name in both)
            rows.append(
                (
                    f"{size_name(cell.context)} context, {cell.answer} answer",
                    str(len(mine)),
                    *(_pair(mine, name, state) for state in ("warm", "cold") for name in both),
                    number_cell(_tokens_per_forward(mine, OURS)),
                    *(number_cell(_tokens_per_second(mine, name), 0) for name in both),
                    " / ".join(kept),
                    number_cell(_time_ratio(mine, "warm")),
                )
            )
    columns = (
        "tokens", "n", "warm p50 / p95 ms", "left to right", "cold p50 / p95 ms", "left to right",
        "tokens per forward", "tokens/s", "left to right", "kept, ours / left to right", "warm time / left to right",
    )  # fmt: skip
    return Table("Time by size of context and length of answer", columns, rows)


def _values(cases: Sequence[Case], contender: str, state: str, figure: str) -> list[float]:
    found: list[dict[str, Attempt]] = [getattr(case, state) for case in cases]
    return [float(getattr(each[contender], figure)) for each in found if contender in each]


def _tokens_per_forward(cases: Sequence[Case], contender: str) -> Interval | None:
    return ratio_of_sums(
        _values(cases, contender, "warm", "kept_tokens"), _values(cases, contender, "warm", "forwards")
    )


def _tokens_per_second(cases: Sequence[Case], contender: str) -> Interval | None:
    tokens = _values(cases, contender, "warm", "kept_tokens")
    return ratio_of_sums(tokens, [time / 1e3 for time in _values(cases, contender, "warm", "milliseconds")])


def _time_ratio(cases: Sequence[Case], state: str) -> Interval | None:
    sides = (_values(cases, name, state, "milliseconds") for name in (OURS, LEFT_TO_RIGHT))
    return ratio_of_sums(*sides) if all(LEFT_TO_RIGHT in case.warm for case in cases) else None


def _pair(cases: Sequence[Case], contender: str, state: str) -> str:
    times = _values(cases, contender, state, "milliseconds")
    return f"{number_cell(percentile(times, 50), 1)} / {number_cell(percentile(times, 95), 1)}"


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
