"""The probability of an answer that the caller gives."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.conftest import END, MASK

from calomel.engine import DeadlineExceededError, Request, Result, SamplingParams
from calomel.engine.errors import (
    ContextTooLongError,
    InvalidRequestError,
    PolicyUnavailableError,
    RequestCancelledError,
    TokenOutOfRangeError,
)

GIVEN = (5, 80, 5, 33, 12, 7, 61)


def teacher_forced(naive: Any, model: Any, context: tuple[int, ...], given: tuple[int, ...]) -> list[float]:
    """Log-probability of every given token and of the end, from one forward without a cache."""
    logits = naive(model, [*context, *given], [])[len(context) - 1 :].clone()
    logits[:, MASK] = -torch.inf
    targets = torch.tensor([*given, END], device=logits.device)
    found: list[float] = logits.log_softmax(-1).gather(-1, targets[:, None])[:, 0].tolist()
    return found


def scores(result: Result) -> list[float]:
    assert result.end_log_prob is not None
    return [*result.log_probs, result.end_log_prob]


@pytest.mark.parametrize("given", [GIVEN, (), GIVEN * 12], ids=["some tokens", "nothing", "more than a canvas"])
def test_given_tokens_have_the_probability_of_an_uncached_forward(
    given: tuple[int, ...], model: Any, context: Any, start: Any, naive: Any
) -> None:
    result = start(model).submit(Request(context, given=given)).result()
    assert result.ids == given
    assert result.finish_reason == "stop"
    assert result.forwards == 1
    assert scores(result) == pytest.approx(teacher_forced(naive, model, context, given), abs=1e-5)


def test_a_cached_context_changes_no_probability(model: Any, context: Any, start: Any, naive: Any) -> None:
    engine = start(model)
    first = engine.submit(Request(context, given=GIVEN)).result()
    again = engine.submit(Request(context, given=GIVEN)).result()
    longer = (*context, 3, 4)
    typed = engine.submit(Request(longer, given=GIVEN)).result()
    assert (first.cached_tokens, again.cached_tokens, typed.cached_tokens) == (0, len(context) - 1, len(context))
    assert scores(again) == pytest.approx(scores(first), abs=1e-5)
    assert scores(typed) == pytest.approx(teacher_forced(naive, model, longer, GIVEN), abs=1e-5)


def test_answers_judged_together_and_beside_canvases_are_judged_as_if_alone(
    model: Any, context: Any, start: Any, naive: Any
) -> None:
    texts = [GIVEN, (), (1,), GIVEN[::-1], tuple(range(40))]
    engine = start(model)
    canvas = Request(context, max_new_tokens=12, canvas_lengths=(8,))
    alone = start(model).submit(canvas).result()
    asked = [Request(context, given=text) for text in texts]
    *judged, answered = engine.submit_all([*asked, canvas])
    assert answered.result().ids == alone.ids
    for handle, text in zip(judged, texts, strict=True):
        result = handle.result()
        assert result.ids == text
        assert scores(result) == pytest.approx(teacher_forced(naive, model, context, text), abs=1e-5)


def test_what_shapes_a_chosen_answer_does_not_touch_a_given_one(model: Any, context: Any, start: Any) -> None:
    engine = start(model)
    plain = engine.submit(Request(context, given=GIVEN)).result()
    shaped = Request(
        context,
        given=GIVEN,
        max_new_tokens=3,
        min_new_tokens=2,
        frozen={0: 1},
        sampling=SamplingParams(temperature=1.0, repetition_penalty=2.0),
        until=lambda _: True,
    )
    assert scores(engine.submit(shaped).result()) == scores(plain)


def test_answers_submitted_together_share_their_first_forward(model: Any, context: Any, start: Any) -> None:
    steps: list[int] = []
    engine = start(model, observe=lambda report: steps.append(report.requests))
    engine.submit(Request(context, given=())).result()
    steps.clear()
    handles = engine.submit_all([Request(context, given=GIVEN[:count]) for count in range(5)])
    for handle in handles:
        handle.result()
    assert steps == [5]


def test_of_requests_submitted_together_a_wrong_one_keeps_all_out(model: Any, context: Any, start: Any) -> None:
    steps: list[int] = []
    engine = start(model, observe=lambda report: steps.append(report.requests))
    with pytest.raises(InvalidRequestError):
        engine.submit_all([Request(context, given=GIVEN), Request(context, given=(END,))])
    assert steps == []


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ((END,), InvalidRequestError),
        ((MASK,), InvalidRequestError),
        ((1000,), TokenOutOfRangeError),
        ((-1,), TokenOutOfRangeError),
        ((1,) * 1000, ContextTooLongError),
    ],
)
def test_given_tokens_that_no_answer_can_have_are_refused(
    given: tuple[int, ...], error: type[Exception], model: Any, context: Any, start: Any
) -> None:
    with pytest.raises(error, match="given"):
        start(model).submit(Request(context, given=given))


def test_a_checkpoint_without_a_causal_mode_judges_nothing(model: Any, context: Any, start: Any) -> None:
    model.config = replace(model.config, diffusion=replace(model.config.diffusion, verifiable=False))
    with pytest.raises(PolicyUnavailableError, match="given"):
        start(model).submit(Request(context, given=GIVEN))


def test_a_cancelled_judgement_ends_as_cancelled(model: Any, context: Any, start: Any) -> None:
    engine = start(model, prefill_chunk=1)
    handle = engine.submit(Request(context * 10, given=GIVEN))
    handle.cancel()
    with pytest.raises(RequestCancelledError):
        handle.result()


def test_a_judgement_that_comes_too_late_says_so(model: Any, context: Any, start: Any) -> None:
    engine = start(model)
    with pytest.raises(DeadlineExceededError):
        engine.submit(Request(context, given=GIVEN, deadline=time.monotonic() - 1.0)).result()


def test_what_follows_the_given_tokens_finds_them_in_the_cache(model: Any, context: Any, start: Any) -> None:
    engine = start(model)
    engine.submit(Request(context, given=GIVEN)).result()
    behind = engine.submit(Request((*context, *GIVEN), max_new_tokens=4, canvas_lengths=(4,))).result()
    engine.submit(Request(context[:30], given=GIVEN, reuse=20)).result()
    apart = engine.submit(Request((*context[:30], *GIVEN, 1), given=())).result()
    assert behind.cached_tokens >= len(context) + len(GIVEN) - 1
    assert apart.cached_tokens == 30  # the context that the longer one before had
