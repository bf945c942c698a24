"""What a GPU has to show first, in this order, in less than five minutes: `pytest -m gpu tests/engine/test_gpu.py -s`.

The kernel is right, a replayed step is the eager one bit for bit, it is one launch, what a step takes, what recordings
take, and that 64 clients get the same answers over a spare page of NaN.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import median

import pytest
import torch

import calomel.engine
from calomel.engine import BlockCausal, DiffusionConfig, Engine, ModelConfig, Request, Transformer
from calomel.engine.attention import Piece, flash_attention, has_kernel
from calomel.engine.pages import Pages, PageTable
from calomel.engine.step import Step
from calomel.families.loading import load_checkpoint

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
CUDA = torch.device("cuda")
NANO = Path(calomel.engine.__path__[0]).parent / "weights" / "nano"


def shape(hidden: int, inner: int, layers: int, heads: int, width: int) -> ModelConfig:
    return ModelConfig(
        vocab_size=151_936,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=2,
        head_dim=width,
        max_position_embeddings=32_768,
        diffusion=DiffusionConfig(mask_token_id=1, end_token_id=0, logit_shift=True),
        qk_norm=False,
        attention_bias=True,
    )


SHAPES = {"nano": None, "0.5B": shape(896, 4864, 24, 14, 64), "1.5B": shape(1536, 8960, 28, 12, 128)}


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


def network(name: str) -> Transformer:
    config = SHAPES[name]
    if config is None:
        return load_checkpoint(NANO, dtype=torch.bfloat16, device=CUDA).requires_grad_(requires_grad=False)
    torch.manual_seed(0)
    with CUDA:
        made = Transformer(config).to(torch.bfloat16)
    return made.requires_grad_(requires_grad=False)


def scene(model: Transformer, requests: int, context: int, rows: int = 32) -> tuple[Step, list[Piece]]:
    """A canvas for each request behind `context` tokens of noise, in pages anywhere; the spare page is NaN."""
    each = -(-(context + rows) // 64)
    pool = Pages(model.config, pages=requests * each, size=64, dtype=torch.bfloat16, device=CUDA)
    for held in (*pool.keys, *pool.values):
        held.normal_()
        held[:, pool.spare :] = torch.nan
    order = torch.randperm(pool.count, generator=torch.Generator().manual_seed(0)).tolist()
    tables = [PageTable(pool, order[at * each :][:each], context) for at in range(requests)]
    pieces = [Piece([5, *[1] * (rows - 1)], table, context, causal=False, read=range(rows)) for table in tables]
    return Step(model, pool, (0,)), pieces


def test_1_the_kernel_gives_what_products_of_matrices_give() -> None:
    assert has_kernel(CUDA, 64, 64)
    assert has_kernel(CUDA, 128, 64)
    print("\nflash-attn:", flash_attention(CUDA))


@pytest.mark.parametrize("requests", [1, 8])
def test_2_a_replayed_step_is_the_eager_one_bit_for_bit(requests: int, monkeypatch: pytest.MonkeyPatch) -> None:
    step, pieces = scene(network("nano"), requests, 300)
    replayed = step(pieces)
    monkeypatch.setattr("calomel.engine.step.Step._recording", lambda *_: None)
    eager = step(pieces)

    assert eager.tokens == replayed.tokens
    assert eager.log_probs == replayed.log_probs
    assert eager.entropies == replayed.entropies


def test_3_a_step_is_one_launch_one_copy_in_and_one_out() -> None:
    step, pieces = scene(network("nano"), 8, 300)
    step(pieces)
    with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as profile:
        step(pieces)
    calls = {each.key: each.count for each in profile.key_averages() if each.key.startswith("cuda")}
    print("\n", calls)

    assert calls["cudaGraphLaunch"] == 1
    assert calls.get("cudaMemcpyAsync", 0) <= 2
    assert calls.get("cudaLaunchKernel", 0) <= 2


@pytest.mark.parametrize(("name", "context"), list(product(SHAPES, (2048, 8192))))
def test_4_what_a_step_takes(name: str, context: int) -> None:
    model = network(name)
    for requests in (1, 8, 64):
        step, pieces = scene(model, requests, context)
        times = []
        for turn in range(25):
            torch.cuda.synchronize()
            began = time.perf_counter()
            step(pieces)
            times.append((time.perf_counter() - began) * 1e3 if turn > 4 else 0.0)
        print(f"\n{name} behind {context}, {requests} requests: {median(times[5:]):.2f} ms", flush=True)
        del step, pieces
        torch.cuda.empty_cache()


def test_5_what_recordings_take() -> None:
    model = network("0.5B")
    step, _ = scene(model, 64, 256)
    before = torch.cuda.memory_reserved()
    for requests in (64, 16, 4, 1):
        step(list(_of(step, requests)))
    print(f"\nrecordings: {(torch.cuda.memory_reserved() - before) / 2**20:.0f} MiB")


def _of(step: Step, requests: int) -> Iterator[Piece]:
    for at in range(requests):
        yield Piece([5, *[1] * 31], PageTable(step.pool, list(range(at * 5, at * 5 + 5)), 256), 256, causal=False)


def test_6_sixty_four_clients_get_their_answers_over_a_spare_page_of_nan() -> None:
    model = network("nano")
    asked = [
        Request(tuple(range(10, 40 + number)), 24, 16, policy="fixed:2", client=str(number)) for number in range(64)
    ]

    def answers(batch: int) -> list[tuple[int, ...]]:
        decoder = BlockCausal(model, cache_tokens=1 << 16)
        for held in (*decoder.cache.pool.keys, *decoder.cache.pool.values):
            held[:, decoder.cache.pool.spare :] = torch.nan
        with Engine(decoder, max_batch=batch) as engine:
            return [handle.result(60).ids for handle in engine.submit_all(asked)]

    alone, together = answers(1), answers(64)
    alike = sum(one == other for one, other in zip(alone, together, strict=True))
    print(f"\nalike: {alike} of 64")  # bfloat16 products of other sizes round otherwise
    assert alike >= 60
