"""The memory that a model takes, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from calomel.families.shards import Shards

BYTES: Final[Mapping[str, int]] = {"float32": 4, "bfloat16": 2, "float16": 2}
# Of the weights of a quantised matrix; its scales, one per row, are another hundredth.
QUANTIZED_BYTES: Final = 1.01


@dataclass(frozen=True, slots=True)
class EstimateOptions:
    """What is to be opened, and how.

    Attributes:
        shards: the headers of the weights; None when only `config.json` is there, and counts come from it.
        dtype: of weights and cache.
        cache_tokens: context tokens that stay encoded.
        spare_tokens: context tokens that stay laid out for their next keystroke.
        quantize: `int8`, `fp8` or None.
        max_batch: requests of one priority that are served at a time.
        chunk: context tokens of one forward.
        canvas: tokens of one canvas; None for the family's longest.
        context: tokens of one request's context and answer.
    """

    shards: Shards | None
    dtype: str = "bfloat16"
    cache_tokens: int = 65_536
    spare_tokens: int = 16_384
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
        cache: of encoded contexts: the pages, and contexts laid out for their next keystroke.
        work: of one step: activations and logits.
    """

    weights: int
    cache: int
    work: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.cache + self.work


def decoder_estimate(
    raw: Mapping[str, Any],
    options: EstimateOptions,
    *,
    parameters: int | None = None,
    cached: bool = True,
    canvas: int = 64,
    unquantized: Callable[[str], bool] = lambda name: "embed_tokens" in name or "lm_head" in name or "norm" in name,
) -> Estimate:
    """The memory of a decoder whose `config.json` has the usual field names (hidden_size, num_hidden_layers, …).

    Args:
        raw: its `config.json`.
        options: what is to be opened, and how.
        parameters: used when `options.shards` is None; None to count a dense SwiGLU decoder's.
        cached: contexts are kept in a cache; False where every step forwards the whole sequence.
        canvas: the family's canvas, where `options` names none.
        unquantized: whether the tensor of a published name stays as it is when the others are quantised.
    """
    raise NotImplementedError
