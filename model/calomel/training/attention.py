"""How the rows of a batch attend: the front to itself, a branch to what it has read of the front and to itself.

Every row sees the front of its document up to its limit; a row of a branch also sees the branch's own head, and, in the
causal answer, what precedes it, or, on a canvas, all of that canvas. The causal answer is the clean copy of what the
canvases hide: no canvas row ever sees it.

A layer with a sliding window counts rows of the front, as positions do unless a gap was drawn between them.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.config import ModelConfig
from calomel.training.branch import head_rows, rows
from calomel.training.config import BatchShape

# Not infinite: a padding row that sees nothing must not become NaN.
_UNSEEN: Final = -1e9


def branch_structure(shape: BatchShape, *, logit_shift: bool) -> Tensor:
    """[K * R, K * R] bool: whether row q of the K branches may see row k, if all of them are valid.

    With shifted logits a canvas has the middle mark as its own first row, so it does not see the head's.
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
    found: Tensor = torch.block_diag(*[head | (own & ((query > 1) | causal))] * shape.holes).bool()
    return found


class TreeAttention:
    """Attention over fronts and branches.

    The front is causal: PyTorch's flash attention on a GPU, which also knows a window, else whatever
    `scaled_dot_product_attention` has. All branches of a document are one call with a mask, over keys that stay where
    they are: no front is copied for its branches, and no scores are kept.

    Args:
        config: of the model.
        shape: of the batch.
        positions, limit, valid: [B, T], see `Batch`.
        structure: `branch_structure` of the shape.
        dtype: of queries, keys and values.
        flash: whether the front attends by `flash`.
    """

    def __init__(
        self,
        config: ModelConfig,
        shape: BatchShape,
        positions: Tensor,
        limit: Tensor,
        valid: Tensor,
        structure: Tensor,
        *,
        dtype: torch.dtype,
        flash: bool = False,
    ) -> None:
        self._config, self._flash = config, flash
        self._documents, self._rows = positions.shape
        self._front = front = shape.front
        self._group = config.num_attention_heads // config.num_key_value_heads
        own = (structure & valid[:, None, front:]).expand(-1, self._rows - front, -1)
        limit, positions = limit.long(), positions.long()
        key = torch.arange(front, device=positions.device)
        read = limit[:, front:, None]  # [B, K * R, 1]
        # Where a row of a branch would stand in the front: as many rows behind the last one read as positions.
        place = read - 1 + positions[:, front:, None] - positions.gather(1, limit[:, front:] - 1)[..., None]
        seen = key < read
        self._masks: dict[int | None, Tensor] = {None: self._mask(torch.cat((seen, own), dim=-1), dtype)}
        self._window = config.sliding_window
        if self._window is not None and front + head_rows(shape) + shape.canvas > self._window:
            seen = seen & (place - key < self._window)
            self._masks[self._window] = self._mask(torch.cat((seen, own), dim=-1), dtype)

    def _mask(self, seen: Tensor, dtype: torch.dtype) -> Tensor:
        """What is added to the scores of all query heads of a key head: [B, 1, G * K * R, T]."""
        mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, _UNSEEN)
        return mask[:, None].repeat(1, 1, self._group, 1)

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [B * T, Hq, D], k and v [B * T, Hkv, D] to [B * T, Hq, D]."""
        window = self._config.window(layer)
        window = window if window in self._masks else None  # it hides nothing in a batch this short
        q, k, v = (each.unflatten(0, (self._documents, self._rows)) for each in (q, k, v))
        front, branch = q.split((self._front, self._rows - self._front), dim=1)
        alone = causal(front, k[:, : self._front], v[:, : self._front], window, flash=self._flash)
        # The query heads of a key head lie one behind the other, as more rows: keys are not repeated for them.
        folded = branch.unflatten(2, (-1, self._group)).permute(0, 2, 3, 1, 4).flatten(2, 3)  # [B, Hkv, G * K * R, D]
        found = F.scaled_dot_product_attention(
            folded, k.transpose(1, 2), v.transpose(1, 2), attn_mask=self._masks[window]
        )
        found = found.unflatten(2, (self._group, -1)).permute(0, 3, 1, 2, 4).flatten(2, 3)  # [B, K * R, Hq, D]
        return torch.cat((alone, found), dim=1).flatten(0, 1)


def causal(q: Tensor, k: Tensor, v: Tensor, window: int | None, *, flash: bool) -> Tensor:
    """Q [B, F, Hq, D], k and v [B, F, Hkv, D] to [B, F, Hq, D]; a row sees the last `window`, itself included."""
    front = q.shape[1]
    if flash:
        left = None if window is None else window - 1
        found: Tensor = torch.ops.aten._flash_attention_forward(  # noqa: SLF001  (the door that knows a window)
            q, k, v, None, None, front, front, 0.0, True, False, window_size_left=left, window_size_right=0
        )[0]
        return found
    mask = None
    if window is not None and window < front:
        row = torch.arange(front, device=q.device)
        seen = (row <= row[:, None]) & (row[:, None] - row < window)
        mask = torch.zeros(seen.shape, dtype=q.dtype, device=q.device).masked_fill_(~seen, _UNSEEN)
    group = q.shape[2] // k.shape[2]
    k, v = (each.repeat_interleave(group, dim=2) for each in (k, v))
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None).transpose(1, 2)


def flash_works(config: ModelConfig, device: torch.device) -> bool:
    """Whether `causal` has flash attention on `device` that is right, with and without a window."""
    if device.type != "cuda":
        return False
    width, window, front = config.head_dim, 72, 200
    heads = (config.num_attention_heads, config.num_key_value_heads, config.num_key_value_heads)
    given = [torch.randn(2, front, count, width, device=device, dtype=torch.bfloat16) for count in heads]
    try:
        return all(
            torch.allclose(one.float(), other.float(), atol=0.05, rtol=0.05)
            for limit in (None, window)
            for one, other in zip(*(_slopes(given, limit, flash=flash) for flash in (True, False)), strict=True)
        )
    except RuntimeError:
        return False


def _slopes(given: list[Tensor], window: int | None, *, flash: bool) -> tuple[Tensor, ...]:
    """What `causal` gives, and the gradients of its queries, keys and values."""
    q, k, v = (each.detach().requires_grad_() for each in given)
    out = causal(q, k, v, window, flash=flash)
    return out, *torch.autograd.grad(out.float().square().sum(), (q, k, v))
