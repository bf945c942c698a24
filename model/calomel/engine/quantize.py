"""Weights in eight bits: half the memory of bfloat16, a quarter of float32's.

Every row of a matrix has a scale of its own, so that its largest weight is the largest number of the type. Embeddings,
the head, norms and routers stay as they are. What multiplies differs by device:

- `int8` on a CPU: each token's activations are rounded to int8 too, and the product is one of integers (`_int_mm`),
  which is exact: a token's result does not depend on those beside it. PyTorch's kernel for int8 weights alone wants
  bfloat16 activations, and from sixteen rows on it takes longer than float32 (docs/decisions/).
- `int8` on a GPU: the weights are widened to the activations' type for the product; they are int8 in memory alone.
- `fp8` on a GPU that multiplies it (Hopper, Ada): `_scaled_mm`, with activations rounded by token.
- `fp8` elsewhere: the same roundings, multiplied in the activations' type. It saves memory and no time.
"""

from __future__ import annotations

import functools
from typing import Final, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calomel.engine.errors import CheckpointError
from calomel.engine.transformer import Stack, Transformer

Quantization = Literal["int8", "fp8"]

_LARGEST: Final = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}
_TYPES: Final = {"int8": torch.int8, "fp8": torch.float8_e4m3fn}
_SMALLEST: Final = 1e-12
# `_scaled_mm` on a GPU wants both sides of a matrix to be multiples of it.
_ALIGNED: Final = 16
_ROWS: Final = 4096
_ADA: Final = (8, 9)


def rounded(x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """X [N, K] as numbers of `dtype`, and the float32 scale [N, 1] of every row that makes them x again."""
    x = x.float()
    scale = x.abs().amax(dim=-1, keepdim=True).clamp_(min=_SMALLEST).div_(_LARGEST[dtype])
    small = x / scale
    return (small.round_() if dtype == torch.int8 else small).to(dtype), scale


def multiply(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    """X [..., K] times the rounded `weight` [N, K] with `scale` [N, 1]: [..., N] in the type of x."""
    flat = x.reshape(-1, x.shape[-1])
    if weight.dtype == torch.int8:
        out = _by_integers(flat, weight, scale) if x.device.type == "cpu" else _widened(flat, weight, scale)
    elif x.is_cuda and _has_fp8(x.device) and not (weight.shape[0] % _ALIGNED or weight.shape[1] % _ALIGNED):
        small, by_row = rounded(flat, weight.dtype)
        out = torch._scaled_mm(  # noqa: SLF001  (PyTorch's only fp8 product with a scale by row)
            small, weight.t(), scale_a=by_row, scale_b=scale.t(), out_dtype=torch.bfloat16
        )
    else:
        small, by_row = rounded(flat, weight.dtype)
        out = _widened((small.float() * by_row).to(x.dtype), weight, scale)
    return out.to(x.dtype).view(*x.shape[:-1], weight.shape[0])


def _by_integers(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    small, by_row = rounded(x, torch.int8)
    product = torch._int_mm(small, weight.t())  # noqa: SLF001  (PyTorch's only product of int8 matrices)
    return (product * by_row).mul_(scale.t())


def _widened(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return F.linear(x, weight.to(x.dtype)) * scale.t().to(x.dtype)


def _rounded_matrix(weight: Tensor, kind: Quantization) -> tuple[Tensor, Tensor]:
    """The same as `rounded`, some rows at a time: an expert layer in float32 would be gigabytes."""
    parts = [rounded(part, _TYPES[kind]) for part in weight.split(_ROWS)]
    return torch.cat([part for part, _ in parts]), torch.cat([scale for _, scale in parts])


@functools.cache
def _has_fp8(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= _ADA


class _Quantized(nn.Module):
    """What has rounded weights [N, K] and their scale."""

    def __init__(self, whole: nn.Linear | Stack, kind: Quantization) -> None:
        super().__init__()
        weight, scale = _rounded_matrix(whole.weight.detach(), kind)
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.scale = nn.Parameter(scale, requires_grad=False)


class QuantizedLinear(_Quantized):
    """A linear map with rounded weights [N, K], in the place of `whole`."""

    def __init__(self, whole: nn.Linear, kind: Quantization) -> None:
        super().__init__(whole, kind)
        self.bias = whole.bias

    def forward(self, x: Tensor) -> Tensor:
        """X [..., K] to [..., N]."""
        out = multiply(x, self.weight, self.scale)
        return out if self.bias is None else out + self.bias


class QuantizedStack(_Quantized):
    """One linear map of every expert with rounded weights, in the place of `whole`."""

    def __init__(self, whole: Stack, kind: Quantization) -> None:
        super().__init__(whole, kind)
        self.experts = whole.experts

    def part(self, expert: int, x: Tensor) -> Tensor:
        """X [N, in] through one expert: [N, out]."""
        size = self.weight.shape[0] // self.experts
        rows = slice(expert * size, (expert + 1) * size)
        return multiply(x, self.weight[rows], self.scale[rows])


def quantize_tensor(model: Transformer, name: str, kind: Quantization) -> None:
    """Round the parameter called `name`, where it is a matrix that is rounded: for whoever loads one after the other.

    Raises:
        CheckpointError: there is no such type.
    """
    if kind not in _TYPES:
        raise CheckpointError(f"quantize is {kind!r}; there are {', '.join(_TYPES)}")
    place, _, leaf = name.rpartition(".")
    if leaf != "weight" or not name.startswith("layers."):
        return
    module = model.get_submodule(place)
    parent, _, own = place.rpartition(".")
    if isinstance(module, nn.Linear):
        setattr(model.get_submodule(parent), own, QuantizedLinear(module, kind))
    elif isinstance(module, Stack):
        setattr(model.get_submodule(parent), own, QuantizedStack(module, kind))
