"""LLaDA: its own names and fields are read, its logits are a Llama's under a full mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.families.published import llada
from tests.families.published.layout import TEXT_TOKENS, random_state
from tests.families.reference.logits import full_attention, window_logits
from tests.families.reference.window import Draws, Full, llada_dual
from tests.families.reference.window import llada as llada_loop

from calomel.engine import CheckpointError, ModelConfig, Request
from calomel.families.bidirectional import llada_places
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.loading import load_decoder
from calomel.families.memory import EstimateOptions
from calomel.families.shards import Shards
from calomel.families.table import find

CONTEXT = tuple(torch.randint(0, 256, (31,), generator=torch.Generator().manual_seed(5)).tolist())


def test_logits_are_those_of_a_llama_under_a_full_mask(tmp_path: Path) -> None:
    folder = llada.write(tmp_path)
    ids = [*CONTEXT, *[TEXT_TOKENS + 5] * 9]

    reference = llada.backbone(read_config(folder))
    expected = full_attention(reference, folder, ids, state=random_state(reference))

    torch.testing.assert_close(window_logits(folder, ids), expected, atol=1e-4, rtol=0)


def test_it_answers_in_blocks(tmp_path: Path) -> None:
    folder = llada.write(tmp_path)
    family = find(folder)
    assert family.name == "llada"
    with family.open(folder, OpenOptions(dtype="float32", threads=1)) as engine:
        request = Request(
            context=CONTEXT,
            max_new_tokens=64,
            canvas_lengths=(64,),
            policy="low_confidence",
            max_steps=16,
            min_new_tokens=64,
            record_canvases=True,
        )
        handle = engine.submit(request)
        result = handle.result(60)

    halfway = list(handle.states())[7]
    assert (result.finish_reason, len(result.ids), result.steps) == ("length", 64, 16)
    assert all(halfway.revealed[:32])
    assert not any(halfway.revealed[32:64])


def test_configuration_is_read_in_its_own_names(tmp_path: Path) -> None:
    folder = llada.write(tmp_path)

    config = find(folder).config(read_config(folder), folder)

    assert isinstance(config, ModelConfig)
    assert (config.hidden_size, config.num_hidden_layers, config.head_dim) == (48, 3, 8)
    assert (config.diffusion.mask_token_id, config.diffusion.end_token_id) == (TEXT_TOKENS + 5, TEXT_TOKENS + 1)
    assert not config.diffusion.logit_shift


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"block_type": "sequential"}, "block_type 'sequential'"),
        ({"alibi": True}, "alibi True"),
        ({"d_model": None}, "hidden_size"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, said: dict[str, Any], told: str) -> None:
    folder = llada.write(tmp_path)

    with pytest.raises(CheckpointError, match=told):
        find(folder).config({**read_config(folder), **said}, folder)


@pytest.mark.parametrize("exact", [False, True])
def test_only_whole_forwards_are_exact(tmp_path: Path, *, exact: bool) -> None:
    folder = llada.write(tmp_path)
    request = Request(
        context=CONTEXT,
        max_new_tokens=24,
        canvas_lengths=(24,),
        policy="low_confidence",
        max_steps=24,
        min_new_tokens=24,
    )

    with find(folder).open(folder, OpenOptions(dtype="float32", threads=1, exact=exact)) as engine:
        ours = engine.submit(request).result(60).ids

    config = find(folder).config(read_config(folder), folder)
    assert isinstance(config, ModelConfig)
    model = load_decoder(folder, config, llada_places(config), dtype=torch.float32)
    full, ids = Full(model, TEXT_TOKENS + 5), [*CONTEXT, *[TEXT_TOKENS + 5] * 24]
    canvas, how = range(len(CONTEXT), len(CONTEXT) + 24), Draws()
    full.never = frozenset({TEXT_TOKENS + 1})
    published = llada_loop if exact else llada_dual
    *_, theirs = published(full, ids, TEXT_TOKENS + 5, canvas, steps=24, block=32, how=how)
    assert ours == tuple(theirs[canvas.start :])


def test_memory_is_estimated_without_loading(tmp_path: Path) -> None:
    folder = llada.write(tmp_path)

    found = find(folder).estimate(read_config(folder), EstimateOptions(shards=Shards(folder), dtype="float32"))

    parameters = sum(tensor.numel() for tensor in random_state(llada.backbone(read_config(folder))).values())
    assert found.weights == 4 * parameters
    assert found.work > 0
