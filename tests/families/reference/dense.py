"""Whole forwards with no cache, every row under one mask: what cached forwards are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
        device = model.embed_tokens.weight.device
        mask = block_causal_mask(len(ids), block).to(device)
        hidden = model(torch.tensor(ids, device=device), torch.arange(len(ids), device=device), attend_under(mask))
        return model.logits(hidden)


def class_logits(network: Any, ids: Sequence[int], visible: Tensor | None = None) -> Tensor:
    """The logits [T, V] of `ids` by a class of transformers, whose rows see what is `visible` [T, T]; None for all."""
    mask = torch.zeros(len(ids), len(ids))
    if visible is not None:
        mask = mask.masked_fill(~visible, torch.finfo(torch.float32).min)
    with torch.inference_mode():
        found: Tensor = network(torch.tensor([list(ids)]), attention_mask=mask[None, None], use_cache=False).logits[0]
    return found
