"""The network behind the canvases, as the worker sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from calomel.engine.renoise.rules import RenoiseShape


class Encoded(Protocol):
    """The keys and values of a beginning of a sequence, that canvases read."""

    @property
    def length(self) -> int:
        """Tokens that are encoded."""

    def reaches(self, length: int) -> bool:
        """Whether it can go back to its first `length` tokens; a sliding window forgets what lies far behind."""

    def cut(self, length: int) -> None:
        """Go back to the first `length` tokens."""


E = TypeVar("E", bound=Encoded)


class Backbone(Protocol[E]):
    """A network that encodes contexts causally and denoises canvases behind them."""

    @property
    def shape(self) -> RenoiseShape:
        """What it was trained for."""

    @property
    def device(self) -> torch.device:
        """Where it runs."""

    @property
    def dtype(self) -> torch.dtype:
        """Of its weights; what a step is told of the one before has it too."""

    def empty(self) -> E:
        """A context without tokens."""

    def encode(self, ids: Sequence[int], behind: E) -> None:
        """Append `ids` to what `behind` has encoded, causally."""

    def denoise(self, canvases: Tensor, conditions: Sequence[Tensor | None], behind: Sequence[E]) -> Tensor:
        """One forward of canvases, each behind its own context.

        Args:
            canvases: [B, L] int64.
            conditions: of each canvas the processed logits [L, V] of its last step; None in its first.
            behind: B contexts, of any length.

        Returns:
            Logits [B, L, V] float32, which the caller may overwrite.
        """
