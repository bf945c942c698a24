"""Which flash-attn is installed: packages of several generations, and PyTorch's own copy of one of them.

Nothing here is imported before it is asked for, and nothing is found where there is no CUDA. A package that was built
against another PyTorch, or whose function has other parameters than are needed, counts as none.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

FlashVarlen = Callable[..., Tensor]
"""Attention over segments of different lengths, as `flash_attn_varlen_func` of flash-attn 2 is called."""

HOPPER: Final = 9
"""The major number of what flash-attn 3 is for."""


@functools.cache
def flash_varlen() -> FlashVarlen | None:
    """The varlen function of the newest package that fits the GPU: flash-attn 3, 4, 2, or PyTorch's; None without."""
    if not torch.cuda.is_available():
        return None
    major = torch.cuda.get_device_capability()[0]
    lengths = ("cu_seqlens_q", "cu_seqlens_k", "window_size")
    found = installed("flash_attn_interface", "flash_attn_varlen_func", lengths) if major == HOPPER else None
    if found is not None:
        return _Plain(found)
    found = installed("flash_attn.cute", "flash_attn_varlen_func", lengths) if major >= HOPPER else None
    if found is not None:
        return _Cute(found)
    found = installed("flash_attn", "flash_attn_varlen_func", lengths)
    if found is not None:
        return _Plain(found)
    found = installed("torch.nn.attention.varlen", "varlen_attn", ("cu_seq_q", "window_size", "enable_gqa"))
    return None if found is None else _Torch(found)


def installed(module: str, name: str, parameters: Sequence[str]) -> Callable[..., Any] | None:
    """The function `name` of `module`, if it is there and has `parameters`."""
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
        known = inspect.signature(found).parameters
    except (ImportError, AttributeError, OSError, ValueError):  # OSError: its library misses a symbol
        return None
    return found if all(parameter in known for parameter in parameters) else None


def first(result: Tensor | tuple[Tensor, ...]) -> Tensor:
    """The attention; some releases return what the softmax was divided by, too."""
    if isinstance(result, tuple):
        return result[0]
    return result


def bounds(past: int, *, causal: bool) -> tuple[int | None, int | None]:
    """A window as flash-attn 4 wants it: no bound is None, and of a causal row, the one ahead goes without saying."""
    return (None if past < 0 else past, 0 if causal and past >= 0 else None)


@dataclass(frozen=True, slots=True)
class _Plain:
    call: Callable[..., Any]

    def __call__(self, *args: Any, **options: Any) -> Tensor:
        return first(self.call(*args, **options))


@dataclass(frozen=True, slots=True)
class _Cute:
    call: Callable[..., Any]

    def __call__(  # noqa: PLR0913  (as flash-attn 2 has it)
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        ends_q: Tensor,
        ends_k: Tensor,
        longest_q: int,
        longest_k: int,
        *,
        causal: bool,
        window_size: tuple[int, int],
    ) -> Tensor:
        known = inspect.signature(self.call).parameters
        longest = {"max_seqlen_q": longest_q, "max_seqlen_k": longest_k}
        options = {name: value for name, value in longest.items() if name in known}
        window = bounds(window_size[0], causal=causal)
        found = self.call(
            q, k, v, cu_seqlens_q=ends_q, cu_seqlens_k=ends_k, causal=causal, window_size=window, **options
        )
        return first(found)


@dataclass(frozen=True, slots=True)
class _Torch:
    call: Callable[..., Any]

    def __call__(  # noqa: PLR0913  (as flash-attn 2 has it)
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        ends_q: Tensor,
        ends_k: Tensor,
        longest_q: int,
        longest_k: int,
        *,
        causal: bool,
        window_size: tuple[int, int],
    ) -> Tensor:
        window = (window_size[0], 0) if causal else window_size
        grouped = q.shape[1] != k.shape[1]
        lengths = (ends_q, ends_k, longest_q, longest_k)
        return first(self.call(q, k, v, *lengths, window_size=window, enable_gqa=grouped))
