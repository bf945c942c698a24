"""Answers of steps that stay on the device are those of steps that the host takes one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from calomel.engine import CanvasState, Engine, InvalidRequestError, Request, Result, SamplingParams, Transformer
from calomel.engine.job import Job
from calomel.engine.resident import ResidentOptions
from calomel.engine.resident.runner import Resident

MASK, END = 95, 96
Start = Callable[..., Engine]


@pytest.fixture
def ending(model: Transformer) -> Transformer:
    """One that likes to end: its logits of the end token scatter more than the others."""
    model.embed_tokens.weight[END] *= 1.4
    return model


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests whose steps are taken on the device, once for every time."""
    seen: list[Request] = []

    def run(self: Resident, jobs: Sequence[Job]) -> None:
        seen.extend(job.request for job in jobs)
        original(self, jobs)

    original = Resident.run
    monkeypatch.setattr(Resident, "run", run)
    return seen


def resident(look: int = 4, **options: Any) -> ResidentOptions:
    return ResidentOptions(look=look, **{"tokens": 8192, **options})


def answers(engine: Engine, requests: Sequence[Request]) -> list[Result]:
    return [handle.result(120) for handle in engine.submit_all(requests)]


def same(found: Result, expected: Result) -> bool:
    """All of a result but its times, the numbers of confidence as near as another order of sums leaves them.

    A forward may have made two steps where the host took them: the steps are the same, the forwards not.
    """
    numbers = [(r.log_probs, r.entropies, [r.end_log_prob or 0.0]) for r in (found, expected)]
    for ours, theirs in zip(*numbers, strict=True):
        assert list(ours) == pytest.approx(list(theirs), abs=2e-3)
    blank: dict[str, Any] = {"log_probs": (), "entropies": (), "end_log_prob": None}
    blank |= {"prefill_seconds": 0.0, "denoise_seconds": 0.0, "forwards": 0}
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


@pytest.mark.parametrize(
    ("config", "policy"),
    [
        (False, "threshold:0.3"),
        (True, "prefix:0.3"),
        (True, "entropy_bound:1"),
        (False, "factor:1"),
        (True, "entropy_within:0.5"),
        (False, "fixed:3"),
    ],
    indirect=["config"],
)
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


def test_what_is_not_done_on_the_device_is_done_beside_it(
    ending: Transformer, start: Start, context: tuple[int, ...], taken: list[Request]
) -> None:
    plain: dict[str, Any] = {"max_new_tokens": 12, "canvas_lengths": (12,), "policy": "threshold:0.4"}
    there = [Request(context[:size], **plain) for size in (20, 30, 40)]
    others = [
        Request(context, **{**plain, "policy": "verified"}),
        Request(context[:21], **{**plain, "policy": "left_to_right"}),
        Request(context[:22], **{**plain, "policy": "low_confidence:3"}),
        Request(context[:23], **plain, sampling=SamplingParams(temperature=0.8, seed=4)),
        Request(context[:24], **plain, sampling=SamplingParams(repetition_penalty=1.3)),
        Request(context[:25], given=(1, 2, 3)),
    ]
    requests = [others[0], there[0], *others[1:4], there[1], *others[4:], there[2]]
    expected = answers(start(ending, resident=False, max_batch=9), requests)
    assert not taken

    found = answers(start(ending, resident=resident(), max_batch=9), requests)

    assert all(same(ours, theirs) for ours, theirs in zip(found, expected, strict=True))
    assert {id(request) for request in taken} == {id(request) for request in there}


@pytest.mark.parametrize("config", [False], ids=["plain"], indirect=True)
@pytest.mark.parametrize("look", [4])
def test_who_watches_sees_every_step(
    ending: Transformer, start: Start, context: tuple[int, ...], taken: list[Request], look: int
) -> None:
    request = Request(context, 20, (10,), policy="fixed:2", record_canvases=True)
    states: list[list[CanvasState]] = []
    for options in (False, resident(look)):
        handle = start(ending, resident=options).submit(request)
        states.append(list(handle.states()))

    # A forward that made two steps at once shows them with one number.
    assert [(state.ids, state.revealed) for state in states[1]] == [(state.ids, state.revealed) for state in states[0]]
    assert taken


@pytest.mark.parametrize("config", [False], ids=["plain"], indirect=True)
@pytest.mark.parametrize("look", [4])
def test_an_answer_that_is_over_ends_at_the_same_token(
    ending: Transformer, start: Start, context: tuple[int, ...], taken: list[Request], look: int
) -> None:
    def request(until: int) -> Request:
        return Request(context, 40, (10,), policy="fixed:2", until=lambda ids: len(ids) >= until)

    for until in (3, 11):
        expected = start(ending, resident=False).submit(request(until)).result(60)
        assert same(start(ending, resident=resident(look)).submit(request(until)).result(60), expected)
    assert taken


@pytest.mark.parametrize("config", [False], ids=["plain"], indirect=True)
def test_a_request_that_finds_no_room_in_the_arena_is_served_without(
    model: Transformer, start: Start, context: tuple[int, ...], taken: list[Request]
) -> None:
    long = (*context, *context, *context, *context, *context)
    requests = [Request(long[size:], 10, (10,), policy="threshold:0.4") for size in range(3)]
    expected = answers(start(model, resident=False), requests)

    assert all(map(same, answers(start(model, resident=resident(tokens=600)), requests), expected))
    assert len({id(request) for request in taken}) == 1
    taken.clear()
    assert all(map(same, answers(start(model, resident=resident(tokens=100)), requests), expected))
    assert not taken


def test_a_keystroke_finds_the_arena_as_the_answer_before_left_it(
    model: Transformer, start: Start, context: tuple[int, ...], taken: list[Request]
) -> None:
    requests = [Request(context[:size], 10, (10,), policy="threshold:0.4") for size in (50, 51, 53, 57)]
    engine, other = start(model, resident=resident(tokens=256)), start(model, resident=False)

    for request in requests:
        found = engine.submit(request).result(60)
        assert same(found, other.submit(request).result(60))
        # With shifted logits the last token is a row of the canvas.
        assert found.cached_tokens >= (0 if request is requests[0] else 49)
    assert {id(request) for request in taken} == {id(request) for request in requests}


@pytest.mark.parametrize("config", [False], ids=["plain"], indirect=True)
def test_an_answer_that_outgrows_the_arena_goes_on_without(
    model: Transformer, start: Start, context: tuple[int, ...], taken: list[Request]
) -> None:
    request = Request(context, 260, (64,), policy="threshold:0", min_new_tokens=260)
    expected = start(model, resident=False).submit(request).result(60)

    assert same(start(model, resident=resident(tokens=256)).submit(request).result(60), expected)
    assert 1 <= len(taken) < 5


def test_a_look_that_is_no_number_of_steps_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="look is 0"):
        ResidentOptions(look=0)
    with pytest.raises(InvalidRequestError, match="tokens is 0"):
        ResidentOptions(tokens=0)
