"""Second steps that ride on the first forward, and change nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.engine.conftest import CONFIG, END, MASK

from calomel.engine import Request, SamplingParams, Transformer
from calomel.engine.foresight import Foresight

SHORT = (MASK, END)


def test_what_canvases_often_look_like_is_guessed() -> None:
    foresight = Foresight(rows=4, share=0.2)
    for _ in range(7):
        foresight.saw(16, SHORT)
    assert foresight.guesses(16) == ()  # too few to tell
    foresight.saw(16, SHORT)
    assert foresight.guesses(16) == (SHORT,)
    assert foresight.guesses(8) == ()


def test_the_rarer_state_is_left_out_where_there_is_no_room() -> None:
    foresight = Foresight(rows=4, share=0.2)
    three = (MASK, MASK, END)
    for _ in range(20):
        foresight.saw(16, three)
        foresight.saw(16, SHORT)
        foresight.saw(16, SHORT)
    assert foresight.guesses(16) == (SHORT,)
    assert Foresight(rows=0).guesses(16) == ()


def test_other_habits_take_the_place_of_old_ones() -> None:
    foresight = Foresight(rows=4, share=0.2)
    for _ in range(50):
        foresight.saw(16, SHORT)
    for _ in range(100):
        foresight.saw(16, None)
    assert foresight.guesses(16) == ()


def unsure(place: int, step: int) -> float:
    """Only the end is sure at first."""
    return 0.9 if place == 1 or step > 1 else 0.2


def test_a_second_step_that_was_foreseen_costs_no_forward(scripted: Any, start: Any) -> None:
    model = scripted(3, [10])
    model.confidence = unsure
    engine = start(model)
    request = Request((1, 2, 3), 20, canvas_lengths=(16,), policy="threshold:0.5", max_steps=2)
    found = []
    for _ in range(12):
        model.canvas_step = 0
        found.append(engine.submit(request).result(60))

    assert {result.ids for result in found} == {(10,)}
    assert {result.steps for result in found} == {2}
    assert [result.forwards for result in found] == [2] * 8 + [1] * 4


@pytest.mark.parametrize("policy", ["threshold:0.5", "prefix:0.5", "fixed:3"])
@pytest.mark.parametrize("steps", [2, 5])
def test_answers_are_the_same_without_foresight(policy: str, steps: int, model: Transformer, start: Any) -> None:
    foreseeing = start(model, foresight=Foresight(rows=256, share=0.01))
    plain = start(model, foresight=Foresight(rows=0))
    contexts = [tuple(torch.randint(0, 90, (20 + at,)).tolist()) for at in range(3)] * 4
    saved = 0
    for context in contexts:
        request = Request(context, 7, canvas_lengths=(8,), policy=policy, max_steps=steps)
        one, other = foreseeing.submit(request).result(60), plain.submit(request).result(60)
        assert (one.ids, one.steps, one.flips, one.finish_reason) == (
            other.ids,
            other.steps,
            other.flips,
            other.finish_reason,
        )
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
        assert one.entropies == pytest.approx(other.entropies, abs=1e-4)
        saved += other.forwards - one.forwards
    assert saved > 0


def test_requests_side_by_side_foresee_each_their_own(model: Transformer, start: Any) -> None:
    engine, plain = start(model, foresight=Foresight(rows=256, share=0.01)), start(model, foresight=Foresight(rows=0))
    contexts = [tuple(range(1, 9 + at)) for at in range(5)]
    requests = [Request(context, 10, canvas_lengths=(8,), policy="threshold:0.5", max_steps=2) for context in contexts]
    requests += [Request((1, 2, 3), 5, policy="left_to_right"), Request(contexts[0], given=(5, 6))]
    expected = [plain.submit(request).result(60).ids for request in requests]
    for _ in range(4):
        handles = engine.submit_all(requests)
        assert [handle.result(60).ids for handle in handles] == expected


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(Request((1, 2), 20, sampling=SamplingParams(temperature=1.0, seed=1)), id="drawn"),
        pytest.param(Request((1, 2), 20, sampling=SamplingParams(presence_penalty=0.5)), id="penalised"),
        pytest.param(Request((1, 2), 20, frozen={1: 5}), id="frozen"),
        pytest.param(Request((1, 2), 20, revise=True), id="revised"),
        pytest.param(Request((1, 2), 20, canvas_lengths=(4, 8)), id="probed"),
        pytest.param(Request((1, 2), 20, policy="verified"), id="verified"),
    ],
)
def test_where_a_second_step_depends_on_more_nothing_is_foreseen(request_: Request, scripted: Any, start: Any) -> None:
    foresight = Foresight(rows=256, share=0.01)
    for length in (4, 8, 32, 20, 21):
        for _ in range(8):
            foresight.saw(length, SHORT)
    reports: list[Any] = []
    plain: list[Any] = []
    start(scripted(2, [10, 11]), foresight=foresight, observe=reports.append).submit(request_).result(60)
    start(scripted(2, [10, 11]), foresight=Foresight(rows=0), observe=plain.append).submit(request_).result(60)
    assert reports == plain


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
    assert CONFIG.diffusion.end_token_id not in ended.ids
