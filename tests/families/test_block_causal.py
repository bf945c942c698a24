"""Families that denoise block by block, against classes of transformers and the published loops over their logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.families.published import llada2 as published
from tests.families.published.block_causal import END, MASK, SDAR, SDAR_MOE, STABLE_DIFFCODER, Checkpoint
from tests.families.published.dream import A2D_BD3LM, A2D_MDLM
from tests.families.published.layout import TEXT_TOKENS, prompt, shape_of, write_config
from tests.families.reference import block_diffusion as loop
from tests.families.reference.dense import block_causal_mask, class_logits, whole_logits
from tests.families.reference.llada2 import Llada2, decode
from torch import Tensor

from calomel.engine import CheckpointError, Engine, Request, SamplingParams, Transformer
from calomel.engine.checkpoint import tensor_table
from calomel.families.block_causal import LLADA2, llada2_places
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.generation import generation_of
from calomel.families.loading import load_decoder
from calomel.families.table import find

ROOM = 22
Written = Callable[..., Path]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The folder of a checkpoint, with a `config.json` that may be changed."""
    return cache(lambda checkpoint, **changed: checkpoint.write(tmp_path_factory.mktemp("published") / "it", **changed))


network = cache(lambda checkpoint: checkpoint.network())


def logits_of(network: Any, block: int) -> Callable[[list[int]], Tensor]:
    """The whole forward of a class of transformers under the block-causal mask."""
    return lambda ids: class_logits(network, ids, block_causal_mask(len(ids), block))


@pytest.mark.parametrize(
    ("checkpoint", "name", "block", "generation"),
    [
        (SDAR, "sdar", 4, ("low_confidence_dynamic:0.85", 0.6, 0.95, 20)),
        (SDAR_MOE, "sdar-moe", 4, ("low_confidence_dynamic:0.85", 0.6, 0.95, 20)),
        (STABLE_DIFFCODER, "stable-diffcoder", 4, ("low_confidence", 0.0, 1.0, -1)),
        (A2D_BD3LM, "a2d-bd3lm", 32, ("low_confidence", 0.0, 1.0, -1)),
    ],
)
def test_its_folder_is_recognised_and_read(
    written: Written, checkpoint: Checkpoint, name: str, block: int, generation: Any
) -> None:
    folder = written(checkpoint)
    family, diffusion = find(folder), shape_of(folder).diffusion
    found = generation_of(family, read_config(folder), folder)

    assert family.name == name
    assert (diffusion.mask_token_id, diffusion.end_token_id) == (MASK, END)
    assert (diffusion.block, diffusion.logit_shift) == (block, False)
    assert (found.policy, found.temperature, found.top_p, found.top_k) == generation
    assert (diffusion.max_canvas, found.max_steps, found.fill_canvas) == (block, block, block)


@pytest.mark.parametrize(
    ("checkpoint", "changed"),
    [
        pytest.param(SDAR, {}, id="sdar"),
        pytest.param(SDAR, {"tie_word_embeddings": True}, id="sdar, tied"),
        pytest.param(SDAR_MOE, {}, id="sdar-moe"),
        pytest.param(SDAR_MOE, {"norm_topk_prob": False}, id="sdar-moe, not normalised"),
        pytest.param(SDAR_MOE, {"mlp_only_layers": [0]}, id="sdar-moe, a dense layer"),
        pytest.param(SDAR_MOE, {"decoder_sparse_step": 2}, id="sdar-moe, every second layer"),
        pytest.param(STABLE_DIFFCODER, {}, id="stable-diffcoder"),
        pytest.param(A2D_BD3LM, {}, id="a2d-bd3lm of Qwen3"),
        pytest.param(replace(A2D_BD3LM, config=A2D_MDLM.config, classes=A2D_MDLM.classes), {}, id="a2d-bd3lm of Qwen2"),
    ],
)
def test_logits_are_those_of_transformers(tmp_path: Path, checkpoint: Checkpoint, changed: dict[str, Any]) -> None:
    checkpoint.write(tmp_path, **changed)
    config, ids = shape_of(tmp_path), [*prompt(75), *[MASK] * 21]
    model = load_decoder(tmp_path, config, tensor_table(config), dtype=torch.float32)

    expected = logits_of(checkpoint.network(**changed), config.diffusion.block)(ids)

    torch.testing.assert_close(whole_logits(model, ids, config.diffusion.block), expected, atol=1e-4, rtol=1e-4)


def same_steps(folder: Path, context: tuple[int, ...], trace: loop.Trace, **fields: Any) -> None:
    """Every step reveals what the published loop does, until nothing before the end of the answer is masked."""
    with find(folder).open(folder, OpenOptions(dtype="float32", cache_tokens=1024)) as engine:
        assert isinstance(engine, Engine)
        canvas = engine.config.diffusion.max_canvas
        handle = engine.submit(Request(context, ROOM, canvas_length=canvas, record_canvases=True, **fields))
        states = [list(state.ids) for state in handle.states()]
        answer = list(handle.result().ids)
    count = len(states)
    assert answer == loop.answer(trace.tokens, ROOM, END)
    assert states[:-1] == trace.steps[: count - 1]
    assert states[-1] == trace.steps[count - 1][: len(states[-1])]
    if END not in trace.tokens:
        assert count == len(trace.steps)


@pytest.mark.parametrize(
    ("checkpoint", "size", "policy", "order"),
    [
        (SDAR, 3, "low_confidence_dynamic:0.2", loop.dynamic(4, 4, 0.2)),
        (SDAR, 40, "low_confidence_dynamic:0.2", loop.dynamic(4, 4, 0.2)),
        (SDAR, 40, "low_confidence_dynamic:0.3/2", loop.dynamic(4, 2, 0.3)),
        (SDAR_MOE, 2, "low_confidence_dynamic:0.2", loop.dynamic(4, 4, 0.2)),
        (SDAR_MOE, 43, "low_confidence_dynamic:0.2", loop.dynamic(4, 4, 0.2)),
        (STABLE_DIFFCODER, 3, "low_confidence", loop.paced(4)),
        (STABLE_DIFFCODER, 40, "low_confidence:2", loop.paced(2)),
        (STABLE_DIFFCODER, 3, "low_confidence:3", loop.paced(3)),
        (STABLE_DIFFCODER, 40, "threshold:0.95", loop.above(0.95)),
        (STABLE_DIFFCODER, 3, "threshold:0.2", loop.above(0.2)),
        # Where the prompt is whole blocks, the published samplers and the training count blocks alike.
        (A2D_BD3LM, 64, "low_confidence", loop.paced(32)),
        (A2D_BD3LM, 40, "low_confidence", loop.paced(32)),
    ],
)
def test_steps_are_those_of_the_published_loop(
    written: Written, checkpoint: Checkpoint, size: int, policy: str, order: loop.Order
) -> None:
    folder = written(checkpoint)
    block = shape_of(folder).diffusion.block
    logits = logits_of(network(checkpoint), block)
    trace = loop.denoise(logits, prompt(size), ROOM, order, block=block, mask=MASK, end=END)

    same_steps(folder, prompt(size), trace, policy=policy, max_steps=32)


def test_drawn_tokens_are_those_of_the_published_loop(written: Written) -> None:
    generator = torch.Generator().manual_seed(3)

    def draw(rows: Tensor) -> list[int]:
        noise = torch.empty_like(rows).exponential_(generator=generator)
        found: list[int] = (rows.softmax(dim=-1) / noise).argmax(dim=-1).tolist()
        return found

    logits, order = logits_of(network(SDAR), 4), loop.dynamic(4, 4, 0.2)
    trace = loop.denoise(logits, prompt(43), ROOM, order, block=4, mask=MASK, end=END, draw=draw)

    how = {"policy": "low_confidence_dynamic:0.2", "sampling": SamplingParams(temperature=1.0, seed=3)}
    same_steps(written(SDAR), prompt(43), trace, **how)


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
    folder = SDAR.write(tmp_path / place, block_size=None, mask_token_id=None)

    # The mask token is the tokenizer's.
    assert (shape_of(folder).diffusion.block, shape_of(folder).diffusion.mask_token_id) == (block, MASK)
    assert generation_of(find(folder), read_config(folder), folder).fill_canvas == block


def test_without_either_the_length_of_blocks_is_asked_for_and_a_fetched_folder_has_it(tmp_path: Path) -> None:
    folder = SDAR.write(tmp_path / "mine", block_size=None)

    with pytest.raises(CheckpointError, match=r'write "block_size" into its config.json'):
        shape_of(folder)
    with pytest.raises(CheckpointError, match=r'write "block_size" into its config.json, 32 as published'):
        shape_of(replace(A2D_BD3LM, repository="").write(tmp_path / "a2d"))
    (folder / "calomel-source.json").write_text('{"repository": "JetLM/SDAR-4B-Chat-b8", "revision": "0f3a"}')
    assert shape_of(folder).diffusion.block == 8


# LLaDA2.0 and LLaDA2.1 against a plain reference of their published code.
Forward = Callable[[Sequence[int]], Tensor]
LLADA2_END, LLADA2_MASK = TEXT_TOKENS + 1, TEXT_TOKENS + 2
SMALL = OpenOptions(dtype="float32", cache_tokens=1024)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("published") / "LLaDA2.0-mini"
    published.write(made)
    return made


def loaded(folder: Path, dtype: torch.dtype) -> Transformer:
    config = LLADA2.config(read_config(folder), folder)
    return load_decoder(folder, config, llada2_places(config), dtype=dtype)


@pytest.fixture(scope="module")
def forward(folder: Path) -> Forward:
    """Whole forwards of what was loaded: the logits that another test compares with the reference's."""
    model = loaded(folder, torch.float32)
    return lambda ids: whole_logits(model, ids, 32)


def test_logits_are_those_of_the_reference(forward: Forward) -> None:
    ids = (*prompt(60), *[LLADA2_MASK] * 10)
    expected = Llada2(published.CONFIG, published.tensors()).logits(ids)

    torch.testing.assert_close(forward(ids), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("size", "length", "threshold", "edit"),
    [(5, 20, 0.1, None), (32, 32, 0.06, 0.05), (43, 50, 0.95, None), (43, 50, 0.06, 0.05), (43, 50, 0.08, 0.0)],
)
def test_the_engine_takes_every_step_of_the_published_loop(
    folder: Path, forward: Forward, size: int, length: int, threshold: float, edit: float | None
) -> None:
    how = {"mask": LLADA2_MASK, "end": LLADA2_END, "length": length, "threshold": threshold, "edit": edit, "after": 4}
    expected = decode(forward, prompt(size), **how)  # type: ignore[arg-type]
    policy = f"threshold:{threshold}" if edit is None else f"joint:{threshold}/{edit}/4"

    with LLADA2.open(folder, SMALL) as engine:
        handle = engine.submit(Request(prompt(size), length, 32, policy=policy, max_steps=64, record_canvases=True))
        states = [list(state.ids) for state in handle.states()]

    assert list(handle.result().ids) == expected.answer
    # What stands behind an answer's end is dropped as soon as nothing before it is open.
    for state, wanted in zip(states, expected.states, strict=False):
        assert state == wanted[: len(state)]
    if edit is not None:
        assert len(states) >= len(expected.states) - 1


@pytest.mark.parametrize(
    "place", ["LLaDA2.1-mini", "models--inclusionAI--LLaDA2.1-flash/snapshots/0f3a", "LLaDA2.2-flash"]
)
def test_generation_is_that_of_its_version(folder: Path, tmp_path: Path, place: str) -> None:
    raw = read_config(folder)
    newer = tmp_path / place
    write_config(newer, raw)

    assert generation_of(LLADA2, raw, folder).policy == "threshold:0.95"
    assert generation_of(LLADA2, raw, newer).policy == "joint:0.7/0.5/16"
    assert generation_of(LLADA2, raw, newer).max_steps == 49

    write_config(newer, {"threshold": 0.95, "editing_threshold": 0.9}, "generation_config.json")
    assert generation_of(LLADA2, raw, newer).policy == "joint:0.95/0.9/16"


def test_what_transformers_5_says_of_positions_in_one_place_is_read(folder: Path) -> None:
    raw = read_config(folder)
    nested = {
        "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5, "rope_theta": raw["rope_theta"]}
    }
    kept = {name: value for name, value in raw.items() if name not in nested["rope_parameters"]}

    assert LLADA2.config({**kept, **nested}, folder) == LLADA2.config(raw, folder)
    assert LLADA2.config(kept, folder) != LLADA2.config(raw, folder)


def test_a_router_decides_in_float32_whatever_the_weights_are(folder: Path) -> None:
    model = loaded(folder, torch.bfloat16)

    assert {held.dtype for name, held in model.named_parameters() if name.endswith("expert_bias")} == {torch.float32}
