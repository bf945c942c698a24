"""One update of all weights, by Muon and Adam, over float32 masters that lie one behind the other.

The model's own parameters are views of a second such row, in the precision of its arithmetic. So an update is some
hundred operations whatever the number of layers, none of which asks for a result on the host: it can be recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor, nn

from calomel.engine.checkpoint import native_bfloat16
from calomel.engine.transformer import Transformer
from calomel.training.config import Optimization


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
# Of Adam.
_FIRST, _SECOND, _EPS = 0.9, 0.95, 1e-10


class Optimizer:
    """The weights of `model` and what an update of them needs; takes the parameters' memory over.

    Args:
        model: whose parameters become views.
        options: learning rates, weight decay, norm of the gradient, average.
        dtype: the precision of the parameters from now on.

    Attributes:
        state: what a run resumes from, by name: float32 vectors over all parameters (`weights`, `average`), over the
            matrices of layers (`momentum`) or the others (`first`, `second`), and the number of updates (`count`).
    """

    def __init__(self, model: Transformer, options: Optimization, dtype: torch.dtype = torch.float32) -> None:
        named = dict(_by_kind(model))
        self._parameters = [parameter for parameter, parts in named.values() if parts]
        self._pieces = [(rows, parameter.shape[1]) for parameter, parts in named.values() for rows in parts]
        self._split = sum(parameter.numel() for parameter in self._parameters)
        self._parameters += [parameter for parameter, parts in named.values() if not parts]
        self._options = options
        weights = torch.cat([parameter.detach().flatten().float() for parameter in self._parameters])
        self._working = weights.to(dtype, copy=True)
        for parameter, view in zip(self._parameters, self._views(self._working), strict=True):
            parameter.data = view
        matrices, others = weights.split((self._split, len(weights) - self._split))
        self.state = {
            "weights": weights,
            "average": weights.clone(),
            "momentum": torch.zeros_like(matrices),
            "first": torch.zeros_like(others),
            "second": torch.zeros_like(others),
            "count": torch.zeros((), device=weights.device),
        }
        self._gradient = torch.zeros_like(weights)
        self._factor = torch.zeros((), device=weights.device)
        self._update: Callable[[], None] | None = None

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from another one's `state`, in this one's memory."""
        for name, tensor in self.state.items():
            tensor.copy_(state[name])
        self._working.copy_(self.state["weights"])

    def begin(self) -> None:
        """Take the model's weights as they are for the masters, and for their average."""
        self.state["weights"].copy_(self._working)
        self.state["average"].copy_(self._working)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The model has the average of its weights for a while."""
        self._working.copy_(self.state["average"])
        try:
            yield
        finally:
            self._working.copy_(self.state["weights"])

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """Update the weights by the gradients of the parameters, which are gone then; `factor` is that of the rates."""
        self._gradient.copy_(torch.cat([parameter.grad.flatten() for parameter in self._parameters]))  # type: ignore[union-attr]
        for parameter in self._parameters:
            parameter.grad = None
        self._factor.fill_(factor)
        if self._update is None:
            self.update()
            self._update = self.update if self._factor.device.type != "cuda" else _recorded(self.update)
        else:
            self._update()

    def update(self) -> None:
        """One update by the gradient that `step` has gathered."""
        state, options, gradient = self.state, self._options, self._gradient
        state["count"].add_(1.0)
        # As in PyTorch's clip_grad_norm_.
        gradient.mul_((options.max_grad_norm / (gradient.norm() + 1e-6)).clamp(max=1.0))
        sizes = (self._split, len(gradient) - self._split)
        (matrices, others), (slopes, rest) = state["weights"].split(sizes), gradient.split(sizes)
        self._muon(matrices, slopes)
        self._adam(others, rest)
        self._working.copy_(state["weights"])
        if options.average:
            # During the first steps, the mean of them all: the initial weights are soon forgotten.
            keep = (1.0 - 1.0 / state["count"]).clamp(max=options.average)
            state["average"].lerp_(state["weights"], 1.0 - keep)

    def _muon(self, weights: Tensor, gradient: Tensor) -> None:
        options, momentum = self._options, self.state["momentum"]
        rate = self._factor * options.muon_lr
        momentum.lerp_(gradient, 1 - _MOMENTUM)
        changes = list(gradient.lerp(momentum, _MOMENTUM).split([rows * columns for rows, columns in self._pieces]))
        # Matrices of one shape at once: on a GPU a small product takes less time than its launch.
        alike: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for index, shape in enumerate(self._pieces):
            alike[shape].append(index)
        for shape, indices in alike.items():
            found = orthogonalise(torch.stack([changes[index].view(shape) for index in indices]))
            for index, change in zip(indices, found, strict=True):
                changes[index] = change.reshape(-1)
        weights.mul_(1 - rate * options.weight_decay).sub_(torch.cat(changes).mul_(rate))

    def _adam(self, weights: Tensor, gradient: Tensor) -> None:
        first, second, count = self.state["first"], self.state["second"], self.state["count"]
        first.lerp_(gradient, 1 - _FIRST)
        second.lerp_(gradient.square(), 1 - _SECOND)
        spread = (second / (1 - torch.pow(_SECOND, count))).sqrt_().add_(_EPS)
        weights.sub_((first / spread).mul_(self._factor * self._options.adam_lr / (1 - torch.pow(_FIRST, count))))

    def _views(self, row: Tensor) -> Iterator[Tensor]:
        """A row over all parameters, in their shapes."""
        parts = row.split([parameter.numel() for parameter in self._parameters])
        for part, parameter in zip(parts, self._parameters, strict=True):
            yield part.view(parameter.shape)


def _recorded(update: Callable[[], None]) -> Callable[[], None]:
    """`update` as one launch on a GPU; itself, if it cannot be recorded."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            update()
    except RuntimeError:
        return update
    return graph.replay


def orthogonalise(matrices: Tensor) -> Tensor:
    """The nearest semi-orthogonal matrices, roughly, scaled by sqrt(max(1, rows / columns)); matrices [N, R, C]."""
    x = matrices.to(torch.bfloat16 if matrices.is_cuda or native_bfloat16() else torch.float32)
    rows, columns = matrices.shape[-2:]
    x = x.mT if rows > columns else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    x = x.mT if rows > columns else x
    scale: float = max(1.0, rows / columns) ** 0.5
    return x.to(matrices.dtype) * scale


def _by_kind(model: Transformer) -> Iterator[tuple[int, tuple[nn.Parameter, tuple[int, ...]]]]:
    """Each parameter once, by its id, with the row counts of its fused pieces: none unless it is a layer's matrix."""
    for name, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            matrix = isinstance(module, nn.Linear) and "layers." in name and parameter.ndim > 1
            yield id(parameter), (parameter, _parts(name, model, parameter.shape[0]) if matrix else ())


def _parts(name: str, model: nn.Module, count: int) -> tuple[int, ...]:
    if name.endswith("gate_up_proj"):
        return (count // 2, count // 2)
    if name.endswith("qkv_proj"):
        attention: Any = model.get_submodule(name.rpartition(".")[0])
        heads = (attention.q_heads, attention.kv_heads, attention.kv_heads)
        return tuple(each * attention.head_dim for each in heads)
    return (count,)
