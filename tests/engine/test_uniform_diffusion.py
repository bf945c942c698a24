"""Canvases of uniform noise: what a request may ask of them, on a network whose opinions are written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from calomel.engine import (
    DeadlineExceededError,
    Engine,
    NoiseShape,
    Request,
    SamplingParams,
    UniformDiffusion,
)
from calomel.engine.errors import (
    ConstraintFailedError,
    PolicyUnavailableError,
    RequestCancelledError,
    RequestFailedError,
)

VOCAB, CANVAS, END, OTHER_END = 50, 8, 48, 49
CONTEXT = (1, 2, 3, 4, 5)
Opinion = Callable[[int], Sequence[tuple[int, float]]]


@dataclass
class Tokens:
    """An encoded context: its tokens."""

    ids: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        return len(self.ids)

    @property
    def capacity(self) -> int:
        return len(self.ids)

    def reaches(self, length: int) -> bool:
        return length <= len(self.ids)

    def cut(self, length: int) -> None:
        del self.ids[length:]


class Opinionated:
    """Has an opinion on each position of a sequence: tokens and their logits, whatever stands on the canvas.

    The first step of a canvas is vague (`doubt`), as if the network had to see its own proposal first.
    """

    def __init__(self, opinion: Opinion, doubt: float = 1.0) -> None:
        self.shape = NoiseShape(VOCAB, 400, CANVAS, (END, OTHER_END))
        self.device, self.dtype = torch.device("cpu"), torch.float32
        self.weights: list[Tensor] = []
        self.encoded: list[int] = []
        self.batches: list[int] = []
        self._opinion, self._doubt = opinion, doubt

    def empty(self) -> Tokens:
        return Tokens()

    def encode(self, ids: Sequence[int], behind: Tokens) -> None:
        self.encoded.append(len(ids))
        behind.ids += ids

    def denoise(self, canvases: Tensor, conditions: Sequence[Tensor | None], behind: Sequence[Tokens]) -> Tensor:
        self.batches.append(len(canvases))
        logits = torch.zeros(*canvases.shape, VOCAB)
        for row, (condition, context) in enumerate(zip(conditions, behind, strict=True)):
            for column in range(canvases.shape[1]):
                for token, logit in self._opinion(context.length + column):
                    logits[row, column, token] = logit * (self._doubt if condition is None else 1)
        return logits


def counting(position: int) -> Sequence[tuple[int, float]]:
    return [(position % 40, 30.0)]


def ending_at(last: int, end: int = END) -> Opinion:
    return lambda position: [(end if position >= last else position % 40, 30.0), (47, 20.0)]


def asked(**fields: Any) -> Request:
    defaults = {"canvas_lengths": (CANVAS,), "policy": "entropy_bound:0.1", "max_steps": 6, "max_new_tokens": CANVAS}
    return Request(fields.pop("context", CONTEXT), **{**defaults, **fields})


Serve = Callable[..., Engine]


@pytest.fixture
def serve() -> Iterator[Serve]:
    running: list[Engine] = []

    def start(backbone: Opinionated, **options: Any) -> Engine:
        running.append(Engine(UniformDiffusion(backbone, threads=1, prefill_chunk=64, **options)))
        return running[-1]

    yield start
    for serving in running:
        serving.close()


def test_an_answer_is_what_the_model_says_without_its_end(serve: Serve) -> None:
    result = serve(Opinionated(ending_at(9))).submit(asked()).result()
    assert result.ids == (5, 6, 7, 8)
    assert result.finish_reason == "stop"
    assert result.end_log_prob == pytest.approx(0.0, abs=1e-3)
    assert all(log_prob > -1e-3 for log_prob in result.log_probs)
    assert result.canvas_length == CANVAS


def test_each_of_several_end_tokens_ends_an_answer(serve: Serve) -> None:
    assert serve(Opinionated(ending_at(7, OTHER_END))).submit(asked()).result().ids == (5, 6)


def test_a_canvas_is_done_once_it_is_sure_and_stays_the_same(serve: Serve) -> None:
    sure = serve(Opinionated(counting)).submit(asked()).result()
    doubting = serve(Opinionated(counting, doubt=0.0)).submit(asked()).result()
    assert (sure.steps, doubting.steps) == (2, 3)
    assert sure.ids == doubting.ids


def test_a_model_that_is_never_sure_stops_at_the_steps_that_were_asked_for(serve: Serve) -> None:
    vague = Opinionated(lambda position: [(position % 40, 3.0)])
    assert serve(vague).submit(asked(max_steps=5)).result().steps == 5


def test_a_long_answer_is_a_sequence_of_canvases(serve: Serve) -> None:
    backbone = Opinionated(counting)
    result = serve(backbone).submit(asked(max_new_tokens=2 * CANVAS + 3)).result()
    assert result.ids == tuple(range(5, 5 + 2 * CANVAS + 3))
    assert result.finish_reason == "length"
    assert backbone.encoded == [5, CANVAS, CANVAS]
    assert result.forwards == result.steps + 2


def test_the_next_keystroke_encodes_what_it_added(serve: Serve) -> None:
    backbone = Opinionated(counting)
    serving = serve(backbone)
    serving.submit(asked(max_new_tokens=CANVAS + 1)).result()
    result = serving.submit(asked(context=(*CONTEXT, 9))).result()
    assert (result.cached_tokens, result.computed_tokens) == (5, 1)
    assert backbone.encoded == [5, CANVAS, 1]


def test_a_context_that_shares_little_leaves_the_kept_one_to_its_owner(serve: Serve) -> None:
    serving = serve(Opinionated(counting), spare_tokens=100)
    serving.submit(asked()).result()
    assert serving.submit(asked(context=(1, 40, 41, 42, 43))).result().cached_tokens == 0
    assert serving.submit(asked()).result().cached_tokens == 5


def test_contexts_beyond_their_room_are_forgotten_the_oldest_first(serve: Serve) -> None:
    serving = serve(Opinionated(counting), spare_tokens=11)
    others = [tuple(range(start, start + 5)) for start in (10, 20, 30)]
    for context in others:
        serving.submit(asked(context=context)).result()
    assert [serving.submit(asked(context=context)).result().cached_tokens for context in others[::-1]] == [5, 5, 0]


def test_a_request_that_must_leave_nothing_leaves_nothing(serve: Serve) -> None:
    serving = serve(Opinionated(counting))
    serving.submit(asked(reuse=0)).result()
    assert serving.submit(asked()).result().cached_tokens == 0


def test_frozen_tokens_stay_and_no_answer_ends_before_them(serve: Serve) -> None:
    result = serve(Opinionated(ending_at(6))).submit(asked(frozen={3: 33})).result()
    assert result.ids[:4] == (5, 47, 47, 33)
    assert result.finish_reason == "stop"
    assert len(result.ids) == 4


def test_an_answer_has_as_many_tokens_as_it_must_have(serve: Serve) -> None:
    assert serve(Opinionated(ending_at(5))).submit(asked(min_new_tokens=3)).result().ids == (47, 47, 47)


def test_an_answer_is_asked_whether_it_is_enough_between_canvases(serve: Serve) -> None:
    seen: list[int] = []

    def enough(ids: Sequence[int]) -> bool:
        seen.append(len(ids))
        return len(ids) >= 2 * CANVAS

    result = serve(Opinionated(counting)).submit(asked(max_new_tokens=100, until=enough)).result()
    assert (len(result.ids), result.finish_reason) == (2 * CANVAS, "stop")
    assert seen == [CANVAS, 2 * CANVAS]


def test_canvases_are_shown_step_by_step_up_to_their_end(serve: Serve) -> None:
    handle = serve(Opinionated(ending_at(9), doubt=0.0)).submit(asked(record_canvases=True))
    states = list(handle.states())
    assert [state.step for state in states] == [1, 2, 3]
    assert states[-1].ids == handle.result().ids
    assert all(states[-1].revealed)
    assert not all(states[0].revealed)


def test_the_same_seed_gives_the_same_answer_and_another_one_another(serve: Serve) -> None:
    vague = serve(Opinionated(lambda position: [(position % 40, 2.0), (46, 2.0)]))

    def answers(seed: int | None, temperature: float) -> tuple[int, ...]:
        sampling = SamplingParams(temperature=temperature, seed=seed)
        states = vague.submit(asked(sampling=sampling, record_canvases=True)).states()
        return tuple(accepted for state in states for accepted in state.revealed)

    assert answers(1, 1.0) == answers(1, 1.0)
    assert answers(None, 0.0) == answers(None, 0.0)


def test_penalties_count_the_canvases_before(serve: Serve) -> None:
    vague = Opinionated(lambda _: [(7, 20.0), (8, 19.0)])
    sampling = SamplingParams(presence_penalty=5.0)
    result = serve(vague).submit(asked(max_new_tokens=2 * CANVAS, sampling=sampling)).result()
    assert result.ids == (7,) * CANVAS + (8,) * CANVAS


@pytest.mark.parametrize("policy", ["threshold:0.9", "fixed:2", "prefix:0.8"])
def test_policies_of_masked_canvases_choose_what_is_accepted(serve: Serve, policy: str) -> None:
    handle = serve(Opinionated(counting)).submit(asked(policy=policy, record_canvases=True))
    accepted = [sum(state.revealed) for state in handle.states()]
    assert handle.result().ids == tuple(range(5, 5 + CANVAS))
    assert accepted[0] == (2 if policy == "fixed:2" else CANVAS)


@pytest.mark.parametrize("policy", ["left_to_right", "low_confidence:4"])
def test_policies_that_need_masks_or_a_causal_answer_are_refused(serve: Serve, policy: str) -> None:
    with pytest.raises(PolicyUnavailableError):
        serve(Opinionated(counting)).submit(asked(policy=policy))


def test_given_tokens_are_refused(serve: Serve) -> None:
    with pytest.raises(PolicyUnavailableError):
        serve(Opinionated(counting)).submit(asked(given=(1, 2)))


def test_a_deadline_before_the_first_step_is_an_error_and_later_leaves_what_is_accepted(serve: Serve) -> None:
    now = [0.0]

    class Late(Opinionated):
        def denoise(self, canvases: Tensor, conditions: Sequence[Tensor | None], behind: Sequence[Tokens]) -> Tensor:
            logits = super().denoise(canvases, conditions, behind)
            if len(self.batches) == 3:
                now[0] = 10.0
                logits[0, 2:4] = 0.0
                logits[0, 3, 1] = 2.0  # a little surer: it is accepted before the one before it
            return logits

    serving = serve(Late(counting), clock=lambda: now[0])
    result = serving.submit(asked(max_new_tokens=50, deadline=5.0)).result()
    assert result.finish_reason == "deadline"
    assert result.ids == tuple(range(5, 5 + CANVAS + 2))
    with pytest.raises(DeadlineExceededError):
        serving.submit(asked(deadline=5.0)).result()


def test_a_cancelled_request_leaves_and_the_others_go_on(serve: Serve) -> None:
    class Cancelling(Opinionated):
        def denoise(self, canvases: Tensor, conditions: Sequence[Tensor | None], behind: Sequence[Tokens]) -> Tensor:
            first.cancel()
            return super().denoise(canvases, conditions, behind)

    serving = serve(Cancelling(counting))
    first, second = serving.submit_all((asked(context=(9, 9)), asked(context=(8, 8))))
    assert second.result().ids == tuple(range(2, 2 + CANVAS))
    with pytest.raises(RequestCancelledError):
        first.result()


def test_requests_share_forwards_and_their_answers_do_not_change(serve: Serve) -> None:
    contexts = [tuple(range(start, start + 3 + start)) for start in range(4)]
    backbone = Opinionated(ending_at(20))
    together = serve(backbone).submit_all([asked(context=context, max_new_tokens=30) for context in contexts])
    alone = [serve(Opinionated(ending_at(20))).submit(asked(context=x, max_new_tokens=30)).result() for x in contexts]
    assert [handle.result().ids for handle in together] == [result.ids for result in alone]
    assert max(backbone.batches) == 4


def test_a_failing_encoder_ends_its_request_and_its_context_is_never_read_again(serve: Serve) -> None:
    class Failing(Opinionated):
        def encode(self, ids: Sequence[int], behind: Tokens) -> None:
            super().encode(ids, behind)
            if 13 in ids:
                raise OSError("unreadable")

    serving = serve(Failing(counting))
    with pytest.raises(RequestFailedError, match="unreadable"):
        serving.submit(asked(context=(1, 2, 13))).result()
    result = serving.submit(asked(context=(1, 2))).result()
    assert (result.cached_tokens, result.ids[0]) == (0, 2)


@dataclass(frozen=True)
class Rule:
    """Allows sequences out of `allowed` tokens per position, at least `least` of them, and nothing behind the last."""

    allowed: tuple[frozenset[int], ...]
    least: int = 0

    def begin(self) -> Way:
        return Way(self)


@dataclass
class Way:
    rule: Rule
    at: int = 0

    def advance(self, tokens: Sequence[int]) -> int:
        for count, token in enumerate(tokens):
            if self.at >= len(self.rule.allowed) or token not in self.rule.allowed[self.at]:
                return count
            self.at += 1
        return len(tokens)

    def may_end(self) -> bool:
        return self.at >= self.rule.least

    def allowed(self) -> bytes:
        mask = bytearray(VOCAB // 8 + 1)
        for token in self.rule.allowed[self.at] if self.at < len(self.rule.allowed) else ():
            mask[token // 8] |= 1 << token % 8
        return bytes(mask)

    def forced(self) -> Sequence[int]:
        allowed = self.rule.allowed[self.at] if self.at < len(self.rule.allowed) else frozenset()
        return list(allowed) if len(allowed) == 1 and not self.may_end() else []


ANY = frozenset(range(VOCAB - 2))


def test_an_answer_stays_within_its_constraint_and_ends_with_it(serve: Serve) -> None:
    rule = Rule((frozenset({5, 6}), frozenset({30, 31}), ANY, frozenset({12, 47})), least=4)
    result = serve(Opinionated(counting)).submit(asked(constraint=rule, max_steps=12)).result()
    assert result.ids[0] == 5
    assert result.ids[1] in {30, 31}
    assert result.ids[2] == 7
    assert result.ids[3] in {12, 47}
    assert (len(result.ids), result.finish_reason) == (4, "stop")


def test_a_constraint_holds_over_several_canvases_and_in_a_single_step(serve: Serve) -> None:
    rule = Rule(tuple(frozenset({20 + at % 3, 30 + at % 3}) for at in range(20)), least=20)
    for steps in (1, 4):
        result = (
            serve(Opinionated(counting)).submit(asked(constraint=rule, max_steps=steps, max_new_tokens=40)).result()
        )
        assert len(result.ids) == 20
        assert all(token in allowed for token, allowed in zip(result.ids, rule.allowed, strict=True))


def test_a_constraint_without_a_choice_decides_for_the_model(serve: Serve) -> None:
    rule = Rule(tuple(frozenset({at}) for at in range(10, 16)), least=6)
    assert serve(Opinionated(counting)).submit(asked(constraint=rule)).result().ids == tuple(range(10, 16))


def test_a_model_may_end_where_its_constraint_lets_it(serve: Serve) -> None:
    loose = Rule((ANY,) * 30)
    serving = serve(Opinionated(ending_at(8)))
    assert serving.submit(asked(constraint=loose)).result().ids == (5, 6, 7)
    strict = replace(loose, least=5)
    assert serving.submit(asked(constraint=strict)).result().ids[:5] == (5, 6, 7, 47, 47)


def test_a_constraint_that_refuses_a_frozen_token_ends_its_request_alone(serve: Serve) -> None:
    serving = serve(Opinionated(counting))
    rule = Rule((frozenset({5}), frozenset({6, 7})), least=2)
    bad, good = serving.submit_all((asked(constraint=rule, frozen={1: 40}), asked()))
    assert good.result().ids
    with pytest.raises(ConstraintFailedError):
        bad.result()


def test_what_is_shown_as_settled_within_a_constraint_is_never_taken_back(serve: Serve) -> None:
    rule = Rule(tuple(frozenset({20 + at, 30 + at}) for at in range(CANVAS)), least=CANVAS)
    handle = serve(Opinionated(counting)).submit(asked(constraint=rule, max_steps=20, record_canvases=True))
    states, result = list(handle.states()), handle.result()
    for state in states:
        for token, revealed, final in zip(state.ids, state.revealed, result.ids, strict=False):
            assert not revealed or token == final
