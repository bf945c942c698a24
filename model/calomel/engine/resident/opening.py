"""What of steps on the device fits a model, a device and what is installed."""

from __future__ import annotations

from collections.abc import Callable

from calomel.engine.canvas import Board
from calomel.engine.progress import Progress
from calomel.engine.resident.arena import Arena
from calomel.engine.resident.attention import ArenaAttention
from calomel.engine.resident.flash import FlashAttention, paged_kernel
from calomel.engine.resident.graphs import capture_on
from calomel.engine.resident.options import ResidentOptions
from calomel.engine.resident.runner import Resident
from calomel.engine.transformer import Transformer


def open_resident(
    options: ResidentOptions,
    model: Transformer,
    board: Board,
    progress: Progress,
    cache_tokens: int,
    observe: Callable[[int, int], None] | None = None,
) -> Resident | None:
    """Steps on the device of `model`; None for a checkpoint that reads its context in blocks, or has a memory.

    Args:
        options: as asked for.
        model: on its device.
        board: of the engine, with a row more than there are requests.
        progress: of the engine.
        cache_tokens: room of the prefix cache.
        observe: called with the requests and the rows of every step.
    """
    config, weight = model.config, model.embed_tokens.weight
    if config.diffusion.block > 1 or config.memory is not None:
        return None
    tokens = max(1, cache_tokens // 2) if options.tokens is None else options.tokens
    arena = Arena(config, tokens, dtype=weight.dtype, device=weight.device)
    # A kernel's window spares no canvas.
    fits = config.sliding_window is None or config.sliding_window > config.diffusion.max_canvas
    kernel = paged_kernel(weight.device, weight.dtype) if options.flash and fits else None
    return Resident(
        model,
        board,
        arena,
        progress,
        look=options.look,
        capture=capture_on(weight.device) if options.graphs else None,
        attending=ArenaAttention if kernel is None else FlashAttention.by(kernel),
        told_lengths=kernel is not None,
        observe=observe,
    )
