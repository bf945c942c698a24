"""`calomel bench speed`: how long answers take, cold and warm, by size of context and length of answer.

Cold: nothing of the prompt is in the prefix cache. Warm: the same place one keystroke later. Both for the policy and
for the same weights left to right, taking turns at being first, through the same `Filler` as every door.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from calomel.bench.answer import BASELINE, Contender
from calomel.bench.cells import Cell, cell_holes, size_name
from calomel.bench.exactness import Exactness, bf16_exactness
from calomel.bench.heldout import HeldoutFile, read_heldout
from calomel.bench.holes import Hole, TokenMeasure
from calomel.bench.journal import Journal, cache_folder
from calomel.bench.load import LoadWatch
from calomel.bench.machine import describe_run, source_hash
from calomel.bench.memory import peak_memory
from calomel.bench.model import OpenModel, open_model
from calomel.bench.neighbour import Neighbour, beside_neighbour
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Value
from calomel.bench.rounds import Ask, measure_rounds, plan_rounds
from calomel.bench.timings import OURS, Timing, flat_timings, timing_table
from calomel.suggest.filler import DEFAULT_MAX_STEPS, DEFAULT_POLICY

CONTEXTS = (512, 2048, 8192, 32768)
ANSWERS = (8, 32, 128)
CASES = 20
# Beyond this context a case takes many seconds on a CPU, and their times scatter little.
LONG_CONTEXT, CASES_LONG = 8192, 5
# A quick run asks beyond this context only after everything else.
QUICK_CASES, QUICK_CONTEXT, QUICK_CASES_LONG = 8, 2048, 2
# Loading, the bf16 check and the report fit into what is left of three minutes.
QUICK_SECONDS = 110.0
QUICK_BF16_SECONDS = 20.0
BF16_HOLES, QUICK_BF16_HOLES = 40, 12
NEIGHBOUR_CONTEXT = 2048

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
        "`bf16_verified_mismatch_rate`: the share of answers in bfloat16 in which `verified` gave any other token than"
        " `left_to_right`; `bf16_verified_token_mismatch_rate`: the share of positions."
    ),
    "`step_beside_busy_ratio`: a denoising step beside a process of two busy threads over the same step alone.",
)


@dataclass(frozen=True, slots=True)
class SpeedOptions:
    """What to measure, on what, and where the results go; fields that `InfillOptions` has too mean the same.

    Attributes:
        contexts: sizes of context, in tokens; those beyond the model's positions are left out, and said so.
        answers: lengths of answers, in tokens.
        cases: repetitions of each; None: 20 (5 beyond 8,192 tokens), quick 8 (2 beyond 2,048).
        seconds: begin no case after this time; None: no bound, quick 110.
        bf16: also compare `verified` with `left_to_right` in bfloat16.
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
    bf16: bool = True
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
        report = measure_speed(
            options,
            subject,
            files,
            progress,
            exactness=lambda: _exactness(options, model, files, progress),
            neighbour=lambda: _neighbour(options, model, files, progress),
        )
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
    *,
    exactness: Callable[[], Exactness | None] = lambda: None,
    neighbour: Callable[[], Neighbour | None] = lambda: None,
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
    state = load.summary([float(record["others"]) for record in records])
    missing = [cell.name for cell in cells if not any(record["cell"] == cell.name for record in records)]
    missing += [f"{size_name(context)} context" for context in options.contexts if context not in contexts]
    exact = exactness() if options.bf16 and subject.baseline else None
    disturbed = neighbour()
    flat: dict[str, Value] = {
        "quick": options.quick,
        "loaded": state.loaded,
        "load_other_cores": state.others_mean,
        "load_other_cores_max": state.others_max,
        "loadavg": state.loadavg,
        "resumed_records": resumed,
        "weights": subject.weights,
        "seed": options.seed,
        "policy": ours.policy or DEFAULT_POLICY,
        "max_steps": ours.max_steps or DEFAULT_MAX_STEPS,
        "left_out": ", ".join(missing) or None,
        **peak_memory(options.device),
        **(exact.flat() if exact is not None else {"bf16_verified_mismatch_rate": None}),
        **(disturbed.flat() if disturbed is not None else {}),
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


def _neighbour(options: SpeedOptions, model: OpenModel, files: Sequence[HeldoutFile], progress: Progress) -> Neighbour:
    """Milliseconds of a denoising step of one warm answer, alone and beside a busy process."""
    cell = Cell(NEIGHBOUR_CONTEXT, 32)
    hole = next(cell_holes(cell, files, model.measure, seed=options.seed))
    progress.phase("neighbour", 1)

    def step() -> float:
        result = model.fill(
            hole, policy="fixed:4", max_steps=8, max_tokens=hole.max_tokens, max_context=cell.context
        ).result
        return result.denoise_seconds * 1e3 / max(1, result.forwards)

    return beside_neighbour(step)


def _exactness(
    options: SpeedOptions, model: OpenModel, files: Sequence[HeldoutFile], progress: Progress
) -> Exactness | None:
    """Load the same weights in bfloat16 and compare."""
    cell = Cell(CONTEXTS[0], 32)
    holes = cell_holes(cell, files, model.measure, seed=options.seed)
    count = QUICK_BF16_HOLES if options.quick else BF16_HOLES
    progress.phase("bf16", count)
    with open_model(model.folder, device=options.device, threads=options.threads, dtype="bfloat16") as rounded:
        return bf16_exactness(
            rounded,
            [next(holes) for _ in range(count)],
            context=cell.context,
            progress=progress,
            seconds=QUICK_BF16_SECONDS if options.quick else None,
        )
