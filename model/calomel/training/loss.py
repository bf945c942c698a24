"""The training loss of a batch: cross-entropy of the scored rows, of all parts at once."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask

from calomel.engine.transformer import Attend, Transformer
from calomel.training.attention import TreeAttention
from calomel.training.batch import Batch
from calomel.training.flex import FlexTreeAttention


class LossModel(nn.Module):
    """A transformer with its training loss, one module, so that it can be compiled as a whole."""

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(
        self, batch: Batch, structure: Tensor, masks: dict[int | None, BlockMask] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The loss of `batch`, and the cross-entropy [N] of each scored row in nats.

        Args:
            batch: see `Batch`.
            structure: `branch_structure` of the batch's shape.
            masks: `flex_masks` of the batch, to attend block-sparsely; None to attend densely.
        """
        config = self.transformer.config
        attend: Attend
        if masks is None:
            attend = TreeAttention(config, batch.shape, batch.positions, batch.limit, batch.valid, structure)
        else:
            attend = FlexTreeAttention(config, batch.shape.documents, masks)
        hidden = self.transformer(batch.ids.flatten(), batch.positions.flatten(), attend)
        logits = self.transformer.logits(hidden[batch.scored])
        cross_entropy = F.cross_entropy(logits, batch.targets, reduction="none")
        return (cross_entropy * batch.weights).sum(), cross_entropy.detach()
