"""Stable-DiffCoder against Llama of transformers and the published loop over its logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.families.blocks import ROOM, answered, logits_of, our_logits, prompt, same_steps
from tests.families.published import stable_diffcoder as published
from tests.families.published.layout import TEXT_TOKENS
from tests.families.reference import block_diffusion as loop

from calomel.families.block_causal import STABLE_DIFFCODER
from calomel.families.configuration import read_config
from calomel.families.generation import generation_of
from calomel.families.table import find

BLOCK, END, MASK = 4, TEXT_TOKENS + 2, TEXT_TOKENS + 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("published") / "Stable-DiffCoder-8B-Instruct"
    published.write(made)
    return made


@pytest.fixture(scope="module")
def network() -> Any:
    return published.network()


def test_its_folder_is_recognised_and_read(folder: Path) -> None:
    assert find(folder) is STABLE_DIFFCODER
    diffusion = STABLE_DIFFCODER.config(read_config(folder), folder).diffusion

    assert (diffusion.mask_token_id, diffusion.end_token_id) == (MASK, END)
    assert (diffusion.block, diffusion.max_canvas, diffusion.logit_shift) == (BLOCK, BLOCK, False)


def test_logits_are_those_of_transformers(folder: Path, network: Any) -> None:
    ids = [*prompt(41), MASK, MASK, MASK]

    expected = logits_of(network, BLOCK)(ids)

    torch.testing.assert_close(our_logits(STABLE_DIFFCODER, folder, ids), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("low_confidence", loop.low_confidence(4)),
        ("low_confidence:2", loop.low_confidence(2)),
        ("low_confidence:3", loop.low_confidence(3)),
        ("threshold:0.95", loop.above(0.95)),
        ("threshold:0.2", loop.above(0.2)),
    ],
)
def test_steps_are_those_of_the_published_loop(
    folder: Path, network: Any, size: int, policy: str, order: loop.Order
) -> None:
    context = prompt(size)
    trace = loop.denoise(logits_of(network, BLOCK), context, ROOM, order, block=BLOCK, mask=MASK, end=END)

    same_steps(answered(STABLE_DIFFCODER, folder, context, policy=policy), trace, END)


def test_generation_is_that_of_its_card(folder: Path) -> None:
    generation = generation_of(STABLE_DIFFCODER, read_config(folder), folder)

    assert (generation.policy, generation.max_steps, generation.temperature) == ("low_confidence", BLOCK, 0.0)
