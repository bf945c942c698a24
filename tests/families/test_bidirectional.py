"""Families that read in both directions: their logits are those of their backbones, their steps the published ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.test_attention import whole
from tests.families.published import dream
from tests.families.published.block_causal import QWEN
from tests.families.published.layout import TEXT_TOKENS, shape_of
from tests.families.reference.dense import class_logits
from tests.families.reference.window import Draws, Full, low_confidence, low_confidence_dual

from calomel.engine import Engine, Request, SamplingParams, Transformer
from calomel.engine.checkpoint import tensor_table
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.generation import generation_of
from calomel.families.loading import load_decoder
from calomel.families.table import find

CONTEXT = tuple(torch.randint(0, 256, (31,), generator=torch.Generator().manual_seed(5)).tolist())
SUFFIX = tuple(torch.randint(0, 256, (12,), generator=torch.Generator().manual_seed(6)).tolist())
Write = Callable[..., Path]


def opened(folder: Path, **options: Any) -> Engine:
    engine = find(folder).open(folder, OpenOptions(dtype="float32", threads=1, **options))
    assert isinstance(engine, Engine)
    return engine


def loaded(folder: Path) -> Transformer:
    config = shape_of(folder)
    return load_decoder(folder, config, tensor_table(config), dtype=torch.float32)


CHECKPOINTS = {**dream.CHECKPOINTS, "a2d-mdlm": dream.A2D_MDLM}


@pytest.mark.parametrize("name", list(CHECKPOINTS))
def test_logits_are_those_of_the_backbone_under_a_full_mask(tmp_path: Path, name: str) -> None:
    checkpoint = CHECKPOINTS[name]
    checkpoint.write(tmp_path)
    ids = [*CONTEXT, *[TEXT_TOKENS] * 9, *SUFFIX]

    actual = whole(loaded(tmp_path), ids, causal=False)

    torch.testing.assert_close(actual, class_logits(checkpoint.network(), ids), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("write", "positions", "mask", "shift"),
    [
        (dream.DREAM.write, 2048, TEXT_TOKENS + 4, True),
        (dream.A2D_MDLM.write, 1024, TEXT_TOKENS + 3, False),
    ],
    ids=["dream", "a2d-mdlm"],
)
def test_configuration_bounds_a_window(tmp_path: Path, write: Write, positions: int, mask: int, *, shift: bool) -> None:
    config = shape_of(write(tmp_path))

    assert (config.hidden_size, config.num_hidden_layers, config.max_position_embeddings) == (48, 3, positions)
    assert config.diffusion.mask_token_id == mask
    assert (config.diffusion.logit_shift, config.diffusion.reads_suffix) == (shift, True)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, ("entropy", 256, 0.2, 0.95)),
        ({"alg": "topk_margin", "alg_temp": 0.3, "steps": 32}, ("topk_margin:0.3", 32, 0.2, 0.95)),
        ({"alg": "maskgit_plus", "temperature": 0.7, "top_p": 0.8}, ("maskgit_plus", 256, 0.7, 0.8)),
        ({"alg": "nonsense", "steps": -1}, ("entropy", 256, 0.2, 0.95)),
    ],
)
def test_dreams_own_generation_settings_count(tmp_path: Path, said: dict[str, Any], expected: tuple[Any, ...]) -> None:
    folder = replace(dream.DREAM, generation=said).write(tmp_path)

    found = generation_of(find(folder), read_config(folder), folder)

    assert (found.policy, found.max_steps, found.temperature, found.top_p) == expected


def test_without_a_mask_token_an_open_dcoder_is_an_ordinary_qwen2(tmp_path: Path) -> None:
    assert find(replace(dream.OPEN_DCODER, controls=QWEN).write(tmp_path)).name == "qwen2"
    assert find(dream.OPEN_DCODER.write(tmp_path)).name == "open-dcoder"


def test_a_canvas_of_dreamon_changes_its_length(tmp_path: Path) -> None:
    bounds: dict[str, Any] = {"max_new_tokens": 80, "canvas_length": 64, "policy": "entropy", "max_steps": 256}
    # So hot that every token is about as likely, those that ask for more or less room among them.
    hot = [SamplingParams(temperature=50.0, seed=seed) for seed in range(16)]
    requests = [Request(CONTEXT, suffix=SUFFIX, sampling=sampling, **bounds) for sampling in hot]
    hasty = replace(dream.DREAMON, generation={"number_transfer_tokens": 8})
    with opened(hasty.write(tmp_path)) as engine:
        lengths = {len(handle.result(60).ids) for handle in engine.submit_all(requests)}

    assert min(lengths) < 64 < max(lengths)


def test_weights_in_eight_bits_answer(tmp_path: Path) -> None:
    request = Request(CONTEXT, suffix=SUFFIX, canvas_length=8, policy="entropy", min_new_tokens=8)

    with opened(dream.DREAM.write(tmp_path), quantize="int8") as engine:
        assert len(engine.submit(request).result(60).ids) == 8


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("size", [24, 64])  # one block, and two
def test_only_whole_forwards_are_exact(tmp_path: Path, size: int, *, exact: bool) -> None:
    folder = dream.A2D_MDLM.write(tmp_path)
    mask = shape_of(folder).diffusion.mask_token_id
    request = Request(CONTEXT, size, size, policy="low_confidence", max_steps=size, min_new_tokens=size)
    with opened(folder, exact=exact) as engine:
        ours, never = engine.submit(request).result(60).ids, frozenset(engine.decoder.ends)

    full, canvas = Full(loaded(folder), mask, never=never), range(len(CONTEXT), len(CONTEXT) + size)
    published = low_confidence if exact else low_confidence_dual
    *_, theirs = published(full, [*CONTEXT, *[mask] * size], mask, canvas, steps=size, block=32, how=Draws())
    assert ours == tuple(theirs[canvas.start :])
