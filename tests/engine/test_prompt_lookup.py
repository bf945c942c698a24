"""Guesses of the answer, which are read ahead and change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.engine.conftest import CONFIG

from calomel.engine import Request, SamplingParams, Transformer
from calomel.engine.errors import PolicyUnavailableError, TokenOutOfRangeError
from calomel.engine.policies import agreement

CONTEXT = (1, 2, 3)
ANSWER = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]


@pytest.mark.parametrize(
    ("guess", "forwards"),
    [
        pytest.param(ANSWER, 1, id="the answer itself"),
        pytest.param(ANSWER[:4], 7, id="its beginning"),
        pytest.param([*ANSWER, 20, 21], 1, id="more than it"),
        pytest.param([*ANSWER[:4], 50, *ANSWER[5:]], 2, id="another token in one place"),
        pytest.param([*ANSWER[:3], 50, 51, *ANSWER[3:]], 2, id="two tokens too many"),
        pytest.param([*ANSWER[:4], *ANSWER[5:]], 3, id="a token too few"),
        pytest.param([*ANSWER[:3], 50, *ANSWER[6:]], 5, id="a name of one token for one of three"),
        pytest.param([*ANSWER[:3], 50, 51, 52, *ANSWER[5:]], 4, id="a name of three tokens for one of two"),
        pytest.param([60, 61, 62], 11, id="something else"),
    ],
)
def test_a_guess_saves_forwards_and_changes_nothing(guess: list[int], forwards: int, scripted: Any, start: Any) -> None:
    plain = Request(CONTEXT, 20, policy="left_to_right")
    expected = start(scripted(len(CONTEXT), ANSWER)).submit(plain).result(60)
    guessed = Request(CONTEXT, 20, policy="left_to_right", guess=tuple(guess))
    result = start(scripted(len(CONTEXT), ANSWER)).submit(guessed).result(60)

    assert list(result.ids) == list(expected.ids) == ANSWER
    assert result.log_probs == pytest.approx(expected.log_probs)
    assert result.end_log_prob == pytest.approx(expected.end_log_prob)
    assert expected.forwards == len(ANSWER) + 1
    assert result.forwards == forwards


@pytest.mark.parametrize(
    ("limit", "more"),
    [
        (1, {}),
        (2, {}),
        (7, {}),
        (12, {}),
        (12, {"frozen": {3: 30, 9: 31}}),
        (12, {"min_new_tokens": 9}),
        (12, {"sampling": SamplingParams(frequency_penalty=1.5, presence_penalty=0.5, repetition_penalty=1.2)}),
    ],
)
def test_random_weights_decode_the_same_with_any_guess(
    limit: int, more: dict[str, Any], model: Any, context: Any, start: Any
) -> None:
    engine = start(model)
    asked = Request(context, limit, policy="left_to_right", **more)
    plain = engine.submit(asked).result(60)
    ids = plain.ids
    for guess in (ids, ids[1:], (*ids[:3], 9, *ids[3:]), (9, 9, *ids[4:]), ids * 3):
        found = engine.submit(replace(asked, guess=guess)).result(60)
        assert (found.ids, found.finish_reason) == (ids, plain.finish_reason)
        assert found.log_probs == pytest.approx(plain.log_probs, abs=1e-4)
        assert found.forwards <= plain.forwards


def test_what_stood_in_the_context_is_read_ahead_and_changes_nothing(scripted: Any, start: Any) -> None:
    context = (*CONTEXT, *ANSWER, 1, 2, 3)
    plain = Request(context, 20, policy="left_to_right")
    expected = start(scripted(len(context), ANSWER)).submit(plain).result(60)
    result = start(scripted(len(context), ANSWER)).submit(replace(plain, policy="left_to_right:8")).result(60)

    assert list(result.ids) == list(expected.ids) == ANSWER
    assert result.log_probs == pytest.approx(expected.log_probs)
    # Eight tokens and one more, then what is left of it in the context, and the end.
    assert (expected.forwards, result.forwards) == (len(ANSWER) + 1, 2)


def test_an_answer_that_is_over_within_what_was_read_ahead_ends_there(scripted: Any, start: Any) -> None:
    context = (*CONTEXT, *ANSWER, 1, 2, 3)
    asked = Request(context, 20, policy="left_to_right:8", until=lambda ids: 13 in ids)

    result = start(scripted(len(context), ANSWER)).submit(asked).result(60)

    assert (list(result.ids), result.finish_reason) == (ANSWER[:4], "stop")


@pytest.mark.parametrize("limit", [1, 7, 40])
def test_random_weights_decode_the_same_whatever_is_read_ahead(
    limit: int, model: Any, context: Any, start: Any
) -> None:
    engine = start(model)
    asked = Request((*context, *context, *context[:5]), limit, policy="left_to_right")
    plain = engine.submit(asked).result(60)
    found = engine.submit(replace(asked, policy="left_to_right:6")).result(60)

    assert (found.ids, found.finish_reason) == (plain.ids, plain.finish_reason)
    assert found.log_probs == pytest.approx(plain.log_probs, abs=1e-4)
    assert found.forwards <= plain.forwards


def test_a_checkpoint_without_a_mask_token_writes_from_left_to_right_alone(start: Any) -> None:
    diffusion = replace(CONFIG.diffusion, mask_token_id=-1)
    engine = start(Transformer(replace(CONFIG, diffusion=diffusion)))

    with pytest.raises(
        PolicyUnavailableError, match=r"'threshold:0\.9' needs a mask token, and this checkpoint has none"
    ):
        engine.submit(Request(CONTEXT))
    assert engine.submit(Request(CONTEXT, 4, policy="left_to_right")).result(60).forwards > 0


def test_any_of_several_ends_ends_an_answer_and_none_before_its_least_length(scripted: Any, start: Any) -> None:
    asked = Request(CONTEXT, 20, policy="left_to_right")
    engine = start(scripted(len(CONTEXT), ANSWER), end_token_ids=(13, 15))

    found = engine.submit(asked).result(60)
    longer = engine.submit(replace(asked, min_new_tokens=5)).result(60)

    assert (list(found.ids), found.finish_reason) == (ANSWER[:3], "stop")
    assert found.end_log_prob is not None
    assert (list(longer.ids[:3]), 13 in longer.ids) == (ANSWER[:3], False)


def test_a_guess_of_tokens_that_do_not_exist_is_refused(model: Any, context: Any, start: Any) -> None:
    with pytest.raises(TokenOutOfRangeError, match="guess"):
        start(model).submit(Request(context, guess=(CONFIG.vocab_size,)))


@pytest.mark.parametrize(
    ("draft", "predicted", "room", "fixed"),
    [
        pytest.param([], [5], 9, 1, id="no draft: one token"),
        pytest.param([1, 2, 3], [1, 2, 3, 4], 9, 4, id="all agree: one more"),
        pytest.param([1, 2, 3], [1, 7, 3, 4], 9, 2, id="the correction is fixed too"),
        pytest.param([1, 2, 3], [7, 2, 3, 4], 9, 1, id="nothing agrees"),
        pytest.param([1, 2, 3], [1, 0, 3, 4], 9, 2, id="an end token ends it"),
        pytest.param([1, 2, 3], [1, 2, 3, 4], 2, 2, id="no more than there is room for"),
        pytest.param([1, 2], [1], 9, 1, id="known without the rest"),
    ],
)
def test_the_agreeing_prefix_and_the_correction_are_fixed(
    draft: list[int], predicted: list[int], room: int, fixed: int
) -> None:
    assert agreement(draft, predicted, ends=(0,), room=room) == fixed
