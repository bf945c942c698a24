"""The shapes of steps: few enough that each is captured once, and close enough that little is computed in vain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from calomel.engine.config import ModelConfig

# One row more than a canvas of 16, 32, ... positions: for the end token, or for the token before a shifted canvas.
ROWS: Final = (17, 33, 65, 129, 257)
CANVASES: Final = (1, 2, 4, 8, 16, 32, 64)
# What a keystroke adds, or the canvas before; none from the second step on.
CAUSAL: Final = (0, 32, 64)
_SHORTEST_REACH: Final = 512


@dataclass(frozen=True, slots=True)
class StepShape:
    """Everything about a step that is not data.

    Attributes:
        canvases: requests, in one row of the batch each.
        rows: of a canvas, with the token that heads it.
        causal: rows before the canvas at most.
        reach: the keys of so many first positions of a request are looked at; None where the kernel is told lengths.
    """

    canvases: int
    rows: int
    causal: int
    reach: int | None = None

    @property
    def width(self) -> int:
        """Rows of one request."""
        return self.rows + self.causal


def bucket(size: int, sizes: Iterable[int]) -> int | None:
    """The smallest of the rising `sizes` that holds `size`; None where none does."""
    return next((other for other in sizes if size <= other), None)


def most_keys(config: ModelConfig) -> int:
    """The keys of the longest request: the end token may stand behind the last position, and kernels like eights."""
    return config.max_position_embeddings + 8


def reach(tokens: int, most: int) -> int:
    """The number of keys that a step looks at for requests of up to `tokens` tokens: it doubles, up to `most`."""
    size = _SHORTEST_REACH
    while size < tokens:
        size *= 2
    return min(size, most)
