"""The memory that a model takes, before anything is loaded, and how much is left on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from calomel.engine import CheckpointError
from calomel.engine.config import MoeConfig
from calomel.families.shards import Shards
from calomel.storage import available_bytes, machine

# Python, PyTorch and the other libraries, 310 MB, and temporary memory while requests are served.
_PROGRAM_BYTES: Final = 400 * 1024**2
# What oneDNN caches of bfloat16 products for the engine, 85 MB, and the gaps that this leaves between allocations.
_PRODUCT_BYTES: Final = 100 * 1024**2


def free_bytes(device: str) -> int:
    """Bytes that a new model may take on `device`."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info(torch.device(device))[0]
    if torch.device(device).type == "mps":
        # Shared with the machine's own memory.
        return min(available_bytes(), torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    return machine.free_bytes()


def program_bytes(device: str, dtype: torch.dtype) -> int:
    """Machine memory that the program itself takes besides a model on a CPU; 0 for a GPU."""
    if device.startswith("cuda"):
        return 0
    return _PROGRAM_BYTES + (_PRODUCT_BYTES if dtype == torch.bfloat16 else 0)


BYTES: Final[Mapping[str, int]] = {"float32": 4, "bfloat16": 2, "float16": 2}
# Bytes per weight of a matrix in eight bits, with its scales: one per row in float32.
QUANTIZED_BYTES: Final = 1.01
# Bytes per logit: in float32, with what sampling makes of it, and its place in the sorted order.
_LOGITS_BYTES: Final = 16
# Per row of a layer: the residual stream and its norm, queries, keys and values, and attention's output.
_ROW_TENSORS: Final = 6
# Gate, up, and their product.
_MLP_TENSORS: Final = 3
_MATRIX: Final = 2


@dataclass(frozen=True, slots=True)
class EstimateOptions:
    """What is to be opened, and how.

    Attributes:
        shards: the headers of the weights; None if there is only `config.json`, from which they are counted.
        dtype: of weights and cache.
        cache_tokens: tokens that are encoded at a time.
        quantize: `int8` or None.
        max_batch: requests that are served at a time.
        chunk: context tokens of one forward.
        canvas: tokens of one canvas; None for the family's longest.
        context: tokens of one request's context and answer.
    """

    shards: Shards | None = None
    dtype: str = "bfloat16"
    cache_tokens: int = 65_536
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
        cache: of encoded contexts and answers.
        work: of one step: activations and logits.
    """

    weights: int
    cache: int
    work: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.cache + self.work


def is_quantized(name: str) -> bool:
    """Whether the published matrix called `name` is rounded when weights are: those of layers, except routers."""
    return ".layers." in name and not any(part in name for part in ("norm", "router", "gate.weight"))


def decoder_estimate(
    raw: Mapping[str, Any],
    options: EstimateOptions,
    *,
    moe: MoeConfig | None = None,
    cached: bool = True,
    canvas: int = 64,
) -> Estimate:
    """The memory of a decoder whose `config.json` has the usual field names (hidden_size, num_hidden_layers, …).

    Args:
        raw: its `config.json`.
        options: what is to be opened, and how.
        moe: what it has in place of MLPs; None for a dense SwiGLU decoder.
        cached: whether contexts are kept in a cache; False if every step forwards the whole sequence.
        canvas: the family's canvas, if `options` gives none.

    Raises:
        CheckpointError: `config.json` lacks a field.
    """
    try:
        size, layers, heads = (int(raw[name]) for name in ("hidden_size", "num_hidden_layers", "num_attention_heads"))
        inner, vocabulary = int(raw["intermediate_size"]), int(raw["vocab_size"])
        key_heads = int(raw.get("num_key_value_heads") or heads)
        width = int(raw.get("head_dim") or size // heads)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"config.json has no usable field {error}, which the estimate of memory needs") from error
    each = BYTES[options.dtype]
    tied = bool(raw.get("tie_word_embeddings"))
    perceptrons = layers * 3 * size * inner
    if moe is not None:
        dense, expert = len(moe.dense), 3 * size * moe.intermediate_size
        perceptrons = 3 * size * inner * dense
        perceptrons += (layers - dense) * (expert * (moe.experts + moe.shared) + size * moe.experts)
        # A token's row is as wide as all the experts that see it.
        inner = max(inner if dense else 0, moe.intermediate_size * (moe.chosen + moe.shared))
    if options.shards is None:
        matrices = layers * size * width * (2 * heads + 2 * key_heads) + perceptrons
        outside = vocabulary * size * (1 if tied else 2)
        weights = outside * each + int(matrices * (QUANTIZED_BYTES if options.quantize else each))
    else:
        dropped = {"lm_head.weight", "model.lm_head.weight"} if tied else set()
        weights = 0
        for name, held in options.shards.tensors.items():
            if name in dropped:
                continue
            whole = options.quantize is None or len(held.shape) < _MATRIX or not is_quantized(name)
            weights += int(held.numbers * (each if whole else QUANTIZED_BYTES))
    step = options.max_batch * (options.canvas or canvas)
    rows = options.max_batch * options.context if not cached else options.chunk + step
    row = size * _ROW_TENSORS + width * (heads + 2 * key_heads) + inner * _MLP_TENSORS
    return Estimate(
        weights=weights,
        cache=options.cache_tokens * layers * 2 * key_heads * width * each if cached else 0,
        work=rows * row * each + step * vocabulary * _LOGITS_BYTES,
    )
