"""The memory that a model takes, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from calomel.engine import CheckpointError
from calomel.families.shards import Shards

BYTES: Final[Mapping[str, int]] = {"float32": 4, "bfloat16": 2, "float16": 2}
# Of the weights of a quantised matrix; its scales, one per row, are another hundredth.
_QUANTIZED_BYTES: Final = 1.01
# Logits in float32, what sampling makes of them, and the order that it sorts them in.
_LOGITS_BYTES: Final = 16
# Of one row of a layer: the residual stream and its norm, queries, keys and values, and what attention gives.
_ROW_TENSORS: Final = 6
# Gate, up, and their product.
_MLP_TENSORS: Final = 3
_MATRIX: Final = 2


@dataclass(frozen=True, slots=True)
class EstimateOptions:
    """What is to be opened, and how.

    Attributes:
        shards: the headers of the weights; None when only `config.json` is there, and counts come from it.
        dtype: of weights and cache.
        cache_tokens: context tokens that stay encoded.
        spare_tokens: tokens that are laid out, being served or for their next keystroke.
        quantize: `int8`, `fp8` or None.
        max_batch: requests that are served at a time.
        chunk: context tokens of one forward.
        canvas: tokens of one canvas; None for the family's longest.
        context: tokens of one request's context and answer.
    """

    shards: Shards | None = None
    dtype: str = "bfloat16"
    cache_tokens: int = 65_536
    spare_tokens: int = 32_768
    quantize: str | None = None
    max_batch: int = 8
    chunk: int = 512
    canvas: int | None = None
    context: int = 2_048


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes that a model takes.

    Attributes:
        weights: of the network.
        cache: of encoded contexts: the pages, and contexts laid out for their next keystroke or being served.
        work: of one step: activations and logits.
    """

    weights: int
    cache: int
    work: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.cache + self.work


def stays_whole(name: str) -> bool:
    """Whether a published tensor is left as it is when others are quantised: embeddings, the head, norms, routers."""
    return any(part in name for part in ("embed", "wte", "lm_head", "ff_out.weight", "norm", "router", "gate.weight"))


def decoder_estimate(
    raw: Mapping[str, Any],
    options: EstimateOptions,
    *,
    parameters: int | None = None,
    cached: bool = True,
    canvas: int = 64,
    ignored: Callable[[str], bool] = lambda _: False,
    unquantized: Callable[[str], bool] = stays_whole,
) -> Estimate:
    """The memory of a decoder whose `config.json` has the usual field names (hidden_size, num_hidden_layers, …).

    Args:
        raw: its `config.json`.
        options: what is to be opened, and how.
        parameters: used when `options.shards` is None; None to count a dense SwiGLU decoder's.
        cached: contexts are kept in a cache; False where every step forwards the whole sequence.
        canvas: the family's canvas, where `options` names none.
        ignored: whether a published tensor is not loaded.
        unquantized: whether the tensor of a published name stays as it is when the others are quantised.

    Raises:
        CheckpointError: `config.json` lacks a field.
    """
    try:
        size, layers, heads = (int(raw[name]) for name in ("hidden_size", "num_hidden_layers", "num_attention_heads"))
        inner, vocabulary = int(raw["intermediate_size"]), int(raw["vocab_size"])
        key_heads = int(raw.get("num_key_value_heads") or heads)
        width = int(raw.get("head_dim") or size // heads)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"config.json has no usable field {error}; the memory cannot be told") from error
    each = BYTES[options.dtype]
    tied = bool(raw.get("tie_word_embeddings"))
    if options.shards is None:
        matrices = layers * (size * width * (2 * heads + 2 * key_heads) + 3 * size * inner)
        outside = vocabulary * size * (1 if tied else 2)
        if parameters is not None:
            matrices = max(0, parameters - outside)
        weights = outside * each + int(matrices * (_QUANTIZED_BYTES if options.quantize else each))
    else:
        dropped = {"lm_head.weight", "model.lm_head.weight"} if tied else set()
        weights = 0
        for name, held in options.shards.tensors.items():
            if name in dropped or ignored(name):
                continue
            small = options.quantize and len(held.shape) >= _MATRIX and not unquantized(name)
            weights += int(held.numbers * (_QUANTIZED_BYTES if small else each))
    step = options.max_batch * (options.canvas or canvas)
    rows = options.max_batch * options.context if not cached else options.chunk + step
    row = size * _ROW_TENSORS + width * (heads + 2 * key_heads) + inner * _MLP_TENSORS
    kept = options.cache_tokens + options.spare_tokens
    return Estimate(
        weights=weights,
        cache=kept * layers * 2 * key_heads * width * each if cached else 0,
        work=rows * row * each + step * vocabulary * _LOGITS_BYTES,
    )
