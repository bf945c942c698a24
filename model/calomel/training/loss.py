"""The training loss of a batch: the cross-entropy of the scored rows of all its parts at once."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calomel.engine.transformer import Layer, Transformer
from calomel.training.attention import TreeAttention
from calomel.training.batch import Batch


class LossModel(nn.Module):
    """A transformer with its training loss.

    Args:
        transformer: the model to train.
        compiled: whether to compile what is between two attentions, and the cross-entropy. One program serves all
            layers and all shapes of batches, so that it is compiled once, in seconds.
        flash: see `TreeAttention`.

    Attributes:
        flash: may be changed between two steps.
    """

    def __init__(self, transformer: Transformer, *, compiled: bool = False, flash: bool = False) -> None:
        super().__init__()
        self.transformer = transformer
        self.flash = flash
        self._nats: Any = torch.compile(cross_entropy, dynamic=True) if compiled else cross_entropy
        for layer in cast("list[Layer]", list(transformer.layers)) if compiled else []:
            layer.before = torch.compile(layer.before, dynamic=True)  # type: ignore[method-assign]
            layer.after = torch.compile(layer.after, dynamic=True)  # type: ignore[method-assign]

    def forward(self, batch: Batch, structure: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of `batch`, and the cross-entropy [N] of each scored row in nats.

        Args:
            batch: see `Batch`.
            structure: `branch_structure` of the batch's shape.
        """
        head, shift = self.transformer.lm_head.weight, None
        if batch.classes:
            head, shift = head.index_select(0, batch.tokens), batch.shift
        nats: Tensor = self._nats(self._hidden(batch, structure), head, batch.targets, shift)
        return (nats * batch.weights).sum(), nats.detach()

    @torch.no_grad()
    def measure(self, batch: Batch, structure: Tensor) -> Tensor:
        """The cross-entropy [N] of each scored row over all tokens, in nats; see `forward`."""
        targets = batch.tokens.long()[batch.targets] if batch.classes else batch.targets
        return cross_entropy(self._hidden(batch, structure), self.transformer.lm_head.weight, targets, None)

    def _hidden(self, batch: Batch, structure: Tensor) -> Tensor:
        """The hidden states [N, C] of the scored rows."""
        model = self.transformer
        attend = TreeAttention(
            model.config,
            batch.shape,
            batch.positions,
            batch.limit,
            batch.valid,
            structure,
            dtype=model.embed_tokens.weight.dtype,
            flash=self.flash,
        )
        hidden: Tensor = model(batch.ids.flatten(), batch.positions.flatten(), attend)
        return hidden.index_select(0, batch.scored)


def cross_entropy(hidden: Tensor, head: Tensor, targets: Tensor, shift: Tensor | None) -> Tensor:
    """Hidden [N, C], head [K, C], targets [N] int64 in [0, K), shift [K] or None to [N] float32 nats."""
    logits = (hidden @ head.T).float()
    return F.cross_entropy(logits if shift is None else logits + shift, targets, reduction="none")
