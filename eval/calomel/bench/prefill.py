"""How long an uncached context takes, beside a bare forward of the same weights over the same tokens; and single steps.

The bare forward is what remains without an engine: one batch, all layers, no cache and no chunks, with PyTorch's own
attention, compiled where there is a compiler. Both take turns in one run.

A step is a forward of a canvas behind a context of noise, on one core and in processor time, which other programs on
the machine change least. Beside it stand the bytes that it reads, weights and keys once each, and its multiplications.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any, Final

from calomel.bench.holes import size_name
from calomel.bench.model import OpenModel
from calomel.report.heldout import HeldoutFile
from calomel.report.result import Value, put_interval
from calomel.report.stats import percentile, percentile_interval, ratio_of_sums

if TYPE_CHECKING:
    # Importing these loads torch, which `calomel --help` must not.
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
    from calomel.engine.attention import Piece, attention_multiplications, forward

    if not (isinstance(model.engine, Engine) and isinstance(model.engine.decoder, BlockCausal)):
        return {}
    decoder, network = model.engine.decoder, model.engine.decoder.model
    config, threads, flat = network.config, torch.get_num_threads(), dict[str, Value]()
    torch.set_num_threads(1)
    for context, rows in product(STEP_CONTEXTS, STEP_ROWS):
        if context + rows > config.max_position_embeddings or decoder.device.type != "cpu":
            continue
        buffer, times = decoder.new_buffer(context + rows), list[float]()
        buffer.keys.normal_()
        buffer.values.normal_()
        piece = Piece(range(rows), buffer, context, causal=False, read=range(rows))
        with torch.inference_mode():
            for _ in range(STEP_ROUNDS):
                began = time.thread_time()
                forward(network, [piece])
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
        from torch.nn import functional as F

        from calomel.engine.memory import REACH, in_threes
        from calomel.engine.transformer import rotation

        with torch.inference_mode():
            model = self._model
            text = torch.tensor(ids, device=model.embed_tokens.weight.device)
            x = model.embed_tokens(text)
            if model.memory is not None:
                x = x + model.memory(in_threes(F.pad(text, (REACH, 0))))
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
