"""Whole requests, against naive loops and against a model that follows a script."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.conftest import CONFIG, END, MASK, PAIRS, Ask, Context, Naive, Rule, Script, Start
from torch import Tensor

from calomel.engine import CanvasState, Request, Result, SamplingParams, Transformer
from calomel.engine.errors import InvalidRequestError

POLICIES = ("threshold:0.5", "left_to_right")
SHORT = (1, 2, 3, 4)


def naive_canvas(
    naive: Naive,
    model: Transformer,
    context: Context,
    size: int,
    threshold: float,
    steps: int = 999,
    rule: Rule | None = None,
) -> list[int]:
    """Threshold decoding of one canvas by whole forwards, up to its end token: reject from the front by hand."""
    ids, front = [MASK] * size, 0
    for step in range(1, steps + 1):
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
        if rule is None:
            ids = ids[: ids.index(END) + 1] if END in ids else ids
        else:
            front = rejected(rule, ids, front, best.tolist(), logits, last=step == steps)
        if MASK not in ids:
            break
    return ids


def rejected(rule: Rule, ids: list[int], front: int, best: list[int], logits: Tensor, *, last: bool) -> int:
    """Move the front of `ids` over what `rule` allows, one token at least; what it refuses becomes the best allowed."""
    begin = front
    while front < len(ids) and (ids[front] != MASK or front == begin):
        token = ids[front] if ids[front] != MASK else best[front]
        ended = token == END
        right = rule.accepts(ids[:front] if ended else [*ids[:front], token], whole=ended)
        if not right:
            way = rule.begin()
            way.advance(ids[:front])
            allowed = [*way.rule.follows[way.state], *([END] if way.may_end() else [])]
            token = max(sorted(allowed), key=lambda each: float(logits[front, each]))
        ids[front] = token
        front += 1
        if token == END:
            del ids[front:]
        elif not right and not last:
            ids[front:] = [MASK] * (len(ids) - front)
    return front


@pytest.mark.parametrize("rule", [None, PAIRS], ids=["whatever it is", "within a constraint"])
@pytest.mark.parametrize("steps", [1, 3, 99])
@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.3, 0.9])
def test_threshold_decoding_equals_the_naive_loop(
    model: Transformer, ask: Ask, naive: Naive, context: Context, threshold: float, steps: int, rule: Rule | None
) -> None:
    for size in (1, 7, 20):
        expected = naive_canvas(naive, model, context, size, threshold, steps, rule)

        how = {"max_new_tokens": size, "canvas_length": size, "max_steps": steps, "constraint": rule}
        result = ask(policy=f"threshold:{threshold}", **how)

        assert list(result.ids) == [token for token in expected if token != END]
        assert result.steps <= min(steps, size)
        if rule is None:
            assert result.finish_reason == ("stop" if END in expected else "length")
            assert result.steps == result.forwards


def test_left_to_right_equals_naive_decoding(model: Transformer, ask: Ask, naive: Naive, context: Context) -> None:
    for stop in (20, 40, 61):
        expected: list[int] = []
        log_probs: list[float] = []
        while len(expected) < 30 and END not in expected:
            logits = naive(model, [*context[:stop], *expected], [])[-1]
            logits[MASK] = -torch.inf
            expected.append(int(logits.argmax()))
            log_probs.append(float(logits.log_softmax(-1).max()))

        result = ask(context=context[:stop], max_new_tokens=30, policy="left_to_right")

        assert list(result.ids) == [token for token in expected if token != END]
        assert list(result.log_probs) == pytest.approx(log_probs[: len(result.ids)], abs=1e-4)
        assert (result.steps, result.forwards) == (0, len(expected))


def test_a_longer_answer_is_a_sequence_of_canvases(
    model: Transformer, ask: Ask, naive: Naive, context: Context
) -> None:
    sizes = []
    for stop in (21, 33, 45, 57):
        expected: list[int] = []
        while len(expected) < 24 and END not in expected:
            size = min(8, 24 - len(expected) + 1)
            expected += naive_canvas(naive, model, (*context[:stop], *expected), size, 0.5)

        how = {"max_new_tokens": 24, "canvas_length": 8, "policy": "threshold:0.5", "max_steps": 99}
        result = ask(context=context[:stop], **how)

        assert list(result.ids) == [token for token in expected if token != END]
        sizes.append(len(result.ids))
    assert max(sizes) == 24


def test_an_end_token_deletes_the_tail(start: Start, scripted: Script) -> None:
    model = scripted(4, [10, 11, 12])
    model.confidence = lambda place, step: 0.99 if step > 1 or place > 2 else 0.5

    handle = start(model).submit(Request(SHORT, canvas_length=16, record_canvases=True))
    result = handle.result(60)

    assert result.ids == (10, 11, 12)
    assert (result.finish_reason, result.steps) == ("stop", 2)
    assert result.end_log_prob == pytest.approx(math.log(0.99), abs=1e-4)
    assert list(handle.states()) == [
        CanvasState(1, (MASK, MASK, MASK, END), (False, False, False, True)),
        CanvasState(2, (10, 11, 12, END), (True, True, True, True)),
    ]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("answer", "bound", "reason"), [(0, 64, "stop"), *((50, size, "length") for size in (1, 2, 8, 9, 17))]
)
def test_an_answer_is_as_long_as_it_is_but_not_longer_than_asked(
    start: Start, scripted: Script, policy: str, answer: int, bound: int, reason: str
) -> None:
    script = list(range(10, 10 + answer))

    result = start(scripted(4, script)).submit(Request(SHORT, bound, 8, policy=policy)).result(60)

    assert (list(result.ids), result.finish_reason) == (script[:bound], reason)


def test_an_end_token_right_behind_the_bound_is_a_stop(start: Start, scripted: Script) -> None:
    result = start(scripted(4, [10, 11])).submit(Request(SHORT, max_new_tokens=2)).result(60)

    assert (result.ids, result.finish_reason) == ((10, 11), "stop")


def test_what_is_kept_changes_no_token(model: Transformer, ask: Ask) -> None:
    results = [ask(max_new_tokens=8, canvas_length=8, reuse=reuse) for reuse in (30, 0, None)]
    encoded = 61 - model.config.diffusion.logit_shift

    assert [result.cached_tokens for result in results] == [0, encoded, encoded]
    assert [result.computed_tokens for result in results] == [61, 61 - encoded, 61 - encoded]
    assert len({result.ids for result in results}) == 1
    assert results[-1].log_probs == pytest.approx(results[0].log_probs, abs=1e-4)


def test_contexts_of_earlier_requests_change_no_token(model: Transformer, start: Start, context: Context) -> None:
    engine = start(model, prefill_chunk=7, page_size=4)
    contexts = [context[:40], (*context[:40], 3, 4), context[:38], (*context[:20], 9, *context[20:]), context]
    for index, each in enumerate(contexts * 2):
        request = Request(each, 12, 6, policy=POLICIES[index % 2], reuse=30)
        expected = start(model).submit(request).result(60)

        assert engine.submit(request).result(60).ids == expected.ids


@pytest.mark.parametrize("policy", ["fixed:1", "left_to_right"])
def test_penalties_keep_an_answer_from_repeating_itself(start: Start, scripted: Script, policy: str) -> None:
    model = scripted(4, [10] * 6)
    model.confidence = lambda place, step: 0.5
    request = Request(SHORT, 6, 6, policy=policy, sampling=SamplingParams(presence_penalty=20.0))

    result = start(model).submit(request).result(60)

    assert result.ids.count(10) == 1
    assert len(set(result.ids)) == len(result.ids)


@pytest.mark.parametrize("policy", ["threshold:0.5", "fixed:3", "left_to_right"])
def test_an_answer_does_not_end_before_its_least_length(model: Transformer, ask: Ask, policy: str) -> None:
    model.embed_tokens.weight.data[END] = 3 * model.embed_tokens.weight.mean(0)
    for context in [(1, 2, 3), (9, 8, 7, 6), (40, 41), (5,) * 20]:
        result = ask(context=context, max_new_tokens=12, canvas_length=6, policy=policy, min_new_tokens=4)
        assert len(result.ids) >= 4
        assert END not in result.ids


@pytest.mark.parametrize("policy", POLICIES)
def test_a_context_of_one_token_is_answered(ask: Ask, policy: str) -> None:
    assert ask(context=(3,), max_new_tokens=6, canvas_length=6, policy=policy).computed_tokens <= 1


def test_an_answer_ends_where_its_beginning_is_over(scripted: Script, start: Start) -> None:
    answer = [10, 11, 50, 12, 13, 14]
    asked: list[Context] = []

    def over(ids: Any) -> bool:
        asked.append(tuple(ids))
        return 50 in ids

    def answered(until: Any) -> Any:
        model = scripted(4, answer)
        model.confidence = lambda place, step: 0.9 if place < 3 * step else 0.2
        request = Request(SHORT, 20, canvas_length=16, policy="threshold:0.5", max_steps=4, until=until)
        return start(model).submit(request).result(60)

    whole, ended = answered(None), answered(over)
    assert (list(whole.ids), whole.forwards) == (answer, 3)
    assert (list(ended.ids), ended.forwards, ended.finish_reason) == (answer[:3], 1, "stop")
    assert ended.log_probs == pytest.approx(whole.log_probs[:3])
    assert asked == [tuple(answer[:3])]


def test_under_the_joint_threshold_a_revealed_token_changes(scripted: Script, start: Start) -> None:
    model: Any = scripted(4, [10, 11, 12, 13])
    plain = model.forward

    def forward(*args: Any) -> Tensor:
        """From its second step on the model thinks otherwise of the whole canvas."""
        found: Tensor = plain(*args)
        if model.canvas_step > 1:
            model.answer = model.causal = [20] * 5
        return found

    model.forward = forward
    asked = Request(SHORT, 4, 4, policy="joint:0.99/0.5/3", max_steps=9, record_canvases=True)
    model.confidence = lambda place, step: 0.995 if place < 3 or step > 1 else 0.6
    handle = start(model).submit(asked)

    assert next(handle.states()).ids == (10, 11, 12, MASK)
    assert handle.result(60).ids == (20, 20, 20, 20)


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
def test_a_guess_saves_forwards(guess: list[int], forwards: int, scripted: Script, start: Start) -> None:
    request = Request(SHORT, 20, policy="left_to_right", guess=tuple(guess))

    result = start(scripted(4, ANSWER)).submit(request).result(60)

    assert list(result.ids) == ANSWER
    assert result.forwards == forwards


@pytest.mark.parametrize(
    ("limit", "more"),
    [
        (1, {}),
        (2, {}),
        (12, {"min_new_tokens": 9}),
        (12, {"sampling": SamplingParams(frequency_penalty=1.5, presence_penalty=0.5, repetition_penalty=1.2)}),
    ],
)
def test_a_guess_changes_nothing(limit: int, more: dict[str, Any], ask: Ask) -> None:
    plain = ask(max_new_tokens=limit, policy="left_to_right", **more)
    ids = plain.ids
    for guess in (ids, ids[1:], (*ids[:3], 9, *ids[3:]), (9, 9, *ids[4:]), ids * 3):
        found = ask(max_new_tokens=limit, policy="left_to_right", guess=guess, **more)
        assert (found.ids, found.finish_reason) == (ids, plain.finish_reason)
        assert [*found.log_probs, found.end_log_prob or 0.0] == pytest.approx(
            [*plain.log_probs, plain.end_log_prob or 0.0], abs=1e-4
        )
        assert found.forwards <= plain.forwards


AHEAD = (*SHORT, *ANSWER, *SHORT)


@pytest.mark.parametrize("policy", ["left_to_right:8", "prefix:0.9/8"])
def test_what_stood_in_the_context_is_read_ahead_and_an_answer_that_is_over_within_it_ends_there(
    policy: str, scripted: Script, start: Start
) -> None:
    engine = start(scripted(len(AHEAD), ANSWER))
    plain = Request(AHEAD, 20, policy="left_to_right")
    ahead = replace(plain, policy=policy)

    expected, result = (engine.submit(request).result(60) for request in (plain, ahead))
    ended = engine.submit(replace(ahead, until=lambda ids: 13 in ids)).result(60)

    assert list(result.ids) == list(expected.ids) == ANSWER
    assert result.log_probs == pytest.approx(expected.log_probs)
    # Eight tokens and one more, then what is left of it in the context, and the end.
    assert (expected.forwards, result.forwards) == (len(ANSWER) + 1, 2)
    assert (list(ended.ids), ended.finish_reason) == (ANSWER[:4], "stop")


def test_a_checkpoint_without_a_mask_token_writes_from_left_to_right_alone(start: Start) -> None:
    diffusion = replace(CONFIG.diffusion, mask_token_id=-1)
    engine = start(Transformer(replace(CONFIG, diffusion=diffusion)))

    with pytest.raises(InvalidRequestError, match=r"'threshold:0\.9' needs a mask token, and this checkpoint has none"):
        engine.submit(Request(SHORT))
    assert engine.submit(Request(SHORT, 4, policy="left_to_right")).result(60).forwards > 0


def test_any_of_several_ends_ends_an_answer_and_none_before_its_least_length(scripted: Script, start: Start) -> None:
    asked = Request(SHORT, 20, policy="left_to_right")
    engine = start(scripted(len(SHORT), ANSWER), end_token_ids=(13, 15))

    found = engine.submit(asked).result(60)
    longer = engine.submit(replace(asked, min_new_tokens=5)).result(60)

    assert (list(found.ids), found.finish_reason) == (ANSWER[:3], "stop")
    assert found.end_log_prob is not None
    assert (list(longer.ids[:3]), 13 in longer.ids) == (ANSWER[:3], False)


# The probability of an answer that the caller gives.
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
