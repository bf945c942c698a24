"""Which flash-attn is installed: packages of several generations, and PyTorch's own copy of one of them.

Nothing here is imported before it is asked for, and nothing is found where there is no CUDA. A package that was built
against another PyTorch, or whose function has other parameters than are needed, counts as none.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor

FlashVarlen = Callable[..., Tensor]
"""Attention over segments of different lengths, as `flash_attn_varlen_func` of flash-attn 2 is called."""

# The major number of what flash-attn 3 is for.
_HOPPER: Final = 9
_LENGTHS: Final = ("cu_seqlens_q", "cu_seqlens_k", "window_size")


@functools.cache
def flash_varlen() -> FlashVarlen | None:
    """The varlen function of the newest package that fits the GPU: flash-attn 3, 4, 2, or PyTorch's; None without."""
    if not torch.cuda.is_available():
        return None
    major = torch.cuda.get_device_capability()[0]
    known = (
        (major == _HOPPER, "flash_attn_interface", "flash_attn_varlen_func", _LENGTHS, _plain),
        (major >= _HOPPER, "flash_attn.cute", "flash_attn_varlen_func", _LENGTHS, _cute),
        (True, "flash_attn", "flash_attn_varlen_func", _LENGTHS, _plain),
        (True, "torch.nn.attention.varlen", "varlen_attn", ("cu_seq_q", "window_size", "enable_gqa"), _torch),
    )
    for fits, module, name, parameters, called in known:
        found = _installed(module, name, parameters) if fits else None
        if found is not None:
            return functools.partial(called, found)
    return None


def _installed(module: str, name: str, parameters: Sequence[str]) -> Callable[..., Any] | None:
    """The function `name` of `module`, if it is there and has `parameters`."""
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
        known = inspect.signature(found).parameters
    except (ImportError, AttributeError, OSError, ValueError):  # OSError: its library misses a symbol
        return None
    return found if all(parameter in known for parameter in parameters) else None


def _first(result: Tensor | tuple[Tensor, ...]) -> Tensor:
    """The attention; some releases return what the softmax was divided by, too."""
    return result[0] if isinstance(result, tuple) else result


def _plain(call: Callable[..., Any], *args: Any, **options: Any) -> Tensor:
    """flash-attn 2 and 3."""
    return _first(call(*args, **options))


def _cute(call: Callable[..., Any], *args: Any, causal: bool, window_size: tuple[int, int]) -> Tensor:
    """flash-attn 4: no bound is None, and of a causal row, the one ahead goes without saying."""
    q, k, v, ends_q, ends_k, longest_q, longest_k = args
    known = inspect.signature(call).parameters
    longest = {"max_seqlen_q": longest_q, "max_seqlen_k": longest_k}
    options = {name: value for name, value in longest.items() if name in known}
    past = window_size[0]
    window = (None if past < 0 else past, 0 if causal and past >= 0 else None)
    return _first(call(q, k, v, cu_seqlens_q=ends_q, cu_seqlens_k=ends_k, causal=causal, window_size=window, **options))


def _torch(call: Callable[..., Any], *args: Any, causal: bool, window_size: tuple[int, int]) -> Tensor:
    """PyTorch's own: it knows windows alone, and is told that heads are grouped."""
    q, k, *_ = args
    window = (window_size[0], 0) if causal else window_size
    return _first(call(*args, window_size=window, enable_gqa=q.shape[1] != k.shape[1]))
