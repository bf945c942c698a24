from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest

from calomel.engine import Engine, EngineError, Request, SamplingParams, Transformer, errors
from calomel.engine.errors import (
    ContextTooLongError,
    EmptyContextError,
    InvalidCanvasError,
    InvalidRequestError,
    InvalidSamplingError,
    PolicyUnavailableError,
    TokenOutOfRangeError,
    UnknownPolicyError,
)

Start = Callable[..., Engine]


def sampling(**params: Any) -> dict[str, Any]:
    return {"sampling": SamplingParams(**params)}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"context": ()}, EmptyContextError, "context is empty"),
        ({"context": (1,) * 1000, "max_new_tokens": 25}, ContextTooLongError, r"context \(1000\).* 1024 positions"),
        ({"context": (1, 97)}, TokenOutOfRangeError, "context has token id 97; the vocabulary has 97"),
        ({"context": (1, -1)}, TokenOutOfRangeError, "token id -1"),
        ({"max_new_tokens": 0}, InvalidRequestError, "max_new_tokens is 0"),
        ({"canvas_lengths": ()}, InvalidCanvasError, "canvas_lengths is empty"),
        ({"canvas_lengths": (8, 0)}, InvalidCanvasError, r"canvas length 0 is outside of 1\.\.64"),
        ({"canvas_lengths": (65,)}, InvalidCanvasError, "canvas length 65"),
        ({"max_steps": 0}, InvalidCanvasError, "max_steps is 0"),
        ({"frozen": {64: 1}}, InvalidCanvasError, r"frozen position 64 is outside of 0\.\.63"),
        ({"frozen": {-1: 1}}, InvalidCanvasError, "frozen position -1"),
        ({"frozen": {0: 95}}, InvalidCanvasError, "has the mask token"),
        ({"frozen": {0: 99}}, TokenOutOfRangeError, "frozen has token id 99"),
        ({"policy": "best"}, UnknownPolicyError, "unknown policy 'best'"),
        ({"deadline": math.nan}, InvalidRequestError, "deadline is not a number"),
        ({"reuse": 4}, InvalidRequestError, "reuse is 4"),
        ({"reuse": -1}, InvalidRequestError, "reuse is -1"),
        (sampling(temperature=-0.1), InvalidSamplingError, "temperature is -0.1"),
        (sampling(temperature=math.nan), InvalidSamplingError, "temperature is nan"),
        (sampling(temperature=math.inf), InvalidSamplingError, "temperature is inf"),
        (sampling(top_p=0.0), InvalidSamplingError, "top_p is 0.0"),
        (sampling(top_p=1.1), InvalidSamplingError, "top_p is 1.1"),
        (sampling(top_k=0), InvalidSamplingError, "top_k is 0"),
        (sampling(frequency_penalty=math.nan), InvalidSamplingError, "frequency_penalty is nan"),
        (sampling(presence_penalty=math.inf), InvalidSamplingError, "presence_penalty is inf"),
        (sampling(repetition_penalty=0.0), InvalidSamplingError, "repetition_penalty is 0.0"),
    ],
)
def test_a_wrong_field_is_refused_at_once_and_named(
    model: Transformer, start: Start, fields: dict[str, Any], error: type[EngineError], message: str
) -> None:
    engine = start(model)

    with pytest.raises(error, match=message) as caught:
        engine.submit(Request(**{"context": (1, 2, 3), **fields}))
    assert isinstance(caught.value, InvalidRequestError)


@pytest.mark.parametrize("wrong", [(1, 2, 3, 97), (1, -1, 3), (97, 2, 3), (1, 97)])
def test_a_wrong_token_is_found_behind_a_context_that_was_right(
    model: Transformer, start: Start, wrong: tuple[int, ...]
) -> None:
    engine = start(model)
    engine.submit(Request((1, 2, 3), 2)).result(60)

    for _ in range(2):
        with pytest.raises(TokenOutOfRangeError):
            engine.submit(Request(wrong))


@pytest.mark.parametrize("policy", ["left_to_right"])
def test_a_checkpoint_without_a_causal_mode_refuses_causal_policies(
    model: Transformer, start: Start, policy: str
) -> None:
    model.config = dataclasses.replace(
        model.config, diffusion=dataclasses.replace(model.config.diffusion, verifiable=False)
    )
    engine = start(model)

    with pytest.raises(PolicyUnavailableError, match=policy):
        engine.submit(Request((1, 2, 3), policy=policy))
    assert engine.submit(Request((1, 2, 3), 4)).result(60).forwards >= 1


@pytest.mark.parametrize(
    "options", [{"page_size": 0}, {"max_batch": 0}, {"prefill_chunk": 0}, {"cache_tokens": 1}, {"threads": 0}]
)
def test_a_wrong_option_of_the_engine_is_named(model: Transformer, start: Start, options: dict[str, int]) -> None:
    with pytest.raises(InvalidRequestError, match=next(iter(options))):
        start(model, **options)


def test_every_error_has_a_code_of_its_own() -> None:
    tree = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, EngineError)]

    assert len({each.code for each in tree}) == len(tree)


def test_a_context_of_one_token_is_answered(model: Transformer, start: Start) -> None:
    engine = start(model)
    for policy in ("threshold:0.5", "left_to_right"):
        result = engine.submit(Request((3,), 6, (6,), policy=policy)).result(60)
        assert (result.cached_tokens, result.computed_tokens) in {(0, 1), (1, 0)}
