from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.conftest import ANYTHING, END, MASK, Context, Start

from calomel.engine import EngineError, Request, SamplingParams, Transformer, errors
from calomel.engine.errors import ContextTooLongError, InvalidRequestError


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"context": ()}, InvalidRequestError, "context is empty"),
        ({"context": (1,) * 1000, "max_new_tokens": 25}, ContextTooLongError, r"context \(1000\).* 1024 positions"),
        ({"context": (1, 97)}, InvalidRequestError, "context has token id 97; the vocabulary has 97"),
        ({"context": (1, -1)}, InvalidRequestError, "token id -1"),
        ({"max_new_tokens": 0}, InvalidRequestError, "max_new_tokens is 0"),
        ({"max_new_tokens": 8, "min_new_tokens": 9}, InvalidRequestError, "min_new_tokens is 9"),
        ({"canvas_length": 0}, InvalidRequestError, "canvas_length is 0; it must be between 1 and 64"),
        ({"canvas_length": 65}, InvalidRequestError, "canvas_length is 65"),
        ({"max_steps": 0}, InvalidRequestError, "max_steps is 0"),
        ({"guess": (97,)}, InvalidRequestError, "guess"),
        ({"given": (END,)}, InvalidRequestError, "given"),
        ({"given": (MASK,)}, InvalidRequestError, "given"),
        ({"given": (-1,)}, InvalidRequestError, "given"),
        ({"given": (1,) * 1022}, ContextTooLongError, "given"),
        ({"given": (1, 2), "constraint": ANYTHING}, InvalidRequestError, "constraint"),
        ({"suffix": (1,)}, InvalidRequestError, "cannot read text after the answer"),
        ({"policy": "best"}, InvalidRequestError, "unknown policy 'best'"),
        ({"deadline": math.nan}, InvalidRequestError, "deadline is not a number"),
        ({"reuse": 4}, InvalidRequestError, "reuse is 4"),
        ({"reuse": -1}, InvalidRequestError, "reuse is -1"),
        ({"temperature": -0.1}, InvalidRequestError, "temperature is -0.1"),
        ({"temperature": math.nan}, InvalidRequestError, "temperature is nan"),
        ({"temperature": math.inf}, InvalidRequestError, "temperature is inf"),
        ({"top_p": 0.0}, InvalidRequestError, "top_p is 0.0"),
        ({"top_p": 1.1}, InvalidRequestError, "top_p is 1.1"),
        ({"top_k": 0}, InvalidRequestError, "top_k is 0"),
        ({"frequency_penalty": math.nan}, InvalidRequestError, "frequency_penalty is nan"),
        ({"presence_penalty": math.inf}, InvalidRequestError, "presence_penalty is inf"),
        ({"repetition_penalty": 0.0}, InvalidRequestError, "repetition_penalty is 0.0"),
    ],
)
def test_a_wrong_field_is_refused_at_once_and_named(
    model: Transformer, start: Start, fields: dict[str, Any], error: type[EngineError], message: str
) -> None:
    if fields.keys() <= {each.name for each in dataclasses.fields(SamplingParams)}:
        fields = {"sampling": SamplingParams(**fields)}

    with pytest.raises(error, match=message) as caught:
        start(model).submit(Request(**{"context": (1, 2, 3), **fields}))
    assert isinstance(caught.value, InvalidRequestError)


@pytest.mark.parametrize("wrong", [(1, 2, 3, 97), (1, -1, 3), (97, 2, 3), (1, 97)])
def test_a_wrong_token_is_found_behind_a_context_that_was_right(
    model: Transformer, start: Start, wrong: Context
) -> None:
    engine = start(model)
    engine.submit(Request((1, 2, 3), 2)).result(60)

    for _ in range(2):
        with pytest.raises(InvalidRequestError):
            engine.submit(Request(wrong))


def test_a_checkpoint_without_a_causal_mode_decides_and_judges_nothing_causally(
    model: Transformer, start: Start
) -> None:
    model.config = replace(model.config, diffusion=replace(model.config.diffusion, verifiable=False))
    engine = start(model)

    with pytest.raises(InvalidRequestError, match="left_to_right"):
        engine.submit(Request((1, 2, 3), policy="left_to_right"))
    with pytest.raises(InvalidRequestError, match="given"):
        engine.submit(Request((1, 2, 3), given=(5,)))
    assert engine.submit(Request((1, 2, 3), 4)).result(60).forwards >= 1


@pytest.mark.parametrize(
    "option", ["page_size", "max_batch", "prefill_chunk", "cache_tokens", "threads", "prefill_seconds"]
)
def test_a_wrong_option_of_the_engine_is_named(model: Transformer, start: Start, option: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"{option} is 0"):
        start(model, **{option: 0})


def test_every_error_has_a_code_of_its_own() -> None:
    tree = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, EngineError)]

    assert len({each.code for each in tree}) == len(tree)
