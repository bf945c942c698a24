"""Canvases of uniform noise: what a request may ask of them, on a network whose opinions are written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from tests.engine.conftest import Context, Start, in_turn
from torch import Tensor

from calomel.engine import Engine, NoiseShape, Request, Result, SamplingParams, UniformDiffusion
from calomel.engine.errors import InvalidRequestError, RequestFailedError

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

    capacity = length

    def reaches(self, length: int) -> bool:
        return length <= len(self.ids)

    def cut(self, length: int) -> None:
        del self.ids[length:]


def counting(position: int) -> Sequence[tuple[int, float]]:
    return [(position % 40, 30.0)]


def torn(position: int) -> Sequence[tuple[int, float]]:
    return [(position % 40, 4.0), (46, 3.9)]


def ending_at(last: int, end: int = END) -> Opinion:
    return lambda position: [(end if position >= last else position % 40, 30.0), (47, 20.0)]


class Opinionated:
    """Has an opinion on each position of a sequence: tokens and their logits, whatever stands on the canvas.

    The first step of a canvas is vague (`doubt`), as if the network had to see its own proposal first. What `before` is
    told of each call may change the world.
    """

    def __init__(self, opinion: Opinion = counting, doubt: float = 1.0) -> None:
        self.shape = NoiseShape(VOCAB, 400, CANVAS, (END, OTHER_END))
        self.device, self.dtype = torch.device("cpu"), torch.float32
        self.weights: list[Tensor] = []
        self.encoded: list[int] = []
        self.batches: list[int] = []
        self.empty = Tokens
        self.before: Callable[[Any], object] = lambda _: None
        self._opinion, self._doubt = opinion, doubt

    def encode(self, ids: Sequence[int], behind: Tokens) -> None:
        self.encoded.append(len(ids))
        behind.ids += ids
        self.before(ids)

    def denoise(self, canvases: Tensor, conditions: Sequence[Tensor | None], behind: Sequence[Tokens]) -> Tensor:
        self.batches.append(len(canvases))
        logits = torch.zeros(*canvases.shape, VOCAB)
        for row, (condition, context) in enumerate(zip(conditions, behind, strict=True)):
            for column in range(canvases.shape[1]):
                for token, logit in self._opinion(context.length + column):
                    logits[row, column, token] = logit * (self._doubt if condition is None else 1)
        self.before(logits)
        return logits


def asked(context: Context = CONTEXT, **fields: Any) -> Request:
    defaults = {"canvas_lengths": (CANVAS,), "policy": "entropy_bound:0.1", "max_steps": 6, "max_new_tokens": CANVAS}
    return Request(context, **{**defaults, **fields})


Serve = Callable[..., Engine]


@pytest.fixture
def serve(run: Start) -> Serve:
    return lambda backbone, **options: run(UniformDiffusion(backbone, threads=1, prefill_chunk=64, **options))


Answer = Callable[..., Result]


@pytest.fixture
def answer(serve: Serve) -> Answer:
    """Of a network of this opinion."""
    return lambda opinion=counting, **fields: serve(Opinionated(opinion)).submit(asked(**fields)).result()


def test_an_answer_is_what_the_model_says_without_its_end(answer: Answer) -> None:
    result = answer(ending_at(9))
    assert result.ids == (5, 6, 7, 8)
    assert result.finish_reason == "stop"
    assert result.end_log_prob == pytest.approx(0.0, abs=1e-3)
    assert all(log_prob > -1e-3 for log_prob in result.log_probs)
    assert answer(ending_at(7, OTHER_END)).ids == (5, 6)


def test_a_long_answer_is_a_sequence_of_canvases(serve: Serve) -> None:
    backbone = Opinionated()
    result = serve(backbone).submit(asked(max_new_tokens=2 * CANVAS + 3)).result()
    assert result.ids == tuple(range(5, 5 + 2 * CANVAS + 3))
    assert result.finish_reason == "length"
    assert backbone.encoded == [5, CANVAS, CANVAS]
    assert result.forwards == result.steps + 2


OTHERS = [tuple(range(begin, begin + 5)) for begin in (10, 20, 30)]


@pytest.mark.parametrize(
    ("requests", "spare", "cached"),
    [
        pytest.param([asked(max_new_tokens=9), asked((*CONTEXT, 9))], 100, [0, 5], id="the next keystroke"),
        pytest.param([asked(), asked((1, 40, 41, 42, 43)), asked()], 100, [0, 0, 5], id="little in common"),
        pytest.param([asked(each) for each in OTHERS + OTHERS[::-1]], 11, [0, 0, 0, 5, 5, 0], id="beyond their room"),
        pytest.param([asked(reuse=0), asked()], 100, [0, 0], id="to be forgotten"),
    ],
)
def test_contexts_are_kept_for_who_asks_next(
    serve: Serve, requests: list[Request], spare: int, cached: list[int]
) -> None:
    serving = serve(Opinionated(), spare_tokens=spare)
    assert [serving.submit(request).result().cached_tokens for request in requests] == cached


def test_no_answer_ends_before_its_least_length(answer: Answer) -> None:
    assert answer(ending_at(5), min_new_tokens=3).ids == (47, 47, 47)


def test_penalties_count_the_canvases_before(answer: Answer) -> None:
    penalty = SamplingParams(presence_penalty=5.0)
    result = answer(lambda _: [(7, 20.0), (8, 19.0)], max_new_tokens=2 * CANVAS, sampling=penalty)
    assert result.ids == (7,) * CANVAS + (8,) * CANVAS


@pytest.mark.parametrize("policy", ["threshold:0.9", "fixed:2", "prefix:0.8"])
def test_policies_of_masked_canvases_choose_what_is_accepted(serve: Serve, policy: str) -> None:
    handle = serve(Opinionated()).submit(asked(policy=policy, record_canvases=True))
    accepted = [sum(state.revealed) for state in handle.states()]
    assert handle.result().ids == tuple(range(5, 5 + CANVAS))
    assert accepted[0] == (2 if policy == "fixed:2" else CANVAS)


@pytest.mark.parametrize("fields", [{"policy": "left_to_right"}, {"policy": "low_confidence:4"}, {"given": (1, 2)}])
def test_what_needs_masks_or_a_causal_answer_is_refused(answer: Answer, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        answer(**fields)


def test_a_failing_encoder_ends_its_request_and_its_context_is_never_read_again(serve: Serve) -> None:
    def fail(told: Any) -> None:
        if 13 in told:
            raise OSError("unreadable")

    backbone = Opinionated()
    backbone.before = fail
    serving = serve(backbone)
    with pytest.raises(RequestFailedError, match="unreadable"):
        serving.submit(asked((1, 2, 13))).result()
    result = serving.submit(asked((1, 2))).result()
    assert (result.cached_tokens, result.ids[0]) == (0, 2)


ANY = range(VOCAB - 2)


def test_a_model_may_end_where_its_constraint_lets_it(answer: Answer) -> None:
    assert answer(ending_at(8), constraint=in_turn(*[ANY] * 30, least=0)).ids == (5, 6, 7)
    forced = answer(ending_at(8), constraint=in_turn(*[ANY] * 30, least=5))
    assert forced.ids[:5] == (5, 6, 7, 47, 47)
    # What the model itself would have said is likelier.
    assert forced.log_probs[:5] == pytest.approx([0, 0, 0, -10, -10], abs=1e-2)
