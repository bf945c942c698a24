"""Dream, DiffuCoder, DreamOn and Open-dCoder: their files are read, their logits are Qwen2's under a full mask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.families.published import diffucoder, dream, dreamon, open_dcoder
from tests.families.published.layout import TEXT_TOKENS
from tests.families.reference.logits import full_attention, window_logits

from calomel.engine import CheckpointError, Engine, ModelConfig, Request, SamplingParams
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.generation import generation_of
from calomel.families.table import find

CONTEXT = tuple(torch.randint(0, 256, (31,), generator=torch.Generator().manual_seed(5)).tolist())
SUFFIX = tuple(torch.randint(0, 256, (12,), generator=torch.Generator().manual_seed(6)).tolist())
Write = Callable[..., Path]
WRITERS = [
    pytest.param("dream", dream.write, id="dream"),
    pytest.param("diffucoder", diffucoder.write, id="diffucoder"),
    pytest.param("dreamon", dreamon.write, id="dreamon"),
    pytest.param("open-dcoder", open_dcoder.write, id="open-dcoder"),
]


def opened(folder: Path) -> Engine:
    engine = find(folder).open(folder, OpenOptions(dtype="float32", threads=1))
    assert isinstance(engine, Engine)
    return engine


@pytest.mark.parametrize(("name", "write"), WRITERS)
def test_its_folder_is_of_its_family(tmp_path: Path, name: str, write: Write) -> None:
    assert find(write(tmp_path)).name == name


@pytest.mark.parametrize("write", [case.values[1] for case in WRITERS])
def test_logits_are_those_of_the_backbone_under_a_full_mask(tmp_path: Path, write: Write) -> None:
    folder = write(tmp_path)
    ids = [*CONTEXT, *[TEXT_TOKENS] * 9, *SUFFIX]

    expected = full_attention(dream.backbone(read_config(folder)), folder, ids)

    torch.testing.assert_close(window_logits(folder, ids), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("write", [case.values[1] for case in WRITERS])
def test_it_answers_as_it_is_published_to_generate(tmp_path: Path, write: Write) -> None:
    folder = write(tmp_path)
    generation = generation_of(find(folder), read_config(folder), folder)
    with opened(folder) as engine:
        request = Request(
            context=CONTEXT,
            suffix=SUFFIX,
            max_new_tokens=64,
            canvas_lengths=generation.fill_canvases,
            policy=generation.policy,
            max_steps=generation.max_steps,
            sampling=SamplingParams(generation.temperature, generation.top_p, generation.top_k, seed=1),
        )

        result = engine.submit(request).result(60)

    assert result.finish_reason == "stop"
    assert len(result.ids) <= 64
    assert len(result.ids) == len(result.log_probs) == len(result.entropies)


def test_configuration_bounds_a_window(tmp_path: Path) -> None:
    folder = dream.write(tmp_path)

    config = find(folder).config(read_config(folder), folder)

    assert isinstance(config, ModelConfig)
    assert config.max_position_embeddings == 2048
    assert config.diffusion.mask_token_id == TEXT_TOKENS + 4
    assert (config.diffusion.logit_shift, config.diffusion.reads_suffix) == (True, True)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, ("entropy", 256, 0.2, 0.95)),
        ({"alg": "topk_margin", "alg_temp": 0.3, "steps": 32}, ("topk_margin:0.3", 32, 0.2, 0.95)),
        ({"alg": "maskgit_plus", "temperature": 0.7, "top_p": 0.8}, ("maskgit_plus", 256, 0.7, 0.8)),
        ({"alg": "nonsense", "steps": -1}, ("entropy", 256, 0.2, 0.95)),
    ],
)
def test_its_own_generation_settings_count(tmp_path: Path, said: dict[str, Any], expected: tuple[Any, ...]) -> None:
    folder = dream.write(tmp_path, generation=said)

    found = generation_of(find(folder), read_config(folder), folder)

    assert (found.policy, found.max_steps, found.temperature, found.top_p) == expected


def test_an_ordinary_qwen2_is_refused_with_a_reason(tmp_path: Path) -> None:
    folder = open_dcoder.write(tmp_path, controls=open_dcoder.CONTROLS[:-1])

    with pytest.raises(CheckpointError, match="ordinary Qwen2: it writes from left to right and has no mask token"):
        opened(folder)


def test_a_canvas_of_dreamon_changes_its_length(tmp_path: Path) -> None:
    # So hot that every token is about as likely, those that ask for more or less room among them.
    requests = [
        Request(
            context=CONTEXT,
            suffix=SUFFIX,
            max_new_tokens=80,
            canvas_lengths=(64,),
            policy="entropy",
            max_steps=256,
            sampling=SamplingParams(temperature=50.0, seed=seed),
        )
        for seed in range(4)
    ]
    with opened(dreamon.write(tmp_path, generation={"number_transfer_tokens": 8})) as engine:
        lengths = {len(handle.result(60).ids) for handle in engine.submit_all(requests)}

    assert min(lengths) < 64 < max(lengths)


def test_weights_in_eight_bits_answer(tmp_path: Path) -> None:
    folder = dream.write(tmp_path)
    request = Request(context=CONTEXT, suffix=SUFFIX, canvas_lengths=(8,), policy="entropy", min_new_tokens=8)

    with find(folder).open(folder, OpenOptions(dtype="float32", threads=1, quantize="int8")) as engine:
        result = engine.submit(request).result(60)

    assert len(result.ids) == 8
