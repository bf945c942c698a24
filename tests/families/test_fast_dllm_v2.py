"""Fast-dLLM v2 against Qwen2 of transformers and the published loop over its logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.families.blocks import ROOM, answered, logits_of, our_logits, prompt, same_steps
from tests.families.published import fast_dllm_v2 as published
from tests.families.published.layout import TEXT_TOKENS
from tests.families.reference import block_diffusion as loop

from calomel.families.block_causal import FAST_DLLM_V2, SUB_BLOCK
from calomel.families.configuration import read_config
from calomel.families.generation import generation_of
from calomel.families.table import find

BLOCK, END, MASK = 32, TEXT_TOKENS + 2, TEXT_TOKENS + 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("published") / "Fast_dLLM_v2_1.5B"
    published.write(made)
    return made


@pytest.fixture(scope="module")
def network() -> Any:
    return published.network()


def test_its_folder_is_recognised_and_read(folder: Path) -> None:
    assert find(folder) is FAST_DLLM_V2
    diffusion = FAST_DLLM_V2.config(read_config(folder), folder).diffusion

    assert (diffusion.mask_token_id, diffusion.end_token_id) == (MASK, END)
    assert (diffusion.block, diffusion.sub_block, diffusion.logit_shift) == (BLOCK, 8, True)


def test_logits_are_those_of_transformers(folder: Path, network: Any) -> None:
    ids = [*prompt(75), *[MASK] * 21]

    expected = logits_of(network, BLOCK)(ids)

    torch.testing.assert_close(our_logits(FAST_DLLM_V2, folder, ids), expected, atol=1e-4, rtol=1e-4)


# Of 33 positions, and of whole blocks, whose last row decides the next block's first position.
@pytest.mark.parametrize(("size", "threshold"), [(5, 0.2), (31, 0.2), (32, 0.2), (33, 0.95), (64, 0.95), (70, 0.2)])
def test_steps_are_those_of_the_published_loop(folder: Path, network: Any, size: int, threshold: float) -> None:
    context, order = prompt(size), loop.above(threshold)
    logits = logits_of(network, BLOCK)
    trace = loop.denoise_shifted(logits, context, ROOM, order, block=BLOCK, run=SUB_BLOCK, mask=MASK, end=END)

    same_steps(answered(FAST_DLLM_V2, folder, context, policy=f"threshold:{threshold}", max_steps=32), trace, END)


def test_the_best_token_is_taken_whatever_its_generation_config_says(folder: Path) -> None:
    generation = generation_of(FAST_DLLM_V2, read_config(folder), folder)

    assert (generation.policy, generation.max_steps, generation.temperature) == ("threshold:0.9", BLOCK, 0.0)
    assert generation.fill_canvases == (BLOCK,)
