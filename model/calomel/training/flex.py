"""The mask of `calomel.training.attention` as a block-sparse one, for GPUs (FlexAttention, Dong et al. 2024).

Most blocks of the dense scores of a batch are empty, as branches do not see each other. On a GPU they are skipped.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from calomel.engine.config import ModelConfig
from calomel.training.branch import rows
from calomel.training.config import BatchShape

_BLOCK: Final = 128


class FlexTreeAttention:
    """Block-sparse attention over front and branches; equal to `TreeAttention`, faster on a GPU."""

    def __init__(self, config: ModelConfig, documents: int, masks: dict[int | None, BlockMask]) -> None:
        self._config = config
        self._documents = documents
        self._masks = masks

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [B * T, Hq, D], k and v [B * T, Hkv, D] to [B * T, Hq, D]."""
        q, k, v = (each.unflatten(0, (self._documents, -1)).transpose(1, 2) for each in (q, k, v))
        mask = self._masks[self._config.window(layer)]
        out: Any = flex_attention(q, k, v, block_mask=mask, enable_gqa=True)
        attended: Tensor = out.transpose(1, 2).flatten(0, 1)
        return attended


def flex_masks(
    config: ModelConfig, shape: BatchShape, positions: Tensor, limit: Tensor, valid: Tensor, structure: Tensor
) -> dict[int | None, BlockMask]:
    """One block mask for each kind of layer of `config`. Arguments as in `TreeAttention`."""
    front, size = shape.front, rows(shape)
    documents, total = positions.shape

    def mask_for(window: int | None) -> BlockMask:
        def visible(document: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            to_front = (key < front) & (key < limit[document, query])
            if window is not None:
                to_front = to_front & (positions[document, query] - positions[document, key] < window)
            branch_query, branch_key = torch.clamp(query - front, min=0), torch.clamp(key - front, min=0)
            inside = structure[branch_query % size, branch_key % size]
            same = (query >= front) & (key >= front) & (branch_query // size == branch_key // size)
            return (to_front | (same & inside)) & valid[document, key]

        return create_block_mask(
            visible, documents, None, total, total, device=str(positions.device), BLOCK_SIZE=_BLOCK
        )

    return {window: mask_for(window) for window in {config.window(layer) for layer in range(config.num_hidden_layers)}}
