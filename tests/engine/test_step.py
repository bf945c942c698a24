"""A step has one shape whatever it serves: it can be recorded, and does not grow with the requests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.conftest import CONFIG, END, MASK, Context, Start, random
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from calomel.engine import ModelConfig, Request, SamplingParams, Transformer
from calomel.engine.attention import Piece
from calomel.engine.pages import Pages, PageTable
from calomel.engine.step import Layout, Size, Step

PAGE, MOST = 16, 12  # tokens of a page, pages of a request
SIZE = Size(rows=96, pieces=24, read=96, pages=MOST)


def pool_of(config: ModelConfig, requests: int) -> Pages:
    """Of random keys and values; what belongs to nobody is no number."""
    pool = Pages(config, pages=requests * MOST, size=PAGE, dtype=torch.float32, device=torch.device("cpu"))
    generator = torch.Generator().manual_seed(3)
    for held in (*pool.keys, *pool.values):
        held.normal_(generator=generator)
        held[:, pool.spare :] = torch.nan
    return pool


def pieces_of(pool: Pages, kinds: Sequence[tuple[str, int]]) -> list[Piece]:
    """A request of each kind behind so many tokens, in pages anywhere."""
    order, found = torch.randperm(pool.count, generator=torch.Generator().manual_seed(1)).tolist(), list[Piece]()
    for number, (kind, context) in enumerate(kinds):
        table = PageTable(pool, order[number * MOST : (number + 1) * MOST], context)
        typed = [7, 8, 9][: 2 if kind == "typed" else 0]
        if typed:
            found.append(Piece(typed, table, context, causal=True))
        size = {"draft": 6, "window": 8}.get(kind, 5)
        ids = [number, *[MASK] * (size - 1)]
        behind = 4 if kind == "window" else 0
        read = range(1, size)
        found.append(Piece(ids, table, context + len(typed), causal=kind == "draft", read=read, behind=behind))
    return found


SCENES = st.lists(
    st.tuples(st.sampled_from(["canvas", "typed", "draft", "window"]), st.integers(0, PAGE * MOST - 20)),
    min_size=1,
    max_size=9,
)


@settings(deadline=None, max_examples=25)
@given(SCENES)
def test_one_recording_serves_every_mix_of_requests(kinds: list[tuple[str, int]]) -> None:
    recorded, eager = (Step(RECORDED.model, pool_of(CONFIG, 9), (END,)) for _ in range(2))
    layout = Layout(SIZE, np.zeros(sum(SIZE.parts), dtype=np.int32))
    layout.fill(pieces_of(recorded.pool, kinds), block=1, groups=2)
    with torch.inference_mode():
        for mine, its in zip((*recorded.pool.keys, *recorded.pool.values), RECORDED.held, strict=True):
            its.copy_(mine)
        token, log_prob, entropy = RECORDED.graph(torch.from_numpy(layout.array))[1]
        told = eager(pieces_of(eager.pool, kinds))

    assert token[: len(told)].tolist() == told.tokens
    torch.testing.assert_close(log_prob[: len(told)], torch.tensor(told.log_probs), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(entropy[: len(told)], torch.tensor(told.entropies), atol=1e-5, rtol=1e-4)


class Recorded:
    """A step that was recorded once: with fake tensors, in which waiting for a number is an error."""

    def __init__(self) -> None:
        self.model = random(Transformer(CONFIG))
        step = Step(self.model, pool_of(CONFIG, 9), (END,))
        self.held = (*step.pool.keys, *step.pool.values)
        with torch.no_grad():
            step(pieces_of(step.pool, [("canvas", 5)]))  # what is kept from the first step on is no fake
            made: Any = make_fx(
                lambda array: step.compute(Layout(SIZE, array)), tracing_mode="fake", _allow_non_fake_inputs=True
            )
            self.graph = made(torch.zeros(sum(SIZE.parts), dtype=torch.int32))


RECORDED = Recorded()


class Dispatched(TorchDispatchMode):
    """Counts operations; one that waits for the device, or whose result has any size, is an error."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts = Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        places = args[1] if name in {"index", "index_put", "index_put_"} else ()
        masked = any(isinstance(each, Tensor) and each.dtype == torch.bool for each in places)
        assert name not in {"_local_scalar_dense", "nonzero"}
        assert not masked
        self.counts[name] += 1
        return func(*args, **(kwargs or {}))


def dispatched(start: Start, model: Transformer, asked: Sequence[Request]) -> list[int]:
    """How much each step of so many requests dispatches, once all contexts are encoded."""
    engine, found = start(model, max_batch=64), list[int]()
    step = engine.decoder.step

    def counting(jobs: Sequence[Any]) -> None:
        if len(jobs) < len(asked) or any(job.prefilled is None for job in jobs):
            step(jobs)
            return
        with Dispatched() as mode:
            step(jobs)
        found.append(mode.counts.total())

    engine.decoder.step = counting  # type: ignore[method-assign]
    for handle in engine.submit_all(asked):
        handle.result(60)
    return found


def test_a_step_dispatches_no_more_for_sixty_requests_than_for_one(start: Start, context: Context) -> None:
    model = random(Transformer(CONFIG))
    asked = [
        Request((*context[:20], number), 30, 30, min_new_tokens=30, policy="fixed:1", max_steps=99, client=str(number))
        for number in range(60)
    ]
    one, many = dispatched(start, model, asked[:1]), dispatched(start, model, asked)

    assert set(one[2:]) == set(many[2:])

    # Two that ask for more than the best tokens cost as much among sixty as among two.
    more = [
        replace(asked[0], sampling=SamplingParams(repetition_penalty=1.2)),
        replace(asked[1], sampling=SamplingParams(temperature=0.8, seed=3)),
    ]
    two, among = dispatched(start, model, more), dispatched(start, model, [*more, *asked[2:]])
    assert set(two[2:]) == set(among[2:])


@pytest.mark.slow
def test_the_kernel_gives_what_products_of_matrices_give() -> None:
    pytest.importorskip("triton")
    code = (
        "import torch; from calomel.engine import kernels\n"
        "for shape in ((64, 64), (128, 64), (32, 16)): kernels.check(torch.device('cpu'), *shape, torch.float32)"
    )
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
