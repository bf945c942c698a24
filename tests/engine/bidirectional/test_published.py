"""The window's samplers go through the same states as naive ones written from what is published."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.engine.bidirectional.conftest import EXPAND, PREFIX, SUFFIX, ask, network
from tests.engine.conftest import END, MASK, Context, Start
from tests.families.reference.window import (
    Draws,
    Full,
    Logits,
    cached,
    dream,
    dreamon,
    low_confidence,
    low_confidence_dual,
    path_planning,
)

from calomel.engine import BidirectionalOptions, SamplingParams, Transformer

GREEDY, SAMPLED = SamplingParams(), SamplingParams(temperature=0.7, top_p=0.8, top_k=11, seed=5)
WAYS = pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
CANVAS = range(len(PREFIX), len(PREFIX) + 12)
CACHE = pytest.mark.parametrize("dual", [False, True], ids=["exact", "dual cache"])
WHOLE = [*PREFIX, *[MASK] * 12, *SUFFIX]


def how(sampling: SamplingParams) -> Draws:
    top_k = sampling.top_k if sampling.top_k > 0 else None
    draws = Draws(sampling.temperature, sampling.top_p, top_k)
    draws.generator.manual_seed(sampling.seed or 0)
    return draws


def shifted(model: Transformer, *, dual: bool) -> Logits:
    full = Full(model, MASK)
    return cached(full, len(PREFIX), len(SUFFIX)) if dual else full.shifted


def same(ours: list[Context], theirs: Iterable[list[int]]) -> None:
    """An answer is over when everything before its end token is known; the published loops go on."""
    canvases = [tuple(state[CANVAS.start : CANVAS.stop]) for state in theirs]
    if END in ours[-1] and MASK not in ours[-1][: ours[-1].index(END)]:
        canvases = canvases[: len(ours)]
    assert canvases == ours


@pytest.mark.parametrize("steps", [5, 30])
@WAYS
@pytest.mark.parametrize("policy", ["origin", "maskgit_plus", "topk_margin", "entropy", "entropy:0.4"])
@CACHE
def test_dream(start: Start, policy: str, sampling: SamplingParams, steps: int, *, dual: bool) -> None:
    model, (alg, _, order) = network(shift=True), policy.partition(":")
    narrow = (1.0, -1) if alg == "origin" else (sampling.top_p, sampling.top_k)
    seeded = SamplingParams(sampling.temperature, *narrow, seed=5)
    theirs = dream(
        shifted(model, dual=dual), WHOLE, MASK, steps=steps, alg=alg, alg_temp=float(order or 0), how=how(seeded)
    )

    engine = start(model, BidirectionalOptions(dual_cache=dual))
    _, ours = ask(engine, canvas_length=12, policy=policy, max_steps=steps, sampling=seeded)

    same(ours, theirs)


@pytest.mark.parametrize("steps", [1, 4, 12, 64])
@WAYS
@CACHE
def test_path_planning(start: Start, sampling: SamplingParams, steps: int, *, dual: bool) -> None:
    model = network(shift=True)
    theirs = path_planning(shifted(model, dual=dual), WHOLE, MASK, steps=steps, how=how(sampling))

    engine = start(model, BidirectionalOptions(dual_cache=dual))
    result, ours = ask(engine, canvas_length=12, policy="p2", max_steps=steps, sampling=sampling)

    assert ours == [tuple(state[CANVAS.start : CANVAS.stop]) for state in theirs]
    # A forward of what has not changed says nothing new.
    assert result.forwards == len(ours)


@pytest.mark.parametrize(
    ("loop", "block"), [(low_confidence, 5), (low_confidence, 12), (low_confidence_dual, 4), (low_confidence_dual, 6)]
)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("steps", [12, 30])
def test_low_confidence_and_the_dual_cache_on_it(
    start: Start, loop: Any, block: int, temperature: float, steps: int
) -> None:
    model, sampling = network(shift=False), SamplingParams(temperature, seed=5)
    theirs = loop(Full(model, MASK), WHOLE, MASK, CANVAS, steps=steps, block=block, how=how(sampling))

    engine = start(model, BidirectionalOptions(block=block, dual_cache=loop is low_confidence_dual))
    _, ours = ask(engine, canvas_length=12, policy="low_confidence", max_steps=steps, sampling=sampling)

    same(ours, theirs)


@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize("budget", [None, 2])
@WAYS
@CACHE
def test_dreamon(start: Start, seed: int, budget: int | None, sampling: SamplingParams, *, dual: bool) -> None:
    model = network(shift=True, seed=seed)
    # Growing and shrinking are common here, or a random model would hardly ever wish for them.
    for token, factor in ((EXPAND, 2.0), (END, 1.6)):
        model.lm_head.weight.data[token] *= factor
    options = BidirectionalOptions(dual_cache=dual, expand_token_id=EXPAND, delete_token_id=END, expand_budget=budget)
    bounds: dict[str, Any] = {"expand": EXPAND, "delete": END, "longest": 9, "budget": budget, "how": how(sampling)}
    theirs = dreamon(shifted(model, dual=dual), list(PREFIX), [MASK] * 4, list(SUFFIX), MASK, **bounds)

    asked = {"canvas_length": 4, "max_new_tokens": 9, "max_steps": 1000, "sampling": sampling}
    result, ours = ask(start(model, options), policy="entropy", **asked)

    assert ours == [tuple(state) for state in theirs]
    assert result.ids == ours[-1]
