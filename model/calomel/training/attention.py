"""How the rows of a training batch attend: one mask, said once, with two backends.

Every row sees the front of its document up to its limit; a row of a branch also sees the branch's own head, and, in the
causal answer, what precedes it, or, on a canvas, all of that canvas. The causal answer is the clean copy of what the
canvases hide: no canvas row ever sees it.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from calomel.engine.config import ModelConfig
from calomel.training.branch import head_rows, rows
from calomel.training.config import BatchShape

# The front is attended from in so many blocks: more of them save less and compile longer.
_BLOCKS: Final = 4
# Not infinite: a row of padding that sees nothing must not become NaN.
_UNSEEN: Final = -1e9


def branch_structure(shape: BatchShape, *, logit_shift: bool) -> Tensor:
    """[R, R] bool: may branch row q see branch row k, were all of them valid.

    With shifted logits a canvas holds the middle mark as its own first row, so it does not see the head's.
    """
    count, begin = rows(shape), head_rows(shape)
    index = torch.arange(count)
    part = torch.where(index < begin, 0, 1 + (index - begin) // shape.canvas)  # 0 head, 1 causal, 2 and 3 canvases
    query, key = part[:, None], part[None, :]
    causal = index[:, None] >= index[None, :]
    head = (key == 0) & ((query > 0) | causal)
    if logit_shift:
        head &= ~((query > 1) & (index[None, :] == begin - 1))
    own = (query == key) & (query > 0)
    return head | (own & ((query > 1) | causal))


class TreeAttention:
    """Dense attention over front and branches; the reference, and the fast one on a CPU.

    Scores of all rows against the front are one matrix product a head, without copies of the front for its branches.
    The front reads itself in blocks of rows, each up to its own end: half of what is after a row is not computed, and a
    block's scores stay in the cache. Masks are added: a fill by a condition is not vectorised.
    """

    def __init__(
        self, config: ModelConfig, shape: BatchShape, positions: Tensor, limit: Tensor, valid: Tensor, structure: Tensor
    ) -> None:
        self._config = config
        self._shape = shape
        self._documents = positions.shape[0]
        front = shape.front
        key = torch.arange(front, device=positions.device)
        seen = (key < limit[..., None]) & valid[:, None, :front]  # [B, T, F]
        distance = positions[..., None] - positions[:, None, :front]
        window = config.sliding_window or config.max_position_embeddings
        self._front_masks = {None: _added(seen), config.sliding_window: _added(seen & (distance < window))}
        branches = valid[:, front:].unflatten(1, (shape.holes, -1))  # [B, K, R]
        self._branch_mask = _added(structure & branches[:, :, None, :])[:, None]  # [B, 1, K, R, R]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [B * T, Hq, D], k and v [B * T, Hkv, D] to [B * T, Hq, D]."""
        shape, config = self._shape, self._config
        group = config.num_attention_heads // config.num_key_value_heads
        q = q.unflatten(0, (self._documents, -1)).transpose(1, 2) * config.head_dim**-0.5  # [B, Hq, T, D]
        k = k.unflatten(0, (self._documents, -1)).transpose(1, 2).repeat_interleave(group, dim=1)
        v = v.unflatten(0, (self._documents, -1)).transpose(1, 2).repeat_interleave(group, dim=1)
        front, holes = shape.front, shape.holes
        mask = self._front_masks[config.window(layer)][:, None]  # [B, 1, T, F]
        alone = []
        size = -(-front // _BLOCKS)
        for begin in range(0, front, size):
            end = min(front, begin + size)
            scores = q[:, :, begin:end] @ k[:, :, :end].transpose(-1, -2) + mask[:, :, begin:end, :end]
            alone.append(scores.softmax(-1) @ v[:, :, :end])
        inner_q = q[:, :, front:].unflatten(2, (holes, -1))  # [B, H, K, R, D]
        inner_k = k[:, :, front:].unflatten(2, (holes, -1))
        inner_v = v[:, :, front:].unflatten(2, (holes, -1))
        inner = inner_q @ inner_k.transpose(-1, -2) + self._branch_mask
        outer = q[:, :, front:] @ k[:, :, :front].transpose(-1, -2) + mask[:, :, front:]
        weights = torch.cat((outer.unflatten(2, (holes, -1)), inner), dim=-1).softmax(-1)
        branch = (weights[..., :front].flatten(2, 3) @ v[:, :, :front]) + (weights[..., front:] @ inner_v).flatten(2, 3)
        return torch.cat((*alone, branch), dim=2).transpose(1, 2).flatten(0, 1)


def _added(seen: Tensor) -> Tensor:
    """What is added to scores: nothing where a row sees, so much elsewhere that nothing is left of them."""
    return torch.zeros(seen.shape, device=seen.device).masked_fill(~seen, _UNSEEN)
