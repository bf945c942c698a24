"""Whole requests, against naive loops and against a model that follows a script."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from calomel.engine import CanvasState, DeadlineExceededError, Engine, Request, Result, SamplingParams, Transformer
from calomel.engine.errors import InvalidRequestError
from calomel.engine.sampling import best_length

MASK, END = 95, 96
Start = Callable[..., Engine]
Naive = Callable[[Transformer, list[int], list[int]], Tensor]
Scripted = Callable[..., Any]


def naive_canvas(naive: Naive, model: Transformer, context: list[int], size: int, threshold: float) -> list[int]:
    """Threshold decoding of one canvas by whole forwards, position by position."""
    ids: list[int] = [MASK] * size
    while MASK in ids:
        if model.config.diffusion.logit_shift:
            logits = naive(model, context[:-1], [context[-1], *ids])[len(context) - 1 : -1]
        else:
            logits = naive(model, context, ids)[len(context) :]
        logits[:, MASK] = -torch.inf
        confidence, best = logits.softmax(-1).max(-1)
        masked = [place for place, token in enumerate(ids) if token == MASK]
        surest = max(masked, key=lambda place: float(confidence[place]))
        for place in masked:
            if confidence[place] >= threshold or place == surest:
                ids[place] = int(best[place])
        if END in ids:
            ids = ids[: ids.index(END) + 1]
    return ids


def naive_left_to_right(
    naive: Naive, model: Transformer, context: list[int], size: int
) -> tuple[list[int], list[float]]:
    ids: list[int] = []
    log_probs: list[float] = []
    while len(ids) < size and END not in ids:
        logits = naive(model, context + ids, [])[-1]
        logits[MASK] = -torch.inf
        ids.append(int(logits.argmax()))
        log_probs.append(float(logits.log_softmax(-1).max()))
    return ids, log_probs


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.9])
def test_threshold_decoding_equals_the_naive_loop(
    model: Transformer, start: Start, naive: Naive, context: tuple[int, ...], threshold: float
) -> None:
    engine = start(model, prefill_chunk=16)
    for size in (1, 7, 20):
        expected = naive_canvas(naive, model, list(context), size, threshold)
        request = Request(
            context, max_new_tokens=size, canvas_lengths=(size,), policy=f"threshold:{threshold}", max_steps=99
        )

        result = engine.submit(request).result(60)

        assert list(result.ids) == [token for token in expected if token != END]
        assert result.finish_reason == ("stop" if END in expected else "length")
        assert result.steps == result.forwards


def test_left_to_right_equals_naive_decoding(
    model: Transformer, start: Start, naive: Naive, context: tuple[int, ...]
) -> None:
    engine = start(model)
    for stop in (20, 40, 61):
        expected, log_probs = naive_left_to_right(naive, model, list(context[:stop]), 30)
        request = Request(context[:stop], max_new_tokens=30, policy="left_to_right")

        result = engine.submit(request).result(60)

        assert list(result.ids) == [token for token in expected if token != END]
        assert list(result.log_probs) == pytest.approx(log_probs[: len(result.ids)], abs=1e-4)


def test_left_to_right_takes_one_forward_per_token(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    result = start(model).submit(Request(context, max_new_tokens=12, policy="left_to_right")).result(60)

    assert (result.steps, result.forwards) == (0, len(result.ids) + (result.finish_reason == "stop"))


def test_a_longer_answer_is_a_sequence_of_canvases(
    model: Transformer, start: Start, naive: Naive, context: tuple[int, ...]
) -> None:
    engine, sizes = start(model), []
    for stop in (21, 33, 45, 57):
        expected: list[int] = []
        while len(expected) < 24 and END not in expected:
            size = min(8, 24 - len(expected) + 1)
            expected += naive_canvas(naive, model, list(context[:stop]) + expected, size, 0.5)

        request = Request(context[:stop], 24, (8,), policy="threshold:0.5", max_steps=99)
        result = engine.submit(request).result(60)

        assert list(result.ids) == [token for token in expected if token != END]
        assert result.canvas_length == 8
        sizes.append(len(result.ids))
    assert max(sizes) == 24


def test_an_end_token_deletes_the_tail(start: Start, scripted: Scripted) -> None:
    model = scripted(4, [10, 11, 12])
    model.confidence = lambda place, step: 0.99 if step > 1 or place > 2 else 0.5

    handle = start(model).submit(Request((1, 2, 3, 4), canvas_lengths=(16,), record_canvases=True))
    result = handle.result(60)

    assert result.ids == (10, 11, 12)
    assert (result.finish_reason, result.steps) == ("stop", 2)
    assert result.end_log_prob == pytest.approx(math.log(0.99), abs=1e-4)
    assert list(handle.states()) == [
        CanvasState(1, (MASK, MASK, MASK, END), (False, False, False, True)),
        CanvasState(2, (10, 11, 12, END), (True, True, True, True)),
    ]


def test_an_empty_answer_is_an_answer(start: Start, scripted: Scripted) -> None:
    engine = start(scripted(4, []))
    for policy in ("threshold:0.9", "left_to_right"):
        result = engine.submit(Request((1, 2, 3, 4), policy=policy)).result(60)
        assert (result.ids, result.finish_reason, result.forwards) == ((), "stop", 1)


def test_the_answer_is_not_longer_than_asked(start: Start, scripted: Scripted) -> None:
    engine = start(scripted(4, list(range(10, 60))))
    for policy in ("threshold:0.9", "left_to_right"):
        for bound in (1, 2, 8, 9, 17):
            result = engine.submit(Request((1, 2, 3, 4), bound, (8,), policy=policy)).result(60)
            assert (result.ids, result.finish_reason) == (tuple(range(10, 10 + bound)), "length")


def test_an_end_token_right_behind_the_bound_is_a_stop(start: Start, scripted: Scripted) -> None:
    result = start(scripted(4, [10, 11])).submit(Request((1, 2, 3, 4), max_new_tokens=2)).result(60)

    assert (result.ids, result.finish_reason) == ((10, 11), "stop")


def test_max_steps_bounds_the_steps_of_a_canvas(start: Start, scripted: Scripted) -> None:
    model = scripted(4, list(range(10, 40)))
    model.confidence = lambda place, step: 0.3

    result = start(model).submit(Request((1, 2, 3, 4), 16, (16,), max_steps=3)).result(60)

    assert (result.steps, result.ids) == (3, tuple(range(10, 26)))


@pytest.mark.parametrize("policy", ["threshold:0.9", "left_to_right"])
def test_frozen_positions_stay_and_the_answer_reaches_them(
    model: Transformer, start: Start, context: tuple[int, ...], policy: str
) -> None:
    frozen = {2: 33, 3: 44, 11: 55}
    request = Request(context, 14, (8,), frozen, policy=policy)

    result = start(model).submit(request).result(60)

    assert len(result.ids) >= 12
    assert {place: result.ids[place] for place in frozen} == frozen


def test_frozen_tokens_are_read_by_the_canvas(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    engine = start(model)
    answers = {
        token: engine.submit(Request(context, 8, (8,), {7: token}, policy="threshold:0")).result(60).ids
        for token in (20, 21, 22, 23)
    }

    assert len({ids[:7] for ids in answers.values()}) > 1


def test_the_probe_chooses_the_length_of_the_highest_mean_confidence(start: Start, scripted: Scripted) -> None:
    model = scripted(4, list(range(10, 40)))
    model.confidence = lambda place, step: (0.9 if place < 4 else 0.95) if place < 12 else 0.2
    request = Request((1, 2, 3, 4), 32, (4, 12, 16, 32), max_steps=1)

    result = start(model).submit(request).result(60)

    assert [length for length, _ in result.length_scores] == [4, 12, 16, 32]
    assert dict(result.length_scores)[16] == pytest.approx((4 * 0.9 + 8 * 0.95 + 4 * 0.2) / 16, abs=1e-3)
    assert result.canvas_length == 12


def test_the_probe_is_the_first_step_of_the_chosen_canvas(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    engine = start(model)
    for stop in (21, 33, 45, 57, 61):
        probed = engine.submit(Request(context[:stop], 40, (4, 8, 16), policy="threshold:0.5")).result(60)
        request = Request(context[:stop], 40, (probed.canvas_length,), policy="threshold:0.5")
        direct = engine.submit(request).result(60)

        assert probed.ids == direct.ids
        assert probed.steps == direct.steps
        assert direct.length_scores == ()


def test_the_prefix_cache_changes_no_token(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    engine = start(model)
    request = Request(context, 16, (8,), policy="threshold:0.5")
    first = engine.submit(request).result(60)
    again = engine.submit(request).result(60)
    longer = engine.submit(dataclasses.replace(request, context=(*context, 5))).result(60)
    fresh = start(model).submit(dataclasses.replace(request, context=(*context, 5))).result(60)
    encoded = len(context) - model.config.diffusion.logit_shift

    assert (first.cached_tokens, first.computed_tokens) == (0, 61)
    assert (again.cached_tokens, again.computed_tokens) == (encoded, 61 - encoded)
    assert longer.cached_tokens == encoded
    assert (first.ids, longer.ids) == (again.ids, fresh.ids)
    assert again.log_probs == pytest.approx(first.log_probs, abs=1e-4)


def test_buffers_of_earlier_requests_change_no_token(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    engine = start(model, prefill_chunk=7, page_size=1)
    contexts = [context[:40], (*context[:40], 3, 4), context[:38], (*context[:20], 9, *context[20:]), context]
    for index, each in enumerate(contexts * 2):
        request = Request(each, 12, (6,), policy=("threshold:0.5", "left_to_right")[index % 2], reuse=30)
        expected = start(model).submit(request).result(60)

        assert engine.submit(request).result(60).ids == expected.ids


def test_only_the_reusable_beginning_is_kept_for_others(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    engine = start(model)
    request = Request(context, 8, (8,), reuse=30)
    first = engine.submit(request).result(60)
    again = engine.submit(dataclasses.replace(request, reuse=0)).result(60)
    keeper = engine.submit(dataclasses.replace(request, reuse=None)).result(60)
    reader = engine.submit(dataclasses.replace(request, reuse=0)).result(60)

    assert (first.cached_tokens, again.cached_tokens, keeper.cached_tokens) == (0, 30, 30)
    assert reader.cached_tokens >= len(context) - 1
    assert first.ids == again.ids == keeper.ids == reader.ids


def test_a_seeded_sample_is_repeated(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    engine = start(model)

    def answer(seed: int, policy: str) -> tuple[int, ...]:
        sampling = SamplingParams(temperature=1.0, top_p=0.95, seed=seed)
        return engine.submit(Request(context, 12, (12,), sampling=sampling, policy=policy)).result(60).ids

    for policy in ("threshold:0.5", "left_to_right"):
        assert answer(1, policy) == answer(1, policy)
        assert len({answer(seed, policy) for seed in range(4)}) > 1


@pytest.mark.parametrize("policy", ["fixed:1", "left_to_right"])
def test_penalties_keep_an_answer_from_repeating_itself(start: Start, scripted: Scripted, policy: str) -> None:
    model = scripted(4, [10] * 6)
    model.confidence = lambda place, step: 0.5
    request = Request((1, 2, 3, 4), 6, (6,), policy=policy, sampling=SamplingParams(presence_penalty=20.0))

    result = start(model).submit(request).result(60)

    assert result.ids.count(10) == 1
    assert len(set(result.ids)) == len(result.ids)


class Ticking:
    """A clock that goes on by one second with every step."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def tick(self, _: object) -> None:
        self.now += 1.0


@pytest.mark.parametrize("policy", ["fixed:1", "left_to_right"])
def test_a_deadline_returns_what_is_known(start: Start, scripted: Scripted, policy: str) -> None:
    model, clock = scripted(4, list(range(10, 40))), Ticking()
    model.confidence = lambda place, step: 0.9 - place / 100
    engine = start(model, clock=clock, observe=clock.tick)
    # Prefill takes one forward.
    request = Request((1, 2, 3, 4), 30, (16,), policy=policy, deadline=4.0)

    result = engine.submit(request).result(60)

    assert (result.finish_reason, result.ids) == ("deadline", tuple(range(10, 13)))
    assert result.denoise_seconds == 3.0


def test_a_deadline_before_the_first_step_is_an_error(start: Start, scripted: Scripted) -> None:
    clock = Ticking()
    engine = start(scripted(4, [10]), clock=clock, observe=clock.tick, prefill_chunk=1)

    with pytest.raises(DeadlineExceededError):
        engine.submit(Request((1, 2, 3, 4), deadline=2.0)).result(60)
    with pytest.raises(DeadlineExceededError):
        engine.submit(Request((1, 2, 3, 4), deadline=0.0)).result(60)


def test_recorded_states_end_with_the_answer(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    engine = start(model)
    for policy in ("threshold:0.5", "left_to_right"):
        handle = engine.submit(Request(context, 12, (6,), policy=policy, record_canvases=True))
        states = list(handle.states())
        result: Result = handle.result(60)

        assert tuple(token for token in states[-1].ids if token != END)[:12] == result.ids
        assert all(states[-1].revealed)
        for state in states:
            assert len(state.ids) == len(state.revealed)
            known = [token for token, revealed in zip(state.ids, state.revealed, strict=True) if revealed]
            assert MASK not in known
    assert list(engine.submit(Request(context, 4)).states()) == []


def test_an_answer_does_not_end_before_its_least_length(model: Transformer, start: Start) -> None:
    with torch.no_grad():
        model.embed_tokens.weight[END] = 3 * model.embed_tokens.weight.mean(0)
    engine = start(model)
    for policy in ("threshold:0.5", "fixed:3", "left_to_right"):
        for context in [(1, 2, 3), (9, 8, 7, 6), (40, 41), (5,) * 20]:
            result = engine.submit(Request(context, 12, (6,), policy=policy, min_new_tokens=4)).result(60)
            assert len(result.ids) >= 4
            assert END not in result.ids


def test_a_least_length_beyond_the_bound_is_refused(model: Transformer, start: Start) -> None:
    with pytest.raises(InvalidRequestError, match="min_new_tokens is 9"):
        start(model).submit(Request((1, 2), 8, min_new_tokens=9))


def test_an_answer_ends_where_its_beginning_is_over(scripted: Any, start: Any) -> None:
    answer = [10, 11, 50, 12, 13, 14]
    asked: list[tuple[int, ...]] = []

    def over(ids: Any) -> bool:
        asked.append(tuple(ids))
        return 50 in ids

    def confidence(place: int, step: int) -> float:
        return 0.9 if place < 3 * step else 0.2

    def ask(until: Any) -> Any:
        model = scripted(3, answer)
        model.confidence = confidence
        request = Request((1, 2, 3), 20, canvas_lengths=(16,), policy="threshold:0.5", max_steps=4, until=until)
        return start(model).submit(request).result(60)

    whole, ended = ask(None), ask(over)
    assert (list(whole.ids), whole.forwards) == (answer, 3)
    assert (list(ended.ids), ended.forwards, ended.finish_reason) == (answer[:3], 1, "stop")
    assert ended.log_probs == pytest.approx(whole.log_probs[:3])
    assert asked == [tuple(answer[:3])]
    assert END not in ended.ids


def test_under_the_joint_threshold_a_revealed_token_changes_but_a_frozen_one_never(
    scripted: Scripted, start: Start, context: tuple[int, ...]
) -> None:
    model = scripted(len(context), [10, 11, 12, 13])
    plain = model.forward

    def forward(*args: Any) -> Tensor:
        """From its second step on the model thinks otherwise of the whole canvas."""
        found: Tensor = plain(*args)
        if model.canvas_step > 1:
            model.answer = model.causal = [20] * 5
        return found

    model.forward = forward
    asked = Request(context, 4, (4,), {1: 7}, policy="joint:0.99/0.5/3", max_steps=9, record_canvases=True)
    model.confidence = lambda place, step: 0.995 if place < 3 or step > 1 else 0.6
    handle = start(model).submit(asked)

    states = [state.ids for state in handle.states()]
    assert states[0] == (10, 7, 12, MASK)
    assert handle.result(60).ids == (20, 7, 20, 20)


def test_the_length_with_the_surest_tokens_is_chosen_and_of_equal_ones_the_shortest() -> None:
    half, sure = math.log(0.5), math.log(0.9)

    assert best_length((4, 8), [[half, half], [sure, sure, half]])[0] == 1
    assert best_length((8, 16), [[half], [half]])[0] == 0
    chosen, scores = best_length((4, 8), [[], [sure]])  # a canvas without a masked position is certain
    assert (chosen, scores[0]) == (0, (4, 1.0))
    assert scores[1][1] == pytest.approx(0.9)
