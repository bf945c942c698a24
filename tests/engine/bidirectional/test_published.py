"""The window's samplers go through the same states as naive ones written from what is published."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.engine.bidirectional.conftest import END, EXPAND, MASK, PREFIX, SUFFIX, ask, network
from tests.families.reference.window import (
    Draws,
    Full,
    dream,
    dreamon,
    llada,
    llada_dual,
    path_planning,
)

from calomel.engine import BidirectionalOptions, Engine, SamplingParams, Transformer

Start = Callable[..., Engine]
WAYS = [
    pytest.param(SamplingParams(), id="greedy"),
    pytest.param(SamplingParams(temperature=0.7, top_p=0.8, top_k=11, seed=5), id="sampled"),
]
CANVAS = range(len(PREFIX), len(PREFIX) + 12)


def whole(length: int = 12) -> list[int]:
    return [*PREFIX, *[MASK] * length, *SUFFIX]


def how(sampling: SamplingParams) -> Draws:
    top_k = sampling.top_k if sampling.top_k > 0 else None
    draws = Draws(sampling.temperature, sampling.top_p, top_k)
    draws.generator.manual_seed(sampling.seed or 0)
    return draws


def same(ours: list[tuple[int, ...]], theirs: list[tuple[int, ...]]) -> None:
    """An answer is over when everything before its end token is known; the published loops go on."""
    canvases = [state[CANVAS.start : CANVAS.stop] for state in theirs]
    if END in ours[-1] and MASK not in ours[-1][: ours[-1].index(END)]:
        canvases = canvases[: len(ours)]
    assert canvases == ours


@pytest.mark.parametrize("steps", [5, 30])
@pytest.mark.parametrize("sampling", WAYS)
@pytest.mark.parametrize("alg", ["origin", "maskgit_plus", "topk_margin", "entropy"])
def test_dream(start: Start, alg: str, sampling: SamplingParams, steps: int) -> None:
    model = network(shift=True)
    full = Full(model, MASK)
    seeded = sampling if alg != "origin" else SamplingParams(sampling.temperature, seed=5)
    theirs = [tuple(ids) for ids in dream(full.shifted, whole(), MASK, steps=steps, alg=alg, how=how(seeded))]

    _, ours = ask(start(model), suffix=SUFFIX, canvas_lengths=(12,), policy=alg, max_steps=steps, sampling=seeded)

    same(ours, theirs)


@pytest.mark.parametrize("sampling", WAYS)
def test_dream_with_an_order_of_chance(start: Start, sampling: SamplingParams) -> None:
    model = network(shift=True)
    seeded = SamplingParams(sampling.temperature, sampling.top_p, sampling.top_k, seed=5)
    logits = Full(model, MASK).shifted
    theirs = list(dream(logits, whole(), MASK, steps=8, alg="entropy", alg_temp=0.4, how=how(seeded)))

    _, ours = ask(start(model), suffix=SUFFIX, canvas_lengths=(12,), policy="entropy:0.4", max_steps=8, sampling=seeded)

    same(ours, [tuple(state) for state in theirs])


@pytest.mark.parametrize("steps", [1, 4, 12])
@pytest.mark.parametrize("sampling", WAYS)
def test_path_planning(start: Start, sampling: SamplingParams, steps: int) -> None:
    model = network(shift=True)
    theirs = path_planning(Full(model, MASK).shifted, whole(), MASK, steps=steps, how=how(sampling))

    _, ours = ask(start(model), suffix=SUFFIX, canvas_lengths=(12,), policy="p2", max_steps=steps, sampling=sampling)

    assert ours == [tuple(state[CANVAS.start : CANVAS.stop]) for state in theirs]


@pytest.mark.parametrize("block", [5, 12])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("steps", [12, 30])
def test_llada(start: Start, block: int, temperature: float, steps: int) -> None:
    model, sampling = network(shift=False), SamplingParams(temperature=temperature, seed=5)
    logits = Full(model, MASK)
    theirs = llada(logits, whole(), MASK, CANVAS, steps=steps, block=block, how=how(sampling))

    _, ours = ask(
        start(model, BidirectionalOptions(block=block)),
        suffix=SUFFIX,
        canvas_lengths=(12,),
        policy="low_confidence",
        max_steps=steps,
        sampling=sampling,
    )

    same(ours, [tuple(state) for state in theirs])


@pytest.mark.parametrize("block", [4, 6])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_dual_cache_on_llada(start: Start, block: int, temperature: float) -> None:
    model, sampling = network(shift=False), SamplingParams(temperature=temperature, seed=5)
    theirs = llada_dual(Full(model, MASK), whole(), MASK, CANVAS, steps=12, block=block, how=how(sampling))

    _, ours = ask(
        start(model, BidirectionalOptions(block=block, dual_cache=True)),
        suffix=SUFFIX,
        canvas_lengths=(12,),
        policy="low_confidence",
        max_steps=12,
        sampling=sampling,
    )

    same(ours, [tuple(state) for state in theirs])


@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize("budget", [None, 2])
@pytest.mark.parametrize("sampling", WAYS)
def test_dreamon(start: Start, seed: int, budget: int | None, sampling: SamplingParams) -> None:
    model = network(shift=True, seed=seed)
    # Growing and shrinking are common here, or a random model would hardly ever wish for them.
    eager(model, {EXPAND: 2.0, END: 1.6})
    options = BidirectionalOptions(expand_token_id=EXPAND, delete_token_id=END, expand_budget=budget)
    theirs = dreamon(
        Full(model, MASK).shifted,
        list(PREFIX),
        [MASK] * 4,
        list(SUFFIX),
        MASK,
        expand=EXPAND,
        delete=END,
        longest=9,
        how=how(sampling),
        budget=budget,
    )

    result, ours = ask(
        start(model, options),
        suffix=SUFFIX,
        canvas_lengths=(4,),
        max_new_tokens=9,
        policy="entropy",
        max_steps=1000,
        sampling=sampling,
    )

    expected = [tuple(state) for state in theirs]
    assert ours == expected
    assert result.ids == expected[-1]


def eager(model: Transformer, factors: dict[int, float]) -> None:
    """Make some tokens likelier: their rows of the head grow."""
    head = model.lm_head.weight.clone()
    for token, factor in factors.items():
        head[token] *= factor
    model.lm_head.weight = torch.nn.Parameter(head, requires_grad=False)
