"""The probability of an answer that the caller gives."""

from __future__ import annotations

import pytest
import torch
from tests.engine.conftest import END, MASK, Ask, Context, Naive, Start

from calomel.engine import Request, Result, SamplingParams, Transformer
from calomel.engine.errors import InvalidRequestError

GIVEN = (5, 80, 5, 33, 12, 7, 61)


def teacher_forced(naive: Naive, model: Transformer, context: Context, given: Context) -> list[float]:
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
    given: Context, model: Transformer, context: Context, ask: Ask, naive: Naive
) -> None:
    # What shapes a chosen answer does not touch a given one.
    how = SamplingParams(temperature=1.0, repetition_penalty=2.0)
    shaped = {"max_new_tokens": 3, "min_new_tokens": 2, "sampling": how, "until": lambda _: True}
    cached = []
    for asked, more in ((context, {}), (context, shaped), ((*context, 3, 4), {})):
        result = ask(context=asked, given=given, **more)

        assert (result.ids, result.finish_reason, result.forwards) == (given, "stop", 1)
        assert scores(result) == pytest.approx(teacher_forced(naive, model, asked, given), abs=1e-5)
        cached.append(result.cached_tokens)
    assert cached == [0, len(context) - 1, len(context)]


def test_answers_judged_together_and_beside_canvases_are_judged_as_if_alone(
    model: Transformer, context: Context, start: Start, naive: Naive
) -> None:
    texts = [GIVEN, (), (1,), GIVEN[::-1], tuple(range(40))]
    canvas = Request(context, max_new_tokens=12, canvas_length=8)
    alone = start(model).submit(canvas).result()

    *judged, answered = start(model).submit_all([*(Request(context, given=text) for text in texts), canvas])

    assert answered.result().ids == alone.ids
    for handle, text in zip(judged, texts, strict=True):
        assert scores(handle.result()) == pytest.approx(teacher_forced(naive, model, context, text), abs=1e-5)


def test_requests_submitted_together_share_their_first_forward_and_a_wrong_one_keeps_all_out(
    model: Transformer, context: Context, start: Start
) -> None:
    steps: list[int] = []
    engine = start(model, observe=lambda report: steps.append(report.requests))
    engine.submit(Request(context, given=())).result()
    steps.clear()
    with pytest.raises(InvalidRequestError):
        engine.submit_all([Request(context, given=GIVEN), Request(context, given=(END,))])
    for handle in engine.submit_all([Request(context, given=GIVEN[:count]) for count in range(5)]):
        handle.result()
    assert steps == [5]


def test_what_follows_the_given_tokens_finds_them_in_the_cache(context: Context, ask: Ask) -> None:
    ask(given=GIVEN)
    behind = ask(context=(*context, *GIVEN), max_new_tokens=4, canvas_length=4)
    ask(context=context[:30], given=GIVEN, reuse=20)
    apart = ask(context=(*context[:30], *GIVEN, 1), given=())
    assert behind.cached_tokens >= len(context) + len(GIVEN) - 1
    assert apart.cached_tokens == 30 + len(GIVEN)


def test_a_given_answer_may_contain_tokens_that_end_others(
    model: Transformer, context: Context, start: Start, naive: Naive
) -> None:
    result = start(model, end_token_ids=(33,)).submit(Request(context, given=GIVEN)).result()

    assert result.ids == GIVEN
    assert scores(result) == pytest.approx(teacher_forced(naive, model, context, GIVEN), abs=1e-5)
