"""The training loss of a batch: cross-entropy of the scored rows, of all parts at once."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from calomel.engine.transformer import Transformer
from calomel.training.attention import TreeAttention
from calomel.training.batch import Batch


class LossModel(nn.Module):
    """A transformer with its training loss, one module, so that it can be compiled as a whole."""

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(self, batch: Batch, structure: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of `batch` (see `Batch` and `branch_structure`), and the cross-entropy [N] of each row in nats."""
        config = self.transformer.config
        attend = TreeAttention(config, batch.shape, batch.positions, batch.limit, batch.valid, structure)
        hidden = self.transformer(batch.ids.flatten(), batch.positions.flatten(), attend)
        logits = self.transformer.logits(hidden[batch.scored])
        cross_entropy = F.cross_entropy(logits, batch.targets, reduction="none")
        return (cross_entropy * batch.weights).sum(), cross_entropy.detach()
