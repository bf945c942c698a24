"""Attention by flash-attn over spans of an arena: block tables say where they are, and lengths are tensors.

Four kernels can do it, of which the first that is there is taken: flash-attn 3 (Hopper), 4 (Hopper and Blackwell), 2,
and the copy of flash-attn 2 in PyTorch itself (2.12 and newer). Each attends to the keys before the end of a request;
`causal` and the window are counted back from the last row, which is where the rows of a step end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch
from torch import Tensor

from calomel.engine.config import ModelConfig
from calomel.engine.flash import HOPPER, bounds, first, installed
from calomel.engine.resident.arena import PAGE, Arena
from calomel.engine.resident.attention import Attending, Places
from calomel.engine.resident.shape import StepShape, most_keys


class PagedKernel(Protocol):
    """Attention of the last rows of requests to all their keys before `lengths`."""

    def __call__(self, q: Tensor, keys: Tensor, values: Tensor, keyed: Keyed, *, causal: bool, past: int) -> Tensor:
        """Q [B, R, Hq, D], keys and values [pages, PAGE, Hkv, D] to [B, R, Hq, D]; `past` keys before, -1 for all."""
        ...


@dataclass(frozen=True, slots=True)
class Keyed:
    """Where the keys of B requests are: block tables `pages` [B, P] int32, `lengths` [B] int32, `most` of them."""

    pages: Tensor
    lengths: Tensor
    most: int


class FlashAttention:
    """The `Attend` of one step: writes the keys and values of all rows, then attends by `kernel`.

    Causal rows and those of a canvas are one call each; without causal rows there is one.
    """

    def __init__(
        self, kernel: PagedKernel, config: ModelConfig, arena: Arena, shape: StepShape, places: Places
    ) -> None:
        self._kernel = kernel
        self._config = config
        self._arena = arena
        self._shape = shape
        self._places = places
        pages = -(-most_keys(config) // PAGE)
        table = places.start[:, None] // PAGE + torch.arange(pages, device=places.start.device)
        last = arena.unread // PAGE
        self._keyed = Keyed(table.clamp(max=last).int(), places.end.int(), most_keys(config))

    @classmethod
    def by(cls, kernel: PagedKernel) -> Attending:
        """Attention by `kernel`."""
        return functools.partial(cls, kernel)

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [B * R, Hq, D], k and v [B * R, Hkv, D] to [B * R, Hq, D]."""
        keys, values = self._arena.keys[layer], self._arena.values[layer]
        keys.index_copy_(0, self._places.write, k)
        values.index_copy_(0, self._places.write, v)
        window = self._config.window(layer)
        past = -1 if window is None else window - 1
        asked = q.unflatten(0, (self._shape.canvases, -1))
        pages = (keys.unflatten(0, (-1, PAGE)), values.unflatten(0, (-1, PAGE)))
        canvas = self._kernel(asked[:, -self._shape.rows :], *pages, self._keyed, causal=False, past=past)
        if not self._shape.causal:
            return canvas.reshape(q.shape)
        causal = self._kernel(asked, *pages, self._keyed, causal=True, past=past)
        on_canvas = (self._places.positions >= self._places.canvas[:, None])[:, -self._shape.rows :, None, None]
        tail = torch.where(on_canvas, canvas, causal[:, -self._shape.rows :])
        return torch.cat((causal[:, : -self._shape.rows], tail), dim=1).reshape(q.shape)


def paged_kernel(device: torch.device, dtype: torch.dtype) -> PagedKernel | None:
    """The kernel for tensors of `dtype` on `device`; None where none is there."""
    if device.type != "cuda" or dtype not in (torch.float16, torch.bfloat16):
        return None
    major = torch.cuda.get_device_capability(device)[0]
    return next((kernel for find in _KERNELS if (kernel := find(major)) is not None), None)


def _flash_3(major: int) -> PagedKernel | None:
    found = installed("flash_attn_interface", "flash_attn_with_kvcache", ("cache_seqlens", "page_table"))
    return _WithCache(found, "page_table") if found is not None and major == HOPPER else None


def _flash_4(major: int) -> PagedKernel | None:
    found = installed("flash_attn.cute", "flash_attn_varlen_func", ("seqused_k", "page_table"))
    # On Hopper it reads no pages yet.
    return _Cute(found) if found is not None and major > HOPPER else None


def _flash_2(major: int) -> PagedKernel | None:
    del major
    found = installed("flash_attn", "flash_attn_with_kvcache", ("cache_seqlens", "block_table"))
    return None if found is None else _WithCache(found, "block_table")


def _torch(major: int) -> PagedKernel | None:
    del major
    found = installed("torch.nn.attention.varlen", "varlen_attn", ("seqused_k", "block_table"))
    return None if found is None else _Varlen(found)


_KERNELS: Final = (_flash_3, _flash_4, _flash_2, _torch)


@dataclass(frozen=True, slots=True)
class _WithCache:
    """`flash_attn_with_kvcache` of flash-attn 2 and 3, which name the block table differently."""

    call: Callable[..., Any]
    table: str

    def __call__(self, q: Tensor, keys: Tensor, values: Tensor, keyed: Keyed, *, causal: bool, past: int) -> Tensor:
        window = (past, 0 if causal else -1)
        where = {"cache_seqlens": keyed.lengths, self.table: keyed.pages}
        return first(self.call(q, keys, values, causal=causal, window_size=window, **where))


@dataclass(frozen=True, slots=True)
class _Cute:
    """`flash_attn_varlen_func` of flash-attn 4: no length is -1, it is None."""

    call: Callable[..., Any]

    def __call__(self, q: Tensor, keys: Tensor, values: Tensor, keyed: Keyed, *, causal: bool, past: int) -> Tensor:
        window = bounds(past, causal=causal)
        where = {"seqused_k": keyed.lengths, "page_table": keyed.pages}
        return first(self.call(q, keys, values, causal=causal, window_size=window, **where))


@dataclass(frozen=True, slots=True)
class _Varlen:
    """`varlen_attn` of PyTorch: the rows of all requests one behind the other."""

    call: Callable[..., Any]

    def __call__(self, q: Tensor, keys: Tensor, values: Tensor, keyed: Keyed, *, causal: bool, past: int) -> Tensor:
        batch, rows, heads, _ = q.shape
        ends = torch.arange(0, (batch + 1) * rows, rows, dtype=torch.int32, device=q.device)
        out = self.call(
            q.flatten(0, 1),
            keys,
            values,
            ends,
            None,
            rows,
            keyed.most,
            window_size=(past, 0 if causal else -1),
            enable_gqa=heads != keys.shape[2],
            seqused_k=keyed.lengths,
            block_table=keyed.pages,
        )
        return first(out).reshape(q.shape)
