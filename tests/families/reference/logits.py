"""Logits of a whole sequence: of the engine's window, and of a class of transformers under a full mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calomel.engine.attention import Piece, forward
from calomel.engine.checkpoint import tensor_table
from calomel.families.bidirectional import llada_places
from calomel.families.configuration import read_config
from calomel.families.loading import load_decoder
from calomel.families.shards import Shards
from calomel.families.table import find


def window_logits(folder: Path, ids: Sequence[int]) -> Tensor:
    """Logits [T, V] of `ids` by the checkpoint in `folder`, as the bidirectional decoder forwards them."""
    family = find(folder)
    config: Any = family.config(read_config(folder), folder)
    places = llada_places(config) if family.name == "llada" else tensor_table(config)
    model = load_decoder(folder, config, places, dtype=torch.float32)
    return forward(model, [Piece(ids, None, 0, causal=False, read=range(len(ids)))])


def full_attention(
    reference: nn.Module, folder: Path, ids: Sequence[int], *, state: Mapping[str, Tensor] | None = None
) -> Tensor:
    """Logits [T, V] of `ids` by a causal class of transformers that is let see everything.

    Its weights are `state`, or those in `folder` where it has them under the class' own names.
    """
    if state is None:
        shards = Shards(folder)
        state = {name: shards.read(name) for name in shards}
    missing, unexpected = reference.load_state_dict(dict(state), strict=False)
    assert not unexpected
    assert set(missing) <= {"lm_head.weight"}
    size = len(ids)
    with torch.inference_mode():
        seen = torch.zeros(1, 1, size, size)
        out = reference(input_ids=torch.tensor([list(ids)]), attention_mask=seen, use_cache=False)
    logits: Tensor = out.logits[0]
    return logits
