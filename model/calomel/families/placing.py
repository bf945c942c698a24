"""Published tensors to their places in a network of ours, strictly: none is left over, none is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from calomel.families.shards import Shards


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

    Args:
        module: parameters become plain ones without gradient on `device`.
        table: every parameter and persistent buffer of `module` once; a tied one may be left out.
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
    raise NotImplementedError
