"""LLaDA2.0 and LLaDA2.1 against a plain reference of their published code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from tests.families.published import llada2 as published
from tests.families.published.layout import TEXT_TOKENS, prompt, write_config
from tests.families.reference.dense import whole_logits
from tests.families.reference.llada2 import Llada2, decode
from torch import Tensor

from calomel.engine import Request, Transformer
from calomel.families.block_causal import LLADA2, llada2_places
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.generation import generation_of
from calomel.families.loading import load_decoder

Forward = Callable[[Sequence[int]], Tensor]
END, MASK = TEXT_TOKENS + 1, TEXT_TOKENS + 2
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
    ids = (*prompt(60), *[MASK] * 10)
    expected = Llada2(published.CONFIG, published.tensors()).logits(ids)

    torch.testing.assert_close(forward(ids), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("size", "length", "threshold", "edit"),
    [(5, 20, 0.1, None), (32, 32, 0.06, 0.05), (43, 50, 0.95, None), (43, 50, 0.06, 0.05), (43, 50, 0.08, 0.0)],
)
def test_the_engine_takes_every_step_of_the_published_loop(
    folder: Path, forward: Forward, size: int, length: int, threshold: float, edit: float | None
) -> None:
    how = {"mask": MASK, "end": END, "length": length, "threshold": threshold, "edit": edit, "after": 4}
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
