"""SDAR against Qwen3 of transformers and the published loop over its logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.families.blocks import ROOM, answered, logits_of, our_logits, prompt, same_steps
from tests.families.published import sdar as published
from tests.families.published.layout import TEXT_TOKENS
from tests.families.reference import block_diffusion as loop
from torch import Tensor

from calomel.engine import CheckpointError, SamplingParams
from calomel.families.block_causal import SDAR
from calomel.families.configuration import read_config
from calomel.families.generation import generation_of
from calomel.families.open import open_engine
from calomel.families.table import find

BLOCK, END, MASK = 4, TEXT_TOKENS + 2, TEXT_TOKENS + 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("published") / "SDAR-1.7B-Chat"
    published.write(made)
    return made


@pytest.fixture(scope="module")
def network() -> Any:
    return published.network()


def test_its_folder_is_recognised_and_read(folder: Path) -> None:
    assert find(folder) is SDAR
    diffusion = SDAR.config(read_config(folder), folder).diffusion

    assert (diffusion.mask_token_id, diffusion.end_token_id) == (MASK, END)
    assert (diffusion.block, diffusion.max_canvas, diffusion.logit_shift) == (BLOCK, BLOCK, False)
    with open_engine(folder)[0] as engine:
        assert engine.config.vocab_size == published.CONFIG["vocab_size"]


@pytest.mark.parametrize("tied", [False, True])
def test_logits_are_those_of_transformers(tmp_path: Path, *, tied: bool) -> None:
    published.write(tmp_path, tie_word_embeddings=tied)
    ids = [*prompt(41), MASK, MASK, MASK]

    expected = logits_of(published.network(tie_word_embeddings=tied), BLOCK)(ids)

    torch.testing.assert_close(our_logits(SDAR, tmp_path, ids), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("low_confidence_dynamic:0.2", loop.dynamic(BLOCK, 4, 0.2)),
        ("low_confidence_dynamic:0.3/2", loop.dynamic(BLOCK, 2, 0.3)),
    ],
)
def test_steps_are_those_of_the_published_loop(
    folder: Path, network: Any, size: int, policy: str, order: loop.Order
) -> None:
    context = prompt(size)
    trace = loop.denoise(logits_of(network, BLOCK), context, ROOM, order, block=BLOCK, mask=MASK, end=END)

    same_steps(answered(SDAR, folder, context, policy=policy), trace, END)


def test_drawn_tokens_are_those_of_the_published_loop(folder: Path, network: Any) -> None:
    generator = torch.Generator().manual_seed(3)

    def draw(rows: Tensor) -> list[int]:
        noise = torch.empty_like(rows).exponential_(generator=generator)
        found: list[int] = (rows.softmax(dim=-1) / noise).argmax(dim=-1).tolist()
        return found

    order = loop.dynamic(BLOCK, 4, 0.2)
    logits = logits_of(network, BLOCK)
    trace = loop.denoise(logits, prompt(43), ROOM, order, block=BLOCK, mask=MASK, end=END, draw=draw)
    sampling = SamplingParams(temperature=1.0, seed=3)

    same_steps(answered(SDAR, folder, prompt(43), policy="low_confidence_dynamic:0.2", sampling=sampling), trace, END)


def test_a_checkpoint_of_longer_blocks_says_so(tmp_path: Path) -> None:
    published.write(tmp_path, block_size=16, mask_token_id=None)
    diffusion = SDAR.config(read_config(tmp_path), tmp_path).diffusion
    order = loop.dynamic(16, 16, 0.2)
    network = published.network()
    trace = loop.denoise(logits_of(network, 16), prompt(37), ROOM, order, block=16, mask=MASK, end=END)

    assert (diffusion.block, diffusion.mask_token_id) == (16, MASK)
    same_steps(answered(SDAR, tmp_path, prompt(37), policy="low_confidence_dynamic:0.2"), trace, END)


@pytest.mark.parametrize(
    ("place", "block"),
    [
        ("SDAR-8B-Chat", 4),
        ("JetLM--SDAR-1.7B-Chat-b32", 32),
        ("models--JetLM--SDAR-30B-A3B-Chat-b16/snapshots/0f3a", 16),
    ],
)
def test_where_the_configuration_does_not_say_how_long_blocks_are_the_published_name_does(
    tmp_path: Path, place: str, block: int
) -> None:
    folder = tmp_path / place
    published.write(folder, block_size=None)

    assert SDAR.config(read_config(folder), folder).diffusion.block == block
    assert generation_of(SDAR, read_config(folder), folder).fill_canvases == (block,)


def test_without_either_the_length_of_blocks_is_asked_for_and_a_fetched_folder_has_it(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    published.write(folder, block_size=None)

    with pytest.raises(CheckpointError, match=r'write "block_size" into its config.json'):
        SDAR.config(read_config(folder), folder)
    (folder / "calomel-source.json").write_text('{"repository": "JetLM/SDAR-4B-Chat-b8", "revision": "0f3a"}')
    assert SDAR.config(read_config(folder), folder).diffusion.block == 8


def test_generation_is_that_of_the_folder(folder: Path) -> None:
    generation = generation_of(SDAR, read_config(folder), folder)

    assert (generation.policy, generation.fill_canvases, generation.max_steps) == (
        "low_confidence_dynamic:0.85",
        (BLOCK,),
        BLOCK,
    )
    assert (generation.temperature, generation.top_p, generation.top_k) == (0.6, 0.95, 20)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"block_size": 1}, "block_size 1"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope_scaling 'yarn'"),
        ({"use_sliding_window": True}, "use_sliding_window"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
    ],
)
def test_what_the_decoder_does_not_do_is_refused(folder: Path, changed: dict[str, object], told: str) -> None:
    with pytest.raises(CheckpointError, match=told):
        SDAR.config(published.CONFIG | changed, folder)
