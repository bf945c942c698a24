"""SDAR's mixtures of experts against Qwen3-MoE of transformers and the published loop over its logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.families.blocks import ROOM, answered, logits_of, our_logits, prompt, same_steps
from tests.families.published import sdar_moe as published
from tests.families.published.layout import TEXT_TOKENS
from tests.families.reference import block_diffusion as loop

from calomel.engine import CheckpointError
from calomel.families.block_causal import SDAR_MOE
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.plan import plan_of
from calomel.families.table import find

BLOCK, END, MASK = 4, TEXT_TOKENS + 2, TEXT_TOKENS + 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("published") / "SDAR-30B-A3B-Chat"
    published.write(made)
    return made


def test_its_folder_is_recognised_and_not_taken_for_the_dense_one(folder: Path) -> None:
    assert find(folder) is SDAR_MOE


@pytest.mark.parametrize(
    "changed",
    [{}, {"norm_topk_prob": False}, {"mlp_only_layers": [0]}, {"decoder_sparse_step": 2}],
    ids=["published", "not normalised", "a dense layer", "every second layer"],
)
def test_logits_are_those_of_transformers(tmp_path: Path, changed: dict[str, Any]) -> None:
    published.write(tmp_path, **changed)
    ids = [*prompt(41), MASK, MASK, MASK]

    expected = logits_of(published.network(**changed), BLOCK)(ids)

    torch.testing.assert_close(our_logits(SDAR_MOE, tmp_path, ids), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("size", [2, 40, 43])
def test_steps_are_those_of_the_published_loop(folder: Path, size: int) -> None:
    order = loop.dynamic(BLOCK, 4, 0.2)
    logits = logits_of(published.network(), BLOCK)
    trace = loop.denoise(logits, prompt(size), ROOM, order, block=BLOCK, mask=MASK, end=END)

    same_steps(answered(SDAR_MOE, folder, prompt(size), policy="low_confidence_dynamic:0.2"), trace, END)


def test_the_estimate_counts_every_expert(folder: Path) -> None:
    held = sum(tensor.numel() for tensor in published.tensors(published.network()).values())

    assert plan_of(folder, OpenOptions(dtype="float32")).estimate.weights == held * 4


def test_a_configuration_without_experts_is_refused(folder: Path) -> None:
    raw = read_config(folder)
    del raw["num_experts"]

    with pytest.raises(CheckpointError, match="no field 'num_experts'"):
        SDAR_MOE.config(raw, folder)
