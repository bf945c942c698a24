"""A whole forward with no cache: every row under one mask. What cached forwards are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.transformer import Attend, Transformer


def block_causal_mask(size: int, block: int) -> Tensor:
    """[size, size], True where a row sees a column: all of its own block, and of every block before."""
    number = torch.arange(size) // block
    return number[:, None] >= number


def attend_under(mask: Tensor) -> Attend:
    """Attention of all rows at once under `mask` [T, T]."""

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        groups = q.shape[1] // k.shape[1]
        keys, values = (x.repeat_interleave(groups, dim=1).transpose(0, 1) for x in (k, v))
        return F.scaled_dot_product_attention(q.transpose(0, 1), keys, values, mask).transpose(0, 1)

    return attend


def whole_logits(model: Transformer, ids: Sequence[int], block: int) -> Tensor:
    """The logits [T, V] of `ids` under a block-causal mask, in one forward."""
    with torch.inference_mode():
        hidden = model(torch.tensor(ids), torch.arange(len(ids)), attend_under(block_causal_mask(len(ids), block)))
        return model.logits(hidden)
