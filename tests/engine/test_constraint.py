"""Answers within a constraint, against references that reject by hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from calomel.engine import Engine, Request, SamplingParams, Transformer
from calomel.engine.errors import ConstraintFailedError, InvalidRequestError, RequestCancelledError, RequestFailedError

MASK, END, VOCAB = 95, 96, 97
Start = Callable[..., Engine]
Naive = Callable[[Transformer, list[int], list[int]], Tensor]
Scripted = Callable[..., Any]


@dataclass(frozen=True)
class Rule:
    """An automaton: `follows[state]` maps tokens to states; an answer may end in the states of `ends`."""

    follows: tuple[dict[int, int], ...]
    ends: frozenset[int]

    def begin(self) -> Way:
        return Way(self)

    def accepts(self, tokens: Sequence[int], *, whole: bool) -> bool:
        way = self.begin()
        return way.advance(tokens) == len(tokens) and (way.may_end() or not whole)


@dataclass
class Way:
    rule: Rule
    state: int = 0
    taken: list[int] = field(default_factory=list)

    def advance(self, tokens: Sequence[int]) -> int:
        for count, token in enumerate(tokens):
            if token not in self.rule.follows[self.state]:
                return count
            self.state = self.rule.follows[self.state][token]
            self.taken.append(token)
        return len(tokens)

    def may_end(self) -> bool:
        return self.state in self.rule.ends

    def allowed(self) -> bytes:
        mask = bytearray(VOCAB // 8 + 1)
        for token in self.rule.follows[self.state]:
            mask[token // 8] |= 1 << token % 8
        return bytes(mask)

    def forced(self) -> Sequence[int]:
        follows = self.rule.follows[self.state]
        return list(follows) if len(follows) == 1 and not self.may_end() else []


ANYTHING = Rule(({token: 0 for token in range(VOCAB) if token not in {MASK, END}},), frozenset({0}))
# Pairs of a small and a larger token, at least three of them.
PAIRS = Rule(
    tuple(
        {token: min(state + 1, 7 - state % 2) for token in (range(20) if state % 2 == 0 else range(40, 60))}
        for state in range(8)
    ),
    frozenset({6}),
)


def rules() -> st.SearchStrategy[Rule]:
    """Automata with a way on, or an end, in every state."""
    edges = st.dictionaries(st.integers(0, 94), st.integers(0, 4), min_size=1, max_size=6)
    return st.builds(
        lambda follows, ends: Rule(tuple(follows), frozenset(ends)),
        st.lists(edges, min_size=5, max_size=5),
        st.sets(st.integers(0, 4), min_size=1),
    )


def naive_canvas(  # noqa: C901
    naive: Naive, model: Transformer, context: list[int], rule: Rule, size: int, steps: int, threshold: float
) -> list[int]:
    """One canvas by whole forwards: reveal by confidence, then reject from the front by hand."""
    ids: list[int] = [MASK] * size
    front = 0
    for step in range(1, 1000):
        if model.config.diffusion.logit_shift:
            logits = naive(model, context[:-1], [context[-1], *ids])[len(context) - 1 : -1]
        else:
            logits = naive(model, context, ids)[len(context) :]
        logits[:, MASK] = -torch.inf
        confidence, best = logits.softmax(-1).max(-1)
        masked = [place for place, token in enumerate(ids) if token == MASK]
        surest = max(masked, key=lambda place: float(confidence[place]))
        for place in masked:
            if confidence[place] >= threshold or place == surest or step == steps:
                ids[place] = int(best[place])
        begin = front
        while front < size and (ids[front] != MASK or front == begin):
            token = ids[front] if ids[front] != MASK else int(best[front])
            if token == END:
                right = rule.accepts(ids[:front], whole=True)
            else:
                right = rule.accepts([*ids[:front], token], whole=False)
            if not right:
                way = rule.begin()
                way.advance(ids[:front])
                allowed = [*way.rule.follows[way.state], *([END] if way.may_end() else [])]
                token = max(sorted(allowed), key=lambda each: float(logits[front, each]))
            ids[front] = token
            front += 1
            if token == END:
                return ids[: front - 1]
            if not right and step != steps:
                ids[front:] = [MASK] * (size - front)
        if front == size:
            return ids
    raise AssertionError("never done")


@pytest.mark.parametrize("steps", [1, 3, 99])
@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.9])
def test_a_canvas_within_a_constraint_equals_rejection_by_hand(
    model: Transformer, start: Start, naive: Naive, context: tuple[int, ...], threshold: float, steps: int
) -> None:
    engine = start(model, prefill_chunk=16)
    for size in (1, 5, 12):
        expected = naive_canvas(naive, model, list(context), PAIRS, size, steps, threshold)

        result = engine.submit(
            Request(
                context,
                max_new_tokens=size,
                canvas_lengths=(size,),
                policy=f"threshold:{threshold}",
                max_steps=steps,
                constraint=PAIRS,
            )
        ).result(60)

        assert list(result.ids) == expected
        assert result.steps <= min(steps, size)


def test_causal_decisions_within_a_constraint_equal_masked_left_to_right_decoding(
    model: Transformer, start: Start, naive: Naive, context: tuple[int, ...]
) -> None:
    engine = start(model)
    way, expected = PAIRS.begin(), list[int]()
    while len(expected) < 14:
        logits = naive(model, [*context, *expected], [])[-1]
        allowed = sorted([*PAIRS.follows[way.state], *([END] if way.may_end() else [])])
        token = max(allowed, key=lambda each: float(logits[each]))
        if token == END:
            break
        expected.append(token)
        way.advance((token,))

    request = Request(context, max_new_tokens=14, policy="left_to_right", constraint=PAIRS)
    result = engine.submit(request).result(60)
    helped = engine.submit(replace(request, guess=(*expected[:6], 3, *expected[6:]))).result(60)

    assert list(result.ids) == list(helped.ids) == expected
    assert helped.forwards < result.forwards


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_constraint_that_allows_everything_changes_no_causal_answer(
    model: Transformer, start: Start, context: tuple[int, ...], temperature: float
) -> None:
    engine = start(model)
    sampling = SamplingParams(temperature=temperature, seed=5)
    plain = Request(context, max_new_tokens=20, policy="left_to_right", sampling=sampling)

    free, bound = (engine.submit(request).result(60) for request in (plain, replace(plain, constraint=ANYTHING)))

    assert bound.ids == free.ids
    assert bound.log_probs == pytest.approx(free.log_probs, abs=1e-4)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rule=rules(),
    policy=st.sampled_from(["threshold:0.9", "prefix:0.8", "threshold:0.0", "fixed:2", "left_to_right"]),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=2).map(tuple),
    steps=st.integers(1, 9),
    size=st.integers(1, 24),
    temperature=st.sampled_from([0.0, 0.7, 1.5]),
    minimum=st.integers(0, 6),
    seed=st.integers(0, 3),
)
def test_whatever_is_asked_the_answer_is_allowed(
    model: Transformer,
    start: Start,
    context: tuple[int, ...],
    rule: Rule,
    policy: str,
    lengths: tuple[int, ...],
    steps: int,
    size: int,
    temperature: float,
    minimum: int,
    seed: int,
) -> None:
    engine = start(model)
    result = engine.submit(
        Request(
            context,
            max_new_tokens=size,
            min_new_tokens=min(minimum, size),
            canvas_lengths=lengths,
            policy=policy,
            max_steps=steps,
            sampling=SamplingParams(temperature=temperature, seed=seed, repetition_penalty=1.3, top_p=0.9, top_k=20),
            constraint=rule,
        )
    ).result(60)

    assert rule.accepts(result.ids, whole=result.finish_reason == "stop")
    assert len(result.log_probs) == len(result.ids)
    assert len(result.ids) <= size
    engine.close()


def test_what_is_shown_as_revealed_is_never_taken_back(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    engine = start(model)
    handle = engine.submit(
        Request(
            context,
            max_new_tokens=18,
            canvas_lengths=(6,),
            policy="fixed:2",
            max_steps=99,
            constraint=PAIRS,
            record_canvases=True,
        )
    )
    result = handle.result(60)

    fronts = []
    for state in handle.states():
        known = [token for token, revealed in zip(state.ids, state.revealed, strict=True) if revealed and token != END]
        assert known == list(result.ids[: len(known)])
        fronts.append(sum(state.revealed))
    assert fronts == sorted(fronts)
    assert len(fronts) == result.steps


def test_the_end_token_comes_where_the_constraint_may_end_and_nowhere_else(
    scripted: Scripted, start: Start, context: tuple[int, ...]
) -> None:
    engine = start(scripted(len(context), []))  # a model that wants to end at once

    result = engine.submit(
        Request(context, max_new_tokens=20, canvas_lengths=(20,), constraint=PAIRS, max_steps=99)
    ).result(60)

    assert len(result.ids) == 6
    assert PAIRS.accepts(result.ids, whole=True)
    assert result.finish_reason == "stop"


def test_a_constraint_that_is_complete_ends_the_answer_that_the_model_would_go_on_with(
    scripted: Scripted, start: Start, context: tuple[int, ...]
) -> None:
    only = Rule(({7: 1}, {8: 2}, {}), frozenset({2}))
    for policy in ("threshold:0.9", "left_to_right"):
        engine = start(scripted(len(context), [7] * 30))
        request = Request(
            context, max_new_tokens=20, min_new_tokens=9, canvas_lengths=(8,), constraint=only, policy=policy
        )
        result = engine.submit(request).result(60)

        assert result.ids == (7, 8)
        assert result.finish_reason == "stop"


def test_what_the_model_proposes_rightly_is_revealed_in_parallel(
    scripted: Scripted, start: Start, context: tuple[int, ...]
) -> None:
    script = [1, 41, 2, 42, 3, 43]
    engine = start(scripted(len(context), script))

    result = engine.submit(Request(context, max_new_tokens=20, canvas_lengths=(16,), constraint=PAIRS)).result(60)

    assert list(result.ids) == script
    assert result.steps == 1


def test_what_the_constraint_forces_takes_no_step_of_its_own(
    scripted: Scripted, start: Start, context: tuple[int, ...]
) -> None:
    # Ten forced tokens, one of two, ten forced ones, and the end.
    forced = Rule(
        (
            *({30: state + 1} for state in range(10)),
            {40: 11, 41: 11},
            *({31: state + 1} for state in range(11, 21)),
            {},
        ),
        frozenset({21}),
    )
    engine = start(scripted(len(context), [7] * 10 + [41] + [7] * 30))

    result = engine.submit(
        Request(context, max_new_tokens=40, canvas_lengths=(32,), policy="fixed:1", max_steps=99, constraint=forced)
    ).result(60)

    assert list(result.ids) == [30] * 10 + [41] + [31] * 10
    assert result.finish_reason == "stop"
    assert result.steps <= 3
    assert len(result.log_probs) == 21


def test_frozen_tokens_are_part_of_the_way(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    engine = start(model)
    for policy in ("threshold:0.9", "prefix:0.8", "left_to_right"):
        request = Request(
            context,
            max_new_tokens=12,
            canvas_lengths=(4,),
            frozen={0: 11, 3: 44, 6: 12},
            constraint=PAIRS,
            policy=policy,
            max_steps=99,
        )
        result = engine.submit(request).result(60)

        assert (result.ids[0], result.ids[3], result.ids[6]) == (11, 44, 12)
        assert PAIRS.accepts(result.ids, whole=result.finish_reason == "stop")


@pytest.mark.parametrize("policy", ["threshold:0.9", "prefix:0.8", "left_to_right"])
def test_a_constraint_without_a_way_on_ends_its_request_and_no_other(
    model: Transformer, start: Start, context: tuple[int, ...], policy: str
) -> None:
    engine = start(model)
    dead = Rule(({5: 1}, {}), frozenset())
    refused = Request(context, max_new_tokens=12, frozen={1: 50}, constraint=dead, policy=policy)
    other = Request(context, max_new_tokens=12, policy=policy)
    alone = engine.submit(other).result(60)

    bad, good = engine.submit_all((refused, other))

    with pytest.raises(ConstraintFailedError):
        bad.result(60)
    assert good.result(60).ids == alone.ids


def test_an_error_inside_a_constraint_ends_its_request_alone(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    class Broken(Way):
        def advance(self, tokens: Sequence[int]) -> int:
            raise ArithmeticError

    class Breaking(Rule):
        def begin(self) -> Way:
            return Broken(self)

    engine = start(model)
    bad, good = engine.submit_all(
        (
            Request(context, max_new_tokens=6, constraint=Breaking(PAIRS.follows, PAIRS.ends)),
            Request(context, max_new_tokens=6, constraint=PAIRS),
        )
    )

    with pytest.raises(RequestFailedError):
        bad.result(60)
    assert len(good.result(60).ids) == 6


@pytest.mark.parametrize("policy", ["threshold:0.9", "prefix:0.8", "left_to_right"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_company_changes_neither_the_constrained_nor_the_others(
    model: Transformer, start: Start, context: tuple[int, ...], policy: str, temperature: float
) -> None:
    engine = start(model)

    def request(seed: int, rule: Rule | None) -> Request:
        sampling = SamplingParams(temperature=temperature, seed=seed)
        return Request(
            context[: 40 + seed],
            max_new_tokens=12,
            canvas_lengths=(7,),
            policy=policy,
            max_steps=99,
            sampling=sampling,
            constraint=rule,
        )

    requests = [request(1, PAIRS), request(2, None), request(3, ANYTHING), request(4, None), request(5, PAIRS)]
    apart = [engine.submit(each).result(60).ids for each in requests]

    together = [handle.result(60).ids for handle in engine.submit_all(requests)]

    assert together == apart


def test_a_request_can_be_sent_twice(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    engine = start(model)
    request = Request(context, max_new_tokens=12, constraint=PAIRS)

    first, second = (engine.submit(request).result(60) for _ in range(2))

    assert first.ids == second.ids


def test_a_deadline_leaves_what_is_settled(scripted: Scripted, start: Start, context: tuple[int, ...]) -> None:
    times = iter([*[0.0] * 8, *[9.0] * 50])
    model = scripted(len(context), [1, 50, 2, 50, 3, 50])
    model.confidence = lambda place, step: 0.5
    engine = start(model, clock=lambda: next(times, 9.0))

    result = engine.submit(
        Request(
            context,
            max_new_tokens=6,
            canvas_lengths=(6,),
            policy="fixed:1",
            max_steps=99,
            deadline=5.0,
            constraint=PAIRS,
        )
    ).result(60)

    assert PAIRS.accepts(result.ids, whole=False)
    assert list(result.ids) == [1, 50, 2, 50, 3, 50][: len(result.ids)]


def test_a_constrained_request_can_be_cancelled(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    reached = threading.Event()

    class Slow(Way):
        def advance(self, tokens: Sequence[int]) -> int:
            reached.set()
            time.sleep(0.002)
            return super().advance(tokens)

    class Slowly(Rule):
        def begin(self) -> Way:
            return Slow(self)

    engine = start(model)
    rule = Slowly((dict.fromkeys(range(90), 0),), frozenset())
    handle = engine.submit(Request(context, max_new_tokens=900, canvas_lengths=(8,), constraint=rule))
    reached.wait(10)

    handle.cancel()

    with pytest.raises(RequestCancelledError):
        handle.result(60)
    assert len(engine.submit(Request(context, max_new_tokens=3)).result(60).ids) <= 3


def test_given_tokens_take_no_constraint(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    with pytest.raises(InvalidRequestError, match="constraint"):
        start(model).submit(Request(context, given=(1, 2), constraint=PAIRS))
