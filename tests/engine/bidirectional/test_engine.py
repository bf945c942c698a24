"""What a request may ask of an engine whose model reads in both directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.bidirectional.conftest import END, EXPAND, MASK, PREFIX, SUFFIX, ask, network
from tests.engine.test_constraint import ANYTHING, PAIRS
from tests.families.reference.window import Full

from calomel.engine import BidirectionalOptions, DeadlineExceededError, Engine, Request, SamplingParams, Transformer
from calomel.engine.decoder import StepReport
from calomel.engine.errors import (
    ContextTooLongError,
    InvalidRequestError,
    PolicyUnavailableError,
    RequestCancelledError,
    UnknownPolicyError,
)
from calomel.engine.request import check

Start = Callable[..., Engine]


def test_a_canvas_before_a_suffix_is_the_whole_answer(model: Transformer, start: Start) -> None:
    result, states = ask(start(model), suffix=SUFFIX, canvas_lengths=(6,), min_new_tokens=6)

    assert (len(result.ids), result.finish_reason, result.canvas_length) == (6, "stop", 6)
    assert states[-1] == result.ids


def test_canvases_follow_each_other_where_nothing_stands_behind(model: Transformer, start: Start) -> None:
    engine = start(model)
    whole, _ = ask(engine, canvas_lengths=(6,), max_new_tokens=15, min_new_tokens=15)
    first, _ = ask(engine, canvas_lengths=(6,), max_new_tokens=6, min_new_tokens=6)
    second, _ = ask(engine, context=(*PREFIX, *first.ids), canvas_lengths=(6,), max_new_tokens=6, min_new_tokens=6)

    assert whole.ids[:12] == (*first.ids, *second.ids)
    assert (len(whole.ids), whole.finish_reason) == (15, "length")


def test_tokens_are_told_with_their_probabilities(model: Transformer, start: Start) -> None:
    result, _ = ask(start(model), suffix=SUFFIX, canvas_lengths=(1,), policy="fixed:1", min_new_tokens=1)

    full = Full(model, MASK)
    rows = full.shifted if model.config.diffusion.logit_shift else full
    logits = rows([*PREFIX, MASK, *SUFFIX])[len(PREFIX)]
    logits[END] = -1e30
    best = int(logits.argmax())
    assert result.ids == (best,)
    assert result.log_probs == pytest.approx([float(logits.log_softmax(-1)[best])], abs=1e-5)
    assert result.entropies == pytest.approx([float(torch.special.entr(logits.softmax(-1)).sum())], abs=1e-4)


@pytest.mark.parametrize("policy", ["entropy", "p2", "low_confidence", "threshold:0.3", "fixed:2", "entropy_bound:1"])
def test_an_answer_does_not_depend_on_company(model: Transformer, start: Start, policy: str) -> None:
    requests = [
        Request(context=PREFIX[: 4 + index], suffix=SUFFIX[index:], canvas_lengths=(5 + index,), policy=policy)
        for index in range(3)
    ]
    engine = start(model)

    together = [handle.result(60).ids for handle in engine.submit_all(requests)]

    assert together == [engine.submit(request).result(60).ids for request in requests]


def test_requests_share_a_forward_without_padding(model: Transformer, start: Start) -> None:
    reports: list[StepReport] = []
    engine = start(model, observe=reports.append)
    sizes = (3, 9)

    for handle in engine.submit_all([Request(PREFIX[:size], canvas_lengths=(4,), max_new_tokens=4) for size in sizes]):
        handle.result(60)

    assert (reports[0].requests, reports[0].rows) == (2, sum(sizes) + 8)


def test_the_length_is_probed_by_one_forward(model: Transformer, start: Start) -> None:
    reports: list[StepReport] = []
    engine = start(model, observe=reports.append)
    lengths = (3, 5, 8)

    result, _ = ask(engine, suffix=SUFFIX, canvas_lengths=lengths, policy="fixed:1", min_new_tokens=64)

    full = Full(model, MASK)
    rows = full.shifted if model.config.diffusion.logit_shift else full
    expected = []
    for length in lengths:
        logits = rows([*PREFIX, *[MASK] * length, *SUFFIX])[len(PREFIX) : len(PREFIX) + length]
        logits[:, END] = -1e30
        expected.append(float(logits.softmax(-1).max(-1).values.mean()))
    assert [length for length, _ in result.length_scores] == list(lengths)
    assert [score for _, score in result.length_scores] == pytest.approx(expected, abs=1e-5)
    assert result.canvas_length == lengths[expected.index(max(expected))]
    assert reports[0].rows == sum(len(PREFIX) + len(SUFFIX) + length for length in lengths)


@pytest.mark.parametrize("dual_cache", [False, True])
@pytest.mark.parametrize("block", [None, 3])
def test_a_probed_answer_is_that_of_the_chosen_length(
    model: Transformer, start: Start, block: int | None, *, dual_cache: bool
) -> None:
    engine = start(model, BidirectionalOptions(block=block, dual_cache=dual_cache))
    probed, _ = ask(engine, suffix=SUFFIX, canvas_lengths=(3, 5, 8), policy="fixed:1", min_new_tokens=64)

    alone, _ = ask(engine, suffix=SUFFIX, canvas_lengths=(probed.canvas_length,), policy="fixed:1", min_new_tokens=64)

    assert probed.ids == alone.ids
    assert probed.forwards == alone.forwards


@pytest.mark.parametrize("policy", ["entropy", "p2", "threshold:0.2", "low_confidence"])
@pytest.mark.parametrize(
    "options", [BidirectionalOptions(), BidirectionalOptions(block=4), BidirectionalOptions(block=4, dual_cache=True)]
)
def test_frozen_tokens_stay(model: Transformer, start: Start, options: BidirectionalOptions, policy: str) -> None:
    result, states = ask(
        start(model, options), suffix=SUFFIX, canvas_lengths=(10,), frozen={0: 11, 4: 22, 7: 33}, policy=policy
    )

    assert all((state[0], state[4], state[7]) == (11, 22, 33) for state in states)
    assert (result.ids[0], result.ids[4], result.ids[7]) == (11, 22, 33)


def test_a_canvas_that_is_known_takes_no_forward(model: Transformer, start: Start) -> None:
    result, _ = ask(start(model), suffix=SUFFIX, canvas_lengths=(2,), frozen={0: 11, 1: 22})

    assert (result.ids, result.forwards) == ((11, 22), 0)


@pytest.mark.parametrize("policy", ["entropy", "origin", "low_confidence", "threshold:0.9"])
@pytest.mark.parametrize("steps", [1, 3])
def test_there_are_no_more_steps_than_asked_for(model: Transformer, start: Start, policy: str, steps: int) -> None:
    result, _ = ask(start(model), suffix=SUFFIX, canvas_lengths=(9,), policy=policy, max_steps=steps)

    assert result.forwards <= steps


@pytest.mark.parametrize("dual_cache", [False, True])
@pytest.mark.parametrize("policy", ["entropy", "threshold:0.4", "low_confidence"])
@pytest.mark.parametrize("rule", [ANYTHING, PAIRS], ids=["anything", "pairs"])
def test_an_answer_keeps_to_a_constraint(
    model: Transformer, start: Start, rule: Any, policy: str, *, dual_cache: bool
) -> None:
    engine = start(model, BidirectionalOptions(block=5, dual_cache=dual_cache))

    result, _ = ask(engine, canvas_lengths=(10,), max_new_tokens=20, policy=policy, constraint=rule)

    assert rule.accepts(result.ids, whole=result.end_log_prob is not None)


def test_a_constraint_that_allows_all_changes_nothing_where_one_token_is_revealed(
    model: Transformer, start: Start
) -> None:
    engine = start(model)
    free, _ = ask(engine, suffix=SUFFIX, canvas_lengths=(1,), policy="fixed:1")

    bound, _ = ask(engine, suffix=SUFFIX, canvas_lengths=(1,), policy="fixed:1", constraint=ANYTHING)

    assert (bound.ids, bound.end_log_prob) == (free.ids, free.end_log_prob)


def test_an_answer_ends_where_it_is_told_to(model: Transformer, start: Start) -> None:
    seen: list[int] = []

    def until(answer: Any) -> bool:
        seen.append(len(answer))
        return len(answer) >= 8

    engine = start(model, BidirectionalOptions(block=4))
    result, _ = ask(engine, canvas_lengths=(16,), max_new_tokens=32, min_new_tokens=32, until=until)

    assert (seen, len(result.ids), result.finish_reason) == ([4, 8], 8, "stop")


def test_any_of_its_ends_ends_an_answer(start: Start) -> None:
    model = network(shift=False)
    engine = start(model)
    plain, _ = ask(engine, suffix=SUFFIX, canvas_lengths=(8,), min_new_tokens=8)
    also = plain.ids[3]

    ended, _ = ask(
        start(model, BidirectionalOptions(end_token_ids=(also,))), suffix=SUFFIX, canvas_lengths=(8,), policy="fixed:1"
    )

    assert ended.end_log_prob is not None
    assert also not in ended.ids


class Ticking:
    """A clock that goes on by one second with every step."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def tick(self, report: StepReport) -> None:
        del report
        self.now += 1


def test_what_is_known_without_a_gap_is_the_answer_at_the_deadline(model: Transformer, start: Start) -> None:
    clock = Ticking()
    engine = start(model, BidirectionalOptions(block=2), clock=clock, observe=clock.tick)

    result, states = ask(
        engine, canvas_lengths=(8,), max_new_tokens=8, min_new_tokens=8, policy="fixed:1", max_steps=64, deadline=5.0
    )

    assert (result.forwards, result.finish_reason) == (5, "deadline")
    assert result.ids == states[-1][: states[-1].index(MASK)]
    assert len(result.ids) >= 4


def test_a_deadline_before_the_first_step_is_an_error(model: Transformer, start: Start) -> None:
    with pytest.raises(DeadlineExceededError, match="before the first step"):
        ask(start(model, clock=lambda: 10.0), deadline=5.0)


def test_a_cancelled_request_leaves(model: Transformer, start: Start) -> None:
    engine = start(model)
    handle = engine.submit(Request(PREFIX, canvas_lengths=(60,), max_new_tokens=200, policy="fixed:1", max_steps=9999))

    handle.cancel()

    with pytest.raises(RequestCancelledError):
        handle.result(60)


def test_penalties_keep_an_answer_from_repeating_itself(model: Transformer, start: Start) -> None:
    asked: dict[str, Any] = {"suffix": SUFFIX, "canvas_lengths": (16,), "min_new_tokens": 16, "policy": "fixed:1"}
    engine = start(model)

    result, _ = ask(engine, sampling=SamplingParams(presence_penalty=1000.0), **asked)

    assert len(set(result.ids)) == 16


def test_a_seed_repeats_an_answer(model: Transformer, start: Start) -> None:
    asked: dict[str, Any] = {"suffix": SUFFIX, "canvas_lengths": (16,), "min_new_tokens": 16, "policy": "entropy"}
    engine = start(model)
    answers = [ask(engine, sampling=SamplingParams(1.0, seed=seed), **asked)[0].ids for seed in (1, 1, 2)]

    assert answers[0] == answers[1] != answers[2]


def test_a_dual_cache_of_one_step_is_exact(model: Transformer, start: Start) -> None:
    asked: dict[str, Any] = {"suffix": SUFFIX, "canvas_lengths": (12,), "min_new_tokens": 12, "max_steps": 3}
    answers = [
        ask(start(model, BidirectionalOptions(block=4, dual_cache=dual)), policy="low_confidence", **asked)[0].ids
        for dual in (False, True)
    ]

    assert answers[0] == answers[1]


def test_a_dual_cache_forwards_the_block_alone_unless_logits_are_shifted(model: Transformer, start: Start) -> None:
    reports: list[StepReport] = []
    engine = start(model, BidirectionalOptions(block=4, dual_cache=True), observe=reports.append)

    ask(engine, suffix=SUFFIX, canvas_lengths=(8,), min_new_tokens=8, policy="fixed:1")

    window = len(PREFIX) + len(SUFFIX) + 8
    behind = window if model.config.diffusion.logit_shift else 4
    assert [report.rows for report in reports] == [window, behind, behind, behind] * 2


@pytest.mark.parametrize(
    ("fields", "options", "error", "told"),
    [
        ({"policy": "left_to_right"}, {}, PolicyUnavailableError, "trained causally"),
        ({"given": (1, 2)}, {}, PolicyUnavailableError, "probability of given tokens"),
        ({"policy": "nonsense"}, {}, UnknownPolicyError, "nonsense"),
        ({"policy": "p2:1"}, {}, UnknownPolicyError, "p2 has no parameter"),
        ({"policy": "entropy:x"}, {}, UnknownPolicyError, "not a number"),
        ({"policy": "entropy:-1"}, {}, UnknownPolicyError, "between 0.0"),
        ({"policy": "p2", "constraint": ANYTHING}, {}, InvalidRequestError, "takes back"),
        ({"constraint": ANYTHING}, {"expand_token_id": EXPAND}, InvalidRequestError, "takes back"),
        ({"frozen": {0: 1}}, {"expand_token_id": EXPAND}, InvalidRequestError, "grow and shrink"),
        ({"suffix": SUFFIX, "frozen": {40: 1}, "canvas_lengths": (8,)}, {}, InvalidRequestError, "behind the canvas"),
        ({"context": PREFIX * 30}, {}, ContextTooLongError, "256 positions"),
    ],
)
def test_what_window_mode_does_not_do_is_refused_at_once(
    start: Start, fields: dict[str, Any], options: dict[str, Any], error: type[Exception], told: str
) -> None:
    engine = start(network(shift=True), BidirectionalOptions(**options))

    with pytest.raises(error, match=told):
        engine.submit(Request(**{"context": PREFIX, "policy": "entropy", **fields}))


def test_an_elastic_canvas_keeps_to_the_least_and_the_most_tokens(start: Start) -> None:
    model = network(shift=True)
    options = BidirectionalOptions(expand_token_id=EXPAND, delete_token_id=END)
    for seed in range(4):
        sampling = SamplingParams(temperature=60.0, seed=seed)
        result, states = ask(
            start(model, options),
            suffix=SUFFIX,
            canvas_lengths=(8,),
            min_new_tokens=7,
            max_new_tokens=9,
            policy="entropy",
            sampling=sampling,
            max_steps=200,
        )

        assert {len(state) for state in states} <= {7, 8, 9}
        assert 7 <= len(result.ids) <= 9
        assert not {EXPAND, END, MASK} & set(result.ids)


def test_a_model_that_reads_from_left_to_right_refuses_a_suffix() -> None:
    config = network(shift=False).config
    causal = replace(config, diffusion=replace(config.diffusion, reads_suffix=False))

    with pytest.raises(InvalidRequestError, match="reads nothing behind an answer"):
        check(Request(PREFIX, suffix=SUFFIX), causal)
