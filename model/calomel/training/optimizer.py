"""Muon for the matrices, AdamW for embeddings and norms (Jordan et al. 2024, "Muon"), and their learning rates.

`torch.optim.Muon` orthogonalises in bfloat16, which processors without bfloat16 emulate slowly, and ignores fused
projections; here the precision follows the device and each part of a fused matrix is orthogonalised separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch import Tensor, nn

from calomel.engine.checkpoint import native_bfloat16


def rate_factor(step: int, progress: float, *, warmup_steps: int, decay_share: float) -> float:
    """The factor of the learning rates at `step`, when the share `progress` of the run is over."""
    warm = min(1.0, (step + 1) / max(1, warmup_steps))
    if decay_share <= 0:
        return warm
    return warm * min(1.0, max(0.0, 1.0 - progress) / decay_share)


# Quintic Newton-Schulz coefficients of the Muon reference implementation.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS: Final = 5
_MOMENTUM: Final = 0.95


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised. Every parameter is a matrix; `parts` are the row counts of its fused pieces."""

    def __init__(self, parameters: Iterable[tuple[Tensor, tuple[int, ...]]], lr: float, weight_decay: float) -> None:
        groups = [{"params": [parameter], "parts": parts} for parameter, parts in parameters]
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update; `closure` is not supported and must be None."""
        if closure is not None:
            raise ValueError("Muon takes no closure")
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state: dict[str, Any] = self.state[parameter]
                momentum = state.setdefault("momentum", torch.zeros_like(parameter))
                momentum.lerp_(parameter.grad, 1 - _MOMENTUM)
                update = parameter.grad.lerp(momentum, _MOMENTUM)
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                pieces = [orthogonalise(piece) for piece in update.split(list(group["parts"]))]
                parameter.add_(torch.cat(pieces), alpha=-group["lr"])


def orthogonalise(matrix: Tensor) -> Tensor:
    """The nearest semi-orthogonal matrix, roughly, scaled by sqrt(max(1, rows / columns)); matrix [R, C]."""
    x = matrix.to(torch.bfloat16 if matrix.is_cuda or native_bfloat16() else torch.float32)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / (x.norm() + 1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    x = x.T if tall else x
    scale: float = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
    return x.to(matrix.dtype) * scale


def make_optimizers(
    model: nn.Module, *, muon_lr: float, adam_lr: float, weight_decay: float
) -> tuple[Muon, torch.optim.AdamW]:
    """Split the parameters of a `Transformer`: matrices of the layers to Muon, the rest to AdamW."""
    matrices: list[tuple[Tensor, tuple[int, ...]]] = []
    others: list[Tensor] = []
    seen: set[int] = set()
    for name, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            if isinstance(module, nn.Linear) and "layers." in name and parameter.ndim > 1:
                matrices.append((parameter, _parts(name, model, parameter.shape[0])))
            else:
                others.append(parameter)
    adam = torch.optim.AdamW(others, lr=adam_lr, betas=(0.9, 0.95), weight_decay=0.0, eps=1e-10, fused=True)
    return Muon(matrices, lr=muon_lr, weight_decay=weight_decay), adam


def _parts(name: str, model: nn.Module, count: int) -> tuple[int, ...]:
    if name.endswith("gate_up_proj"):
        return (count // 2, count // 2)
    if name.endswith("qkv_proj"):
        attention: Any = model.get_submodule(name.rpartition(".")[0])
        heads = (attention.q_heads, attention.kv_heads, attention.kv_heads)
        return tuple(each * attention.head_dim for each in heads)
    return (count,)
