"""Answers of steps that stay on the device are those of steps that the host takes one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from calomel.engine import Engine, Request, Result, Transformer
from calomel.engine.resident import ResidentOptions

MASK, END = 95, 96
Start = Callable[..., Engine]


@pytest.fixture
def ending(model: Transformer) -> Transformer:
    """One that likes to end: its logits of the end token scatter more than the others."""
    model.embed_tokens.weight[END] *= 1.4
    return model


def resident(look: int = 4, **options: Any) -> ResidentOptions:
    return ResidentOptions(look=look, **{"tokens": 8192, **options})


def answers(engine: Engine, requests: Sequence[Request]) -> list[Result]:
    return [handle.result(120) for handle in engine.submit_all(requests)]


def same(found: Result, expected: Result) -> bool:
    """All of a result but its times, the numbers of confidence as near as another order of sums leaves them."""
    numbers = [(r.log_probs, r.entropies, [r.end_log_prob or 0.0]) for r in (found, expected)]
    for ours, theirs in zip(*numbers, strict=True):
        assert list(ours) == pytest.approx(list(theirs), abs=2e-3)
    blank: dict[str, Any] = {"log_probs": (), "entropies": (), "end_log_prob": None}
    blank |= {"prefill_seconds": 0.0, "denoise_seconds": 0.0}
    return replace(found, **blank) == replace(expected, **blank)


def asked(context: tuple[int, ...], policy: str) -> list[Request]:
    """Eight of all kinds: short and long, with known positions, several canvases, probed lengths, few steps."""
    return [
        Request(context, 16, (16,), policy=policy),
        Request(context[:7], 30, (12,), policy=policy),
        Request(context[:33], 15, (15,), frozen={0: 3, 9: 5}, policy=policy),
        Request(context[:50], 15, (4, 8, 15), policy=policy),
        Request(context[:40], 12, (12,), min_new_tokens=6, policy=policy, max_steps=2),
        Request(context[3:60], 14, (14,), revise=True, policy=policy, max_steps=9),
        Request(context[::-1], 26, (26,), policy=policy),
        Request(context[::2], 9, (4,), policy=policy, reuse=0),
    ]


@pytest.mark.parametrize("policy", ["threshold:0.3", "factor:1", "entropy_bound:1", "entropy_within:0.5", "fixed:3"])
def test_every_policy_gives_the_same_answers_however_seldom_the_host_looks(
    ending: Transformer, start: Start, context: tuple[int, ...], policy: str
) -> None:
    requests = asked(context, policy)
    expected = answers(start(ending, resident=False), requests)
    assert {result.finish_reason for result in expected} == {"stop", "length"}

    looks = (1, 2, 4) if policy == "threshold:0.3" else (3,)
    for look in looks:
        found = answers(start(ending, resident=resident(look)), requests)

        assert all(same(ours, theirs) for ours, theirs in zip(found, expected, strict=True))
