"""Published tensors to their places in a network of ours, strictly: none is left over, none is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import torch
from torch import Tensor, nn

from calomel.engine import CheckpointError
from calomel.families.shards import Shards

_NAMES_SHOWN: Final = 6


@dataclass(frozen=True, slots=True)
class Place:
    """Where published tensors go.

    Attributes:
        ours: name of a parameter or persistent buffer of the network.
        theirs: names of the published tensors that it is made of, in order.
        join: how several become one: along dimension 0, or stacked along a new one.
        change: done to each of `theirs` before they are joined (a transposition, a reordering of rows).
    """

    ours: str
    theirs: tuple[str, ...]
    join: Literal["concat", "stack"] = "concat"
    change: Callable[[Tensor], Tensor] | None = None


def load_into(
    module: nn.Module,
    table: Iterable[Place],
    shards: Shards,
    *,
    dtype: torch.dtype,
    device: torch.device | str = "cpu",
    ignored: Callable[[str], bool] = lambda _: False,
    keep: Callable[[str], torch.dtype | None] = lambda _: None,
    placed: Callable[[str], None] | None = None,
) -> None:
    """Give `module` (its parameters on the meta device) the tensors of `shards`, one parameter at a time.

    Buffers that are not persistent are the caller's to set.

    Args:
        module: parameters become plain ones without gradient on `device`; tied ones stay tied.
        table: every parameter and persistent buffer of `module` once; of tied ones, one.
        shards: the published tensors.
        dtype: of floating-point tensors.
        device: where they go.
        ignored: whether a published tensor that no place wants may stay unread ("…rotary_emb.inv_freq", a tied
            "lm_head.weight").
        keep: the type of the one of ours called so, where it is not `dtype` (a router's bias in float32).
        placed: called with the name of ours when it is there, for whoever quantises as loading goes on.

    Raises:
        CheckpointError: tensors are missing, unknown or of the wrong shape; the message names them.
    """
    places = list(table)
    known = _tensors(module)
    _check_names(places, known, shards, ignored)
    names = _names(module)
    for place in places:
        wanted = known[place.ours]
        kind = keep(place.ours) or (dtype if wanted.is_floating_point() else wanted.dtype)
        whole = _joined(place, wanted.shape, shards, kind, device)
        tensor = nn.Parameter(whole, requires_grad=False) if isinstance(wanted, nn.Parameter) else whole
        for name in names[id(wanted)]:
            parent, _, leaf = name.rpartition(".")
            setattr(module.get_submodule(parent), leaf, tensor)
        if placed is not None:
            placed(place.ours)


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers by every name that they have."""
    kept = module.state_dict(keep_vars=True)
    return {name: tensor for name, tensor in kept.items() if isinstance(tensor, Tensor)}


def _names(module: nn.Module) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for name, tensor in _tensors(module).items():
        names.setdefault(id(tensor), []).append(name)
    return names


def _check_names(
    places: Sequence[Place], known: Mapping[str, Tensor], shards: Shards, ignored: Callable[[str], bool]
) -> None:
    strange = [place.ours for place in places if place.ours not in known]
    if strange:
        raise CheckpointError(f"this family's table names {_shown(strange)}, which its network does not have")
    filled = {id(known[place.ours]) for place in places}
    empty = [name for name, tensor in known.items() if id(tensor) not in filled]
    if empty:
        raise CheckpointError(f"this family's table leaves {_shown(empty)} without a tensor")
    wanted = {name for place in places for name in place.theirs}
    missing = sorted(wanted - shards.tensors.keys())
    unknown = sorted(name for name in shards if name not in wanted and not ignored(name))
    told = [f"missing {_shown(missing)}"] * bool(missing) + [f"unknown {_shown(unknown)}"] * bool(unknown)
    if told:
        raise CheckpointError(f"the tensors in {shards.folder} do not fit its config.json: {'; '.join(told)}")


def _joined(place: Place, shape: torch.Size, shards: Shards, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """The published tensors as one, each copied once."""
    whole = torch.empty(shape, dtype=dtype, device=device)
    at = 0
    for name in place.theirs:
        part = shards.read(name)
        if place.change is not None:
            part = place.change(part)
        if len(place.theirs) == 1 and place.join == "concat":
            target = whole
        elif place.join == "stack":
            target, at = whole[at] if at < len(whole) else whole[:0], at + 1
        else:
            target, at = whole[at : at + part.shape[0]], at + part.shape[0]
        if target.shape != part.shape:
            raise CheckpointError(_misfit(place, shape, shards))
        target.copy_(part)
    if len(place.theirs) > 1 and at != len(whole):
        raise CheckpointError(_misfit(place, shape, shards))
    return whole


def _misfit(place: Place, shape: torch.Size, shards: Shards) -> str:
    found = " + ".join(f"{name} {shards.tensors[name].shape}" for name in place.theirs[:_NAMES_SHOWN])
    return f"{found} does not make up {place.ours}, for which config.json says {tuple(shape)}"


def _shown(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
