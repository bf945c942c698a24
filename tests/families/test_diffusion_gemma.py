"""DiffusionGemma's loop is the one that is published: the same weights and seed give the same tokens as `generate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.families.published import diffusion_gemma as published
from torch import Tensor
from transformers.models.diffusion_gemma import generation_diffusion_gemma as published_loop
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaForBlockDiffusion

from calomel.engine import Request, SamplingParams, Serving
from calomel.families.diffusion_gemma import DIFFUSION_GEMMA
from calomel.families.family import OpenOptions
from calomel.families.gemma.loading import load
from calomel.families.gemma.network import Network
from calomel.families.table import read_config

# torch warns of itself, while `generate` imports its compiler.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")

CANVAS = 16
CONTEXT = tuple(torch.randint(0, 256, (45,), generator=torch.Generator().manual_seed(5)).tolist())
OTHER = tuple(torch.randint(0, 256, (45,), generator=torch.Generator().manual_seed(6)).tolist())
SAMPLED, GREEDY = 1.0, 0.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published.write(tmp_path_factory.mktemp("gemma"), sharpness=0.7)


@pytest.fixture(scope="module")
def reference(folder: Path) -> DiffusionGemmaForBlockDiffusion:
    model: DiffusionGemmaForBlockDiffusion = DiffusionGemmaForBlockDiffusion.from_pretrained(
        folder, local_files_only=True, use_safetensors=True
    )
    return model.eval()


@pytest.fixture(scope="module")
def network(folder: Path) -> Network:
    raw = read_config(folder)
    return Network(load(folder, raw, dtype=torch.float32, device="cpu"), DIFFUSION_GEMMA.config(raw, folder))


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Serving]:
    with opened(folder) as engine:
        yield engine


def opened(folder: Path) -> Serving:
    return DIFFUSION_GEMMA.open(folder, OpenOptions(dtype="float32", threads=1))


def asked(context: Sequence[int] = CONTEXT, **fields: Any) -> Request:
    sampling = SamplingParams(temperature=fields.pop("temperature", SAMPLED), seed=fields.pop("seed", 3))
    given = {"canvas_lengths": (CANVAS,), "policy": "entropy_bound:0.1", "max_steps": 8, "max_new_tokens": CANVAS}
    return Request(tuple(context), sampling=sampling, **{**given, **fields})


def best_instead_of_drawn(chances: Tensor, num_samples: int) -> Tensor:
    del num_samples
    return chances.argmax(dim=-1, keepdim=True)


def generated(
    model: DiffusionGemmaForBlockDiffusion, contexts: Sequence[Sequence[int]], **options: Any
) -> list[list[int]]:
    """What `generate` answers to each context, up to its end."""
    ids = torch.tensor(contexts)
    found = model.generate(ids, **options).sequences[:, ids.shape[1] :].tolist()
    ends = [next((at for at, token in enumerate(row) if token in published.ENDS), len(row)) for row in found]
    return [row[:end] for row, end in zip(found, ends, strict=True)]


def test_logits_are_those_of_the_published_class(reference: DiffusionGemmaForBlockDiffusion, network: Network) -> None:
    ids = torch.tensor([CONTEXT])
    canvas = torch.randint(0, published.VOCABULARY, (1, CANVAS), generator=torch.Generator().manual_seed(8))
    signal = torch.randn(1, CANVAS, published.VOCABULARY, generator=torch.Generator().manual_seed(9)) * 4
    context = network.empty()
    for start in range(0, len(CONTEXT), 20):
        network.encode(CONTEXT[start : start + 20], context)
    for told in (None, signal):
        with torch.no_grad():
            expected = reference(input_ids=ids, decoder_input_ids=canvas, self_conditioning_logits=told).logits
            found = network.denoise(canvas, [None if told is None else told[0]], [context])
        assert (found - expected).abs().max() < 1e-4


@pytest.mark.parametrize("temperature", [SAMPLED, GREEDY], ids=["sampled", "greedy"])
@pytest.mark.parametrize("seed", [0, 1])
def test_tokens_equal_those_of_generate(
    reference: DiffusionGemmaForBlockDiffusion,
    engine: Serving,
    monkeypatch: pytest.MonkeyPatch,
    temperature: float,
    seed: int,
) -> None:
    found = engine.submit(asked(seed=seed, temperature=temperature, max_new_tokens=3 * CANVAS)).result()
    if temperature == GREEDY:
        monkeypatch.setattr(published_loop.torch, "multinomial", best_instead_of_drawn)
    torch.manual_seed(seed)
    (expected,) = generated(reference, [CONTEXT], max_new_tokens=3 * CANVAS)
    assert list(found.ids) == expected
    assert found.steps
