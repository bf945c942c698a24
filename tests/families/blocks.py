"""What the tests of families that denoise block by block share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tests.families.reference.block_diffusion import Trace, answer
from tests.families.reference.dense import block_causal_mask, whole_logits
from torch import Tensor

from calomel.engine import Engine, ModelConfig, Request, Result
from calomel.engine.checkpoint import tensor_table
from calomel.families.configuration import read_config
from calomel.families.family import Family, OpenOptions
from calomel.families.loading import load_decoder

ROOM = 22


def prompt(size: int) -> tuple[int, ...]:
    """Text tokens."""
    return tuple(torch.randint(0, 256, (size,), generator=torch.Generator().manual_seed(size)).tolist())


def logits_of(network: Any, block: int) -> Callable[[list[int]], Tensor]:
    """The whole forward of a class of transformers under the block-causal mask: ids [T] to [T, V]."""

    def logits(ids: list[int]) -> Tensor:
        visible = block_causal_mask(len(ids), block)
        mask = torch.zeros(visible.shape).masked_fill(~visible, torch.finfo(torch.float32).min)
        with torch.inference_mode():
            found: Tensor = network(torch.tensor([ids]), attention_mask=mask[None, None], use_cache=False).logits[0]
        return found

    return logits


def our_logits(family: Family, folder: Path, ids: list[int]) -> Tensor:
    """The same of our decoder, with the weights in `folder`."""
    config = family.config(read_config(folder), folder)
    assert isinstance(config, ModelConfig)
    model = load_decoder(folder, config, tensor_table(config), dtype=torch.float32)
    return whole_logits(model, ids, config.diffusion.block)


@dataclass(frozen=True)
class Answered:
    """A result, and the canvases behind every step."""

    result: Result
    states: list[list[int]]


def answered(family: Family, folder: Path, context: tuple[int, ...], **fields: Any) -> Answered:
    """What the engine of `family` makes of `context`."""
    with family.open(folder, OpenOptions(dtype="float32", cache_tokens=1024)) as engine:
        assert isinstance(engine, Engine)
        canvas = (engine.config.diffusion.max_canvas,)
        handle = engine.submit(Request(context, ROOM, canvas_lengths=canvas, record_canvases=True, **fields))
        states = [list(state.ids) for state in handle.states()]
        return Answered(handle.result(), states)


def same_steps(actual: Answered, trace: Trace, end: int) -> None:
    """Every step revealed what the published loop does, until nothing before the end of the answer was masked."""
    count = len(actual.states)
    assert list(actual.result.ids) == answer(trace.tokens, ROOM, end)
    assert actual.states[:-1] == trace.steps[: count - 1]
    assert actual.states[-1] == trace.steps[count - 1][: len(actual.states[-1])]
    if end not in trace.tokens:
        assert count == len(trace.steps)
