"""`calomel bench speed`: how long answers take, cold and warm, by size of context and length of answer.

Cold: nothing of the prompt is in the prefix cache. Warm: the same place one keystroke later. Both for the policy and
for the same weights left to right, taking turns going first, through the same `Filler` as every door.

A step is a forward of a canvas behind a context of noise, on one core and in processor time, which other programs on
the machine change least. Beside it stand the bytes that it reads, weights and keys once each, and its multiplications.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, product
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

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
from calomel.bench.operations import measure_operations
from calomel.infer.filler import DEFAULT_MAX_STEPS, DEFAULT_POLICY
from calomel.report.heldout import HeldoutFile, Hole, read_heldout
from calomel.report.result import (
    Interval,
    Report,
    Table,
    Value,
    number_cell,
    peak_memory,
    percentile,
    percentile_interval,
    put_interval,
    ratio_of_sums,
)
from calomel.report.running import LoadWatch, Progress

if TYPE_CHECKING:
    from torch import Tensor

    from calomel.engine import Transformer
    from calomel.engine.transformer import Layer

LOG: Final = logging.getLogger(__name__)
CONTEXT: Final = 8192
ROUNDS: Final = 3
STEP_CONTEXTS: Final = (2048, 8192, 32_000)
STEP_ROWS: Final = (1, 4, 8, 16, 24)
STEP_ROUNDS: Final = 25
# Each round's tokens begin this much further on, and so share no prefix with earlier rounds.
_SHIFT: Final = 61


def measure_prefill(model: OpenModel, files: Sequence[HeldoutFile], threads: int | None) -> dict[str, Value]:
    """`cold_8k_ms`, `prefill_over_bare` and related figures; empty where the model cannot read that many tokens.

    Args:
        model: the loaded checkpoint.
        files: the source of the contexts.
        threads: of both sides; None for PyTorch's own choice.
    """
    import torch

    from calomel.engine import BlockCausal, Engine, Request

    engine, texts = model.engine, (model.tokenizer.encode(file.text) for file in files)
    tokens = list(islice(chain.from_iterable(texts), CONTEXT + ROUNDS * _SHIFT))
    if not (isinstance(engine, Engine) and isinstance(engine.decoder, BlockCausal) and model.verifiable):
        return {}
    if engine.config.max_position_embeddings <= CONTEXT or len(tokens) < CONTEXT + ROUNDS * _SHIFT:
        return {}
    network, threads = engine.decoder.model, threads or torch.get_num_threads()
    bare = Bare(network)
    try:
        bare(tokens[:CONTEXT])
    except Exception as error:  # noqa: BLE001  (a compiler is missing or fails in many ways)
        LOG.warning("the bare forward is not compiled: %r", error)
        bare = Bare(network, compiled=False)
    ours: list[float] = []
    theirs: list[float] = []
    for turn in range(ROUNDS):
        ids = tokens[turn * _SHIFT :][:CONTEXT]
        ours.append(engine.submit(Request(context=tuple(ids), max_new_tokens=1)).result().prefill_seconds * 1e3)
        torch.set_num_threads(threads)
        began = time.perf_counter()
        bare(ids)
        theirs.append((time.perf_counter() - began) * 1e3)
    flat: dict[str, Value] = {"bare_compiled": bare.compiled}
    put_interval(flat, "cold_8k_ms", percentile_interval(ours, 50))
    put_interval(flat, "bare_8k_ms", percentile_interval(theirs, 50))
    put_interval(flat, "prefill_over_bare", ratio_of_sums(ours, theirs))
    return flat


def measure_steps(model: OpenModel) -> dict[str, Value]:
    """`step_CONTEXT_ROWS_ms`, `_mb` and `_mmul`: median processor time, megabytes and millions of multiplications."""
    import torch

    from calomel.engine import BlockCausal, Engine
    from calomel.engine.attention import Piece, attention_multiplications
    from calomel.engine.pages import Pages, PageTable
    from calomel.engine.step import Step

    if not (isinstance(model.engine, Engine) and isinstance(model.engine.decoder, BlockCausal)):
        return {}
    decoder, network = model.engine.decoder, model.engine.decoder.model
    config, threads, flat = network.config, torch.get_num_threads(), dict[str, Value]()
    torch.set_num_threads(1)
    for context, rows in product(STEP_CONTEXTS, STEP_ROWS):
        if context + rows > config.max_position_embeddings or decoder.device.type != "cpu":
            continue
        pool = Pages(
            config,
            pages=1,
            size=context + rows,
            dtype=network.embed_tokens.weight.dtype,
            device=decoder.device,
        )
        for held in (*pool.keys, *pool.values):
            held.normal_()
        table, times, step = PageTable(pool, [0]), list[float](), Step(network, pool, decoder.ends)
        piece = Piece(range(rows), table, context, causal=False, read=range(rows))
        with torch.inference_mode():
            for _ in range(STEP_ROUNDS):
                began = time.thread_time()
                step([piece])
                times.append((time.thread_time() - began) * 1e3)
        one = replace(piece, ids=range(1))
        seen = attention_multiplications(config, [one]) // config.num_attention_heads * config.num_key_value_heads
        name, width = f"step_{size_name(context)}_{rows}", network.embed_tokens.weight.element_size()
        flat[f"{name}_ms"] = percentile(times, 50)
        flat[f"{name}_mb"] = round((decoder.weights + seen) * width / 1e6, 1)
        flat[f"{name}_mmul"] = round((rows * decoder.weights + attention_multiplications(config, [piece])) / 1e6, 1)
    torch.set_num_threads(threads)
    return flat


class Bare:
    """One forward over a whole text at once.

    Args:
        model: with causal attention.
        compiled: by `torch.compile`, everything but attention.
    """

    def __init__(self, model: Transformer, *, compiled: bool = True) -> None:
        import torch

        made: Callable[..., Any] = torch.compile if compiled else lambda part, **_: part
        self.compiled = compiled
        self._model = model
        # Layers are alike: one compilation serves all of them.
        self._before = made(_before, dynamic=False)
        self._after = made(_after, dynamic=False)

    def __call__(self, ids: Sequence[int]) -> Tensor:
        """The logits [V] float32 of the token after `ids`."""
        import torch

        from calomel.engine.transformer import rotation

        with torch.inference_mode():
            model = self._model
            text = torch.tensor(ids, device=model.embed_tokens.weight.device)
            x = model.embed_tokens(text)
            places = torch.arange(len(text), device=text.device)[:, None]
            cos, sin = rotation(places * model.inverse_frequency, x.dtype)
            for number, layer in enumerate(model.layers):
                q, k, v = (part.transpose(0, 1) for part in self._before(layer, x, cos, sin))
                x = self._after(layer, x, _attend(q, k, v, model.config.window(number)).transpose(0, 1))
            return model.logits(model.norm(x[-1:]))[0].cpu()


def _before(layer: Layer, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return layer.before(x, cos, sin)


def _after(layer: Layer, x: Tensor, attended: Tensor) -> Tensor:
    return layer.after(x, attended)


def _attend(q: Tensor, k: Tensor, v: Tensor, window: int | None) -> Tensor:
    """Causal attention of q [Hq, T, D] over k, v [Hkv, T, D]; with a window, in tiles that see the one before, too."""
    import torch
    from torch.nn import functional as F

    rows = q.shape[1]
    k, v = (part.repeat_interleave(len(q) // len(part), dim=0) for part in (k, v))
    if window is None or rows <= window:
        return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    first = F.scaled_dot_product_attention(
        q[None, :, :window], k[None, :, :window], v[None, :, :window], is_causal=True
    )
    filled = -rows % window
    q, k, v = (F.pad(part, (0, 0, 0, filled)) for part in (q, k, v))
    tiles = q[:, window:].unflatten(1, (-1, window)).transpose(0, 1)  # [tiles, Hq, window, D]
    keys, values = (part.unfold(1, 2 * window, window).permute(1, 0, 3, 2) for part in (k, v))
    own, seen = torch.arange(window, device=q.device)[:, None], torch.arange(-window, window, device=q.device)
    near = (own >= seen) & (own - seen < window)
    others = F.scaled_dot_product_attention(tiles, keys, values, near)
    return torch.cat((first[0], others.transpose(0, 1).flatten(1, 2)), dim=1)[:, :rows]


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
        "Cold: the cache has nothing of the prompt. Warm: the same place one keystroke later. Times cover whole calls:"
        " rendering and tokenizing the prompt, prefill, denoising, decoding."
    ),
    (
        "The stated length limits the answer, and the author's text there has that length. A model may end earlier:"
        " `kept` is how many tokens it wrote."
    ),
    (
        "Tokens per forward: kept answer tokens plus one end token, over all forwards after prefill,"
        " verification included. Tokens per second: the same tokens over the whole warm call."
    ),
    (
        "`prefill_over_bare`: encoding 8,192 uncached tokens (`cold_8k_ms`), over one forward pass of all"
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
        prefill = {**measure_steps(model), **measure_prefill(model, files, options.threads), **measure_operations()}
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
    notes = (*NOTES, f"Left out, for lack of time or positions: {', '.join(missing)}.") if missing else NOTES
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
