"""`calomel bench speed`: how long answers take, cold and warm, by size of context and length of answer.

Cold: nothing of the prompt is in the prefix cache. Warm: the same place one keystroke later. Both for the policy and
for the same weights left to right, taking turns at being first, through the same `Filler` as every door.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from calomel.bench.answer import BASELINE, Contender
from calomel.bench.cells import Cell, as_run, before_keystroke, cell_holes
from calomel.bench.exactness import Exactness, bf16_exactness
from calomel.bench.heldout import HeldoutFile, read_heldout
from calomel.bench.holes import Hole, TokenMeasure
from calomel.bench.journal import Journal, cache_folder
from calomel.bench.load import LoadWatch
from calomel.bench.machine import describe_run, source_hash
from calomel.bench.memory import peak_memory
from calomel.bench.model import OpenModel, open_model
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Value
from calomel.bench.timings import Timing, flat_timings, timing_table
from calomel.suggest.fill import DEFAULT_MAX_STEPS, DEFAULT_POLICY

CONTEXTS = (512, 2048, 8192, 32768)
ANSWERS = (8, 32, 128)
CASES = 20
# Beyond this context a case takes many seconds on a CPU, and their times scatter little.
LONG_CONTEXT, CASES_LONG = 8192, 5
QUICK_CASES = 8
# Loading, the bf16 check and the report fit into what is left of three minutes.
QUICK_SECONDS = 110.0
QUICK_BF16_SECONDS = 20.0
BF16_HOLES, QUICK_BF16_HOLES = 40, 12

NOTES = (
    (
        "Cold: nothing of the prompt is cached. Warm: the same place one keystroke later. Times are whole calls: rendering"
        " and tokenizing the prompt, prefill, denoising, decoding."
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
)

Ask = Callable[[Hole, Contender, int], Timing]


@dataclass(frozen=True, slots=True)
class SpeedOptions:
    """What to measure, on what, and where the results go; fields that `InfillOptions` has too mean the same.

    Attributes:
        contexts: sizes of context, in tokens; those beyond the model's positions are left out, and said so.
        answers: lengths of answers, in tokens.
        cases: repetitions of each; None: 20 (5 beyond 8,192 tokens), quick 8.
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
    """
    progress = Progress()
    files = read_heldout(options.heldout)
    with open_model(options.model, device=options.device, threads=options.threads) as model:
        report = measure_speed(
            options,
            ModelClock(model),
            model.measure,
            progress,
            files=files,
            weights=model.weights_hash,
            positions=model.engine.config.max_position_embeddings,
            baseline=model.verifiable,
            exactness=lambda: _exactness(options, model, files, progress),
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


def measure_speed(
    options: SpeedOptions,
    ask: Ask,
    measure: TokenMeasure,
    progress: Progress,
    *,
    files: Sequence[HeldoutFile],
    weights: str,
    positions: int,
    baseline: bool = True,
    exactness: Callable[[], Exactness | None] = lambda: None,
) -> Report:
    """The bench over anything that can be timed; writes nothing but its journal."""
    provenance = describe_run(options.command)
    ours = Contender("policy", options.policy, options.max_steps)
    contenders = (ours, BASELINE) if baseline else (ours,)
    cells = [
        Cell(context, answer) for context in options.contexts if context <= positions for answer in options.answers
    ]
    load = LoadWatch()
    depends_on = {
        "weights": weights,
        "sources": source_hash(),
        "seed": options.seed,
        "device": options.device,
        "threads": options.threads,
        "contenders": contenders,
        "heldout": options.heldout,
    }
    seconds = QUICK_SECONDS if options.seconds is None and options.quick else options.seconds
    with Journal(options.cache or cache_folder(), "speed", depends_on, resume=options.resume) as journal:
        records = _measure_cells(options, cells, contenders, ask, measure, journal, progress, files, load, seconds)
        resumed = journal.resumed
    state = load.summary([float(record["others"]) for record in records])
    missing = [cell.name for cell in cells if not any(record["cell"] == cell.name for record in records)]
    missing += [f"{context}" for context in options.contexts if context > positions]
    exact = exactness() if options.bf16 and baseline else None
    flat: dict[str, Value] = {
        "quick": options.quick,
        "loaded": state.loaded,
        "load_other_cores": state.others_mean,
        "load_other_cores_max": state.others_max,
        "loadavg": state.loadavg,
        "resumed_records": resumed,
        "weights": weights,
        "seed": options.seed,
        "policy": ours.policy or DEFAULT_POLICY,
        "max_steps": ours.max_steps or DEFAULT_MAX_STEPS,
        "left_out": ", ".join(missing) or None,
        **peak_memory(options.device),
        **(exact.flat() if exact is not None else {"bf16_verified_mismatch_rate": None}),
        **flat_timings(records, cells, [contender.name for contender in contenders]),
    }
    notes = [*NOTES, f"Left out for lack of time or positions: {', '.join(missing)}."] if missing else list(NOTES)
    name = "speed quick" if options.quick else "speed"
    return Report(f"bench {name}", flat, (timing_table(records, cells),), tuple(notes), provenance)


def _measure_cells(  # noqa: PLR0913 - the parts of one run
    options: SpeedOptions,
    cells: Sequence[Cell],
    contenders: Sequence[Contender],
    ask: Ask,
    measure: TokenMeasure,
    journal: Journal,
    progress: Progress,
    files: Sequence[HeldoutFile],
    load: LoadWatch,
    seconds: float | None,
) -> list[dict[str, Any]]:
    """Rounds over all cells, shortest contexts first, until every cell has its cases or the time is up."""
    started = time.monotonic()
    holes: Mapping[str, Iterator[Hole]] = {
        cell.name: cell_holes(cell, files, measure, seed=options.seed) for cell in cells
    }
    plan = [(turn, cell) for turn in range(CASES) for cell in cells if turn < _cases(options, cell)]
    progress.phase("cases", len(plan))
    slowest = 0.0
    records: list[dict[str, Any]] = []
    for turn, cell in plan:
        left = None if seconds is None else seconds - (time.monotonic() - started)
        # Attention makes a token of a longer context dearer, never cheaper: what this predicts is the least it takes.
        if left is not None and left < slowest * cell.context:
            continue
        hole = next(holes[cell.name])
        record = journal.get(hole.key)
        if record is None:
            began = time.monotonic()
            record = _case(hole, cell, turn, contenders, ask)
            record["others"] = load.others()
            journal.put(hole.key, record)
            slowest = max(slowest, (time.monotonic() - began) / cell.context) if turn else slowest
            slowest = slowest or (time.monotonic() - began) / cell.context
        records.append(record)
        progress.step(cell.name)
    return records


def _case(hole: Hole, cell: Cell, turn: int, contenders: Sequence[Contender], ask: Ask) -> dict[str, Any]:
    """Cold and warm for every contender, each with a cache of its own."""
    shift = turn % len(contenders)
    record: dict[str, Any] = {"cell": cell.name}
    for contender in (*contenders[shift:], *contenders[:shift]):
        run = f"{hole.key}-{contender.name}"
        cold = ask(before_keystroke(hole, run), contender, cell.context)
        warm = ask(as_run(hole, run), contender, cell.context)
        record[contender.name] = {"cold": asdict(cold), "warm": asdict(warm)}
    return record


def _cases(options: SpeedOptions, cell: Cell) -> int:
    if options.cases is not None:
        return options.cases
    if options.quick:
        return QUICK_CASES
    return CASES_LONG if cell.context > LONG_CONTEXT else CASES


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
