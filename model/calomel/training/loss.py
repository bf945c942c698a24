"""The training loss of a batch: cross-entropy of the scored rows, of all parts at once.

The head has a third of a small model's multiplications. In training it reads the tokens that a batch asks for and a
sample of the others, which stands for all of them (sampled softmax, Jean et al. 2015): of some 6,000 rows over 8,192
tokens that is a quarter. Logits live for a few rows at a time, and their gradient is taken while they are in the cache.
"""

from __future__ import annotations

from typing import Any, Final, cast

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask

from calomel.engine.transformer import Attend, Transformer
from calomel.training.attention import TreeAttention
from calomel.training.batch import Batch
from calomel.training.flex import FlexTreeAttention

# Rows whose logits exist at a time: on a CPU they stay in its cache.
_CPU_ROWS: Final = 256
_GPU_ROWS: Final = 8192


class LossModel(nn.Module):
    """A transformer with its training loss.

    Args:
        transformer: the model to train.
        negatives: how many tokens that no row asks for stand for all of those; 0 for all tokens.
        compiled: compile everything up to the head.
    """

    def __init__(self, transformer: Transformer, *, negatives: int = 0, compiled: bool = False) -> None:
        super().__init__()
        self.transformer = transformer
        self._negatives = negatives
        self._read: Any = torch.compile(self._scored, dynamic=False) if compiled else self._scored

    def forward(
        self, batch: Batch, structure: Tensor, masks: dict[int | None, BlockMask] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The loss of `batch`, and the cross-entropy [N] of each scored row in nats.

        Args:
            batch: see `Batch`.
            structure: `branch_structure` of the batch's shape.
            masks: `flex_masks` of the batch, to attend block-sparsely; None to attend densely.
        """
        hidden, head = self._read(batch, structure, masks), self.transformer.lm_head.weight
        targets, shift = batch.targets, None
        if self._negatives:
            classes, targets, shift = sampled(batch, head.shape[0], self._negatives)
            head = head[classes]
        loss, cross_entropy = _CrossEntropy.apply(hidden, head, targets, batch.weights, shift)  # type: ignore[no-untyped-call]
        return loss, cross_entropy

    def measure(self, batch: Batch, structure: Tensor, masks: dict[int | None, BlockMask] | None = None) -> Tensor:
        """The cross-entropy [N] of each scored row over all tokens, in nats; see `forward`."""
        # With gradients, since the compiled step is reused as it is.
        hidden = self._read(batch, structure, masks).detach()
        with torch.no_grad():
            found = _CrossEntropy.apply(hidden, self.transformer.lm_head.weight, batch.targets, batch.weights, None)  # type: ignore[no-untyped-call]
        return cast("Tensor", found[1])

    def _scored(self, batch: Batch, structure: Tensor, masks: dict[int | None, BlockMask] | None) -> Tensor:
        """The hidden states [N, C] of the scored rows."""
        config = self.transformer.config
        attend: Attend
        if masks is None:
            attend = TreeAttention(config, batch.shape, batch.positions, batch.limit, batch.valid, structure)
        else:
            attend = FlexTreeAttention(config, batch.shape.documents, masks)
        hidden: Tensor = self.transformer(
            batch.ids.flatten(), batch.positions.flatten(), attend, batch.text.flatten(0, 1)
        )
        return hidden[batch.scored]


def sampled(batch: Batch, vocab: int, negatives: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which tokens a batch is scored over.

    Returns `classes` [K], the tokens that some row asks for and `negatives` of the others; the targets [N] as indices
    of them; and [K] what is added to a logit, so that the sampled ones stand for all that were left out.
    """
    asked = torch.zeros(vocab, dtype=torch.bool, device=batch.targets.device)
    asked[batch.targets] = True
    others = (~asked).nonzero()[:, 0]
    kept = others[torch.randperm(len(others), device=others.device)[:negatives]]
    classes = torch.cat((asked.nonzero()[:, 0], kept))
    shift = torch.zeros(len(classes), device=classes.device)
    if len(kept):
        shift[-len(kept) :] = torch.log(torch.tensor(len(others) / len(kept)))
    place = torch.empty(vocab, dtype=torch.int64, device=classes.device)
    place[classes] = torch.arange(len(classes), device=classes.device)
    return classes, place[batch.targets], shift


class _CrossEntropy(torch.autograd.Function):
    """The weighted sum of the rows' cross-entropies, a few rows at a time, gradients included."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, head: Tensor, targets: Tensor, weights: Tensor, shift: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Hidden [N, C], head [K, C], targets [N] in [0, K), weights [N], shift [K] to the loss and [N] nats."""
        wanted = ctx.needs_input_grad[0]
        by_hidden = torch.empty_like(hidden) if wanted else None
        by_head = torch.zeros_like(head) if wanted else None
        found = torch.empty(len(hidden), dtype=torch.float32, device=hidden.device)
        for at in range(0, len(hidden), rows := _GPU_ROWS if hidden.is_cuda else _CPU_ROWS):
            part, index = hidden[at : at + rows], targets[at : at + rows, None]
            logits = (part @ head.T).float()
            if shift is not None:
                logits += shift
            total = logits.logsumexp(-1, keepdim=True)
            found[at : at + rows] = (total - logits.gather(-1, index))[:, 0]
            if by_hidden is None or by_head is None:
                continue
            weight = weights[at : at + rows, None]
            slope = logits.sub_(total).exp_().mul_(weight)
            slope.scatter_add_(-1, index, -weight)
            by_hidden[at : at + rows] = slope @ head
            by_head += slope.T @ part
        if wanted:
            ctx.save_for_backward(by_hidden, by_head)
        ctx.mark_non_differentiable(found)
        return (found * weights).sum(), found

    @staticmethod
    def backward(ctx: Any, loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the loss by hidden and head."""
        by_hidden, by_head = ctx.saved_tensors
        return loss * by_hidden, loss * by_head, None, None, None
