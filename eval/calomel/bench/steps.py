"""What one denoising step costs, by whom it is taken: the host, the device for some steps on end, or compiled code.

One canvas behind a context of random keys, every step from a masked canvas. Beside it the time that the device's memory
needs for the weights and for the keys and values that a step reads: no step of one canvas can be faster than that.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from calomel.bench.machine import describe_run
from calomel.bench.report import Report, Table, Value
from calomel.weights import nano_path

if TYPE_CHECKING:
    import torch

    from calomel.engine import Transformer
    from calomel.engine.canvas import Board
    from calomel.engine.resident.arena import Arena

Way = Callable[[], object]
CONTEXTS: Final = (2048, 8192)
# Hidden size, intermediate size, layers, heads, key heads, head size: of Qwen2.5 0.5B and 1.5B, and of Qwen3 8B.
SHAPES: Final = {
    "0.5B": (896, 4864, 24, 14, 2, 64),
    "1.5B": (1536, 8960, 28, 12, 2, 128),
    "8B": (4096, 12288, 36, 32, 8, 128),
}
_VOCAB: Final = 151_936
_COPIED_BYTES: Final = 2**28


@dataclass(frozen=True, slots=True)
class StepsOptions:
    """What is measured.

    Attributes:
        shape: one of `SHAPES`, with random weights; None for the shipped weights.
        contexts: tokens before the canvas.
        rows: of the canvas.
        look: steps between two looks of the host.
        rounds: repetitions; every way is asked once in each.
        compiled: also by `torch.compile`, which takes minutes.
        device: where it runs.
        threads: of the processor.
    """

    shape: str | None = None
    contexts: Sequence[int] = CONTEXTS
    rows: int = 17
    look: int = 4
    rounds: int = 30
    compiled: bool = False
    device: str = "cpu"
    threads: int = 1
    results: Path | None = None
    json: Path | None = None


def run_steps(options: StepsOptions) -> Report:
    """Measure every way at every context, write what `options` asks for, and return the report."""
    import torch

    provenance = describe_run()
    torch.set_num_threads(options.threads)
    model = _model(options)
    weight = model.embed_tokens.weight
    rate = _bytes_per_second(weight.device)
    flat: dict[str, Value] = {"bytes_per_second": rate, "rows": options.rows, "dtype": str(weight.dtype)}
    rows: list[tuple[str, ...]] = []
    for context in options.contexts:
        floor = 1000 * _bytes(model, context + options.rows) / rate
        with torch.inference_mode():
            ways = _ways(model, context, options)
            times = _times(ways, options, weight.device)
        for name, ms in times.items():
            flat |= {f"{name}_{context}_ms": ms, f"{name}_{context}_vs_floor": ms / floor}
            flat[f"{name}_{context}_vs_host"] = ms / times["host"]
            told = (f"{ms:.2f}", f"{ms / times['host']:.2f}", f"{floor:.2f}", f"{ms / floor:.2f}")
            rows.append((name, str(context), *told))
    clock = "Time of the device" if weight.is_cuda else "Processor time"
    notes = (
        f"{clock} of a step, median of {options.rounds}; one canvas of {options.rows} rows, {weight.dtype}.",
        "Floor: bytes of weights, and of the keys and values that layers see, at the measured speed of a copy.",
        f"Resident: {options.look} steps of a fixed shape between two looks of the host, by the step.",
    )
    columns = ("way", "context", "ms", "times the host's", "floor ms", "times the floor")
    report = Report("bench steps", flat, (Table("A denoising step", columns, tuple(rows)),), notes, provenance)
    report.write(json_path=options.json, results=options.results)
    return report


def _model(options: StepsOptions) -> Transformer:
    import torch

    from calomel.engine import DiffusionConfig, ModelConfig, Transformer, load_checkpoint
    from calomel.engine.engine import native_dtype

    dtype = native_dtype(options.device)
    if options.shape is None:
        return load_checkpoint(nano_path(), dtype=dtype, device=options.device).requires_grad_(False)
    hidden, intermediate, layers, heads, key_heads, width = SHAPES[options.shape]
    config = ModelConfig(
        vocab_size=_VOCAB,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        head_dim=width,
        max_position_embeddings=40_960,
        diffusion=DiffusionConfig(mask_token_id=_VOCAB - 1, end_token_id=_VOCAB - 2),
        tie_word_embeddings=options.shape != "8B",
    )
    with torch.device(options.device):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            return Transformer(config).requires_grad_(False).eval()
        finally:
            torch.set_default_dtype(before)


def _bytes(model: Transformer, keys: int) -> int:
    """What one step reads: all weights but the embedding's unused rows, and the keys and values that layers see."""
    config, weight = model.config, model.embed_tokens.weight
    weights = sum(parameter.nbytes for parameter in model.parameters())
    if not config.tie_word_embeddings:
        weights -= weight.nbytes
    seen = sum(min(keys, config.window(layer) or keys) for layer in range(config.num_hidden_layers))
    return weights + 2 * seen * config.num_key_value_heads * config.head_dim * weight.element_size()


def _bytes_per_second(device: torch.device) -> float:
    """How fast `device` reads: a copy reads and writes every byte."""
    import torch

    source = torch.zeros(_COPIED_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = [_seconds(partial(target.copy_, source), device) for _ in range(8)]
    return 2 * _COPIED_BYTES / min(seconds)


def _ways(model: Transformer, context: int, options: StepsOptions) -> dict[str, Way]:
    """Every way to take `look` steps of a canvas, warm."""
    import torch

    from calomel.engine.canvas import Board
    from calomel.engine.resident.arena import Arena

    weight = model.embed_tokens.weight
    arena = Arena(model.config, context + options.rows, dtype=weight.dtype, device=weight.device)
    arena.keys[:, :context].normal_()
    arena.values[:, :context].normal_()
    diffusion = model.config.diffusion
    board = Board(3, diffusion.max_canvas, mask_token_id=diffusion.mask_token_id, device=weight.device)
    ways = {"host": _by_host(model, board, arena, context, options)}
    ways |= _by_device(model, board, arena, context, options)
    for way in ways.values():
        way()
    if weight.is_cuda:
        torch.cuda.synchronize(weight.device)
    return ways


def _by_host(model: Transformer, board: Board, arena: Arena, context: int, options: StepsOptions) -> Way:
    """As the engine takes steps on a CPU."""
    import torch

    from calomel.engine.buffer import KeyValueBuffer
    from calomel.engine.canvas import Reading
    from calomel.engine.flash import flash_varlen
    from calomel.engine.forward import Piece, forward
    from calomel.engine.reveal import Fixed
    from calomel.engine.sampling import choose

    weight, diffusion, columns = model.embed_tokens.weight, model.config.diffusion, list(range(options.rows))
    buffer = KeyValueBuffer(model.config, context + options.rows, dtype=weight.dtype, device=weight.device)
    buffer.keys[:, :context], buffer.values[:, :context] = arena.keys[:, :context], arena.values[:, :context]
    flash = flash_varlen() if weight.dtype in (torch.float16, torch.bfloat16) else None
    reading = Reading([0], columns, [0] * options.rows, columns, [Fixed(1)], [False], [False])

    def steps() -> None:
        board.clear(0, {})
        for _ in range(options.look):
            piece = Piece(board.ids[0, : options.rows], buffer, context, causal=False, read=columns)
            logits = forward(model, [piece], flash)
            choice = choose(logits, (), mask_token_id=diffusion.mask_token_id, end_token_id=diffusion.end_token_id)
            board.advance(choice, reading)

    return steps


def _by_device(model: Transformer, board: Board, arena: Arena, context: int, options: StepsOptions) -> dict[str, Way]:
    """Of a fixed shape: launched one by one, as a recording, and compiled."""
    import torch

    from calomel.engine.resident.attention import ArenaAttention
    from calomel.engine.resident.flash import FlashAttention, paged_kernel
    from calomel.engine.resident.graphs import CudaCapture
    from calomel.engine.resident.shape import ROWS, StepShape, bucket, most_keys, reach
    from calomel.engine.resident.state import Row, State
    from calomel.engine.resident.step import Stepper
    from calomel.engine.reveal import Fixed

    rows, head = options.rows, int(model.config.diffusion.logit_shift)
    kernel = paged_kernel(board.device, arena.keys.dtype)
    attending = ArenaAttention if kernel is None else FlashAttention.by(kernel)
    seen = None if kernel is not None else reach(context + rows, most_keys(model.config))
    stepper = Stepper(model, board, arena, attending)
    state = State(1, head=head, idle=2, device=board.device)
    row = Row(0, context, (0,) * head, 1, rows, ends_from=rows, revise=False, steps=options.look + 1)
    step = partial(stepper.step, state, StepShape(1, bucket(rows + head, ROWS) or rows + head, 0, seen), Fixed(1))

    def steps(step: Callable[[], object]) -> None:
        board.clear(1, {})
        state.load([row])
        for _ in range(options.look):
            step()
        state.report(board.ids, board.revealed)

    ways: dict[str, Way] = {"resident": partial(steps, step)}
    if board.device.type == "cuda":
        ways["captured"] = partial(steps, CudaCapture(board.device)(step))
    if options.compiled:
        frozen: dict[str, str | int | bool | Callable[..., object]] = {"max_autotune": False, "freezing": True}
        ways["compiled"] = partial(steps, torch.compile(step, fullgraph=True, dynamic=False, options=frozen))
    return ways


def _times(ways: dict[str, Way], options: StepsOptions, device: torch.device) -> dict[str, float]:
    """Milliseconds of a step, each way in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            seconds[name].append(_seconds(way, device))
    return {name: 1000 * statistics.median(found) / options.look for name, found in seconds.items()}


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """Of the processor on a CPU, which others may use, too; else of the clock, until the device is done."""
    import torch

    if device.type != "cuda":
        began = time.thread_time()
        work()
        return time.thread_time() - began
    torch.cuda.synchronize(device)
    began = time.perf_counter()
    work()
    torch.cuda.synchronize(device)
    return time.perf_counter() - began
