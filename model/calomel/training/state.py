"""What a training run needs to resume: weights in float32, optimizer moments, counters. No pickle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from calomel.engine.transformer import Transformer
from calomel.storage import write_whole

_TENSORS: Final = "state.safetensors"
_COUNTERS: Final = "state.json"


@dataclass(slots=True)
class Counters:
    """How far the run is.

    Attributes:
        step: optimizer steps.
        rows: rows forwarded: context, heads, answers and canvases together.
        seconds: time spent training, without pauses and evaluations.
        sessions: how often the run was started.
    """

    step: int = 0
    rows: int = 0
    seconds: float = 0.0
    sessions: int = 0


def save_state(
    folder: Path,
    model: Transformer,
    optimizers: tuple[torch.optim.Optimizer, ...],
    counters: Counters,
    average: Sequence[Tensor] | None = None,
) -> None:
    """Write the run's state into `folder`; each file replaces its predecessor in one step.

    `average` is that of the model's parameters, in their order.
    """
    tensors: dict[str, Tensor] = {f"model.{name}": tensor for name, tensor in _weights(model).items()}
    for number, optimizer in enumerate(optimizers):
        for index, moments in optimizer.state_dict()["state"].items():
            for name, value in moments.items():
                tensors[f"optimizer.{number}.{index}.{name}"] = torch.as_tensor(value)
    tensors |= {f"average.{index}": tensor for index, tensor in enumerate(average or ())}
    folder.mkdir(parents=True, exist_ok=True)
    whole = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    write_whole(folder / _TENSORS, whole)
    write_whole(folder / _COUNTERS, json.dumps(asdict(counters)))


def load_state(
    folder: Path,
    model: Transformer,
    optimizers: tuple[torch.optim.Optimizer, ...],
    average: Sequence[Tensor] | None = None,
) -> Counters | None:
    """Restore what `save_state` wrote; None when there is nothing to resume from.

    If the state has no `average`, it starts as a copy of the weights.
    """
    if not (folder / _COUNTERS).is_file():
        return None
    tensors = load_file(folder / _TENSORS)
    model.load_state_dict({name: tensors[f"model.{name}"] for name in _weights(model)}, strict=False)
    for number, optimizer in enumerate(optimizers):
        state: dict[int, dict[str, Tensor]] = {}
        head = f"optimizer.{number}."
        for key, tensor in tensors.items():
            if key.startswith(head):
                index, name = key.removeprefix(head).split(".")
                state.setdefault(int(index), {})[name] = tensor
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    for number, (mean, weight) in enumerate(zip(average or (), model.parameters(), strict=bool(average))):
        mean.copy_(tensors.get(f"average.{number}", weight.detach()))
    return Counters(**json.loads((folder / _COUNTERS).read_text(encoding="utf-8")))


@contextmanager
def exchanged(model: Transformer, average: Sequence[Tensor]) -> Iterator[None]:
    """Swap the weights of `average` into `model` for a while, in the same memory, so that compiled steps stay valid."""
    own = [parameter.detach().clone() for parameter in model.parameters()]
    try:
        torch._foreach_copy_([parameter.data for parameter in model.parameters()], list(average))
        yield
    finally:
        torch._foreach_copy_([parameter.data for parameter in model.parameters()], own)


def _weights(model: Transformer) -> dict[str, Tensor]:
    """The state of `model`, with a tied head only once."""
    state = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    return state
