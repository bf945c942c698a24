"""Fills that have to be JSON, by a model of random weights and by the shipped one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calomel.engine import SamplingParams
from calomel.prompts.grammar import json_form, pattern_form
from calomel.prompts.parts import PromptParts
from calomel.suggest.completer import FillRequest
from calomel.suggest.filler import Filler
from calomel.suggest.in_process import open_filler

PREFIX, SUFFIX = "# A person, as JSON.\nperson = ", "\nprint(person)\n"
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def nano() -> Iterator[Filler]:
    filler = open_filler()
    yield filler
    filler.close()


def schemas() -> st.SearchStrategy[Any]:
    leaves = st.sampled_from(
        [
            {"type": "integer", "minimum": -5, "maximum": 1000},
            {"type": "boolean"},
            {"type": "null"},
            {"type": "string", "maxLength": 3},
            {"type": "string", "pattern": "^[a-c]{1,3}$"},
            {"enum": ["on", "off", 1, None]},
            {"const": "ü\n"},
        ]
    )

    def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.dictionaries(st.sampled_from(["a", "bc", "é", "x y"]), inner, min_size=1, max_size=3).map(
                lambda found: {
                    "type": "object",
                    "properties": found,
                    "required": sorted(found),
                    "additionalProperties": False,
                }
            ),
            inner.map(lambda items: {"type": "array", "items": items, "maxItems": 2}),
            st.lists(inner, min_size=2, max_size=2).map(lambda either: {"anyOf": either}),
        )

    return st.recursive(leaves, deeper, max_leaves=5)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    schema=schemas(),
    policy=st.sampled_from(["threshold:0.5", "threshold:0", "fixed:3", "left_to_right"]),
    steps=st.sampled_from([None, 1, 3]),
    length=st.sampled_from([4, 16, 32]),
    temperature=st.sampled_from([0.0, 1.0]),
    seed=st.integers(0, 99),
)
def test_whatever_is_asked_of_whatever_model_the_answer_fits_unless_it_was_cut(
    filler: Filler,
    schema: dict[str, Any],
    policy: str,
    steps: int | None,
    length: int,
    temperature: float,
    seed: int,
) -> None:
    filled = filler.fill(
        FillRequest(
            "fill",
            PromptParts(prefix=PREFIX, suffix=SUFFIX),
            max_tokens=90,
            constraint=filler.grammars.compile(json_form(schema)),
            policy=policy,
            max_steps=steps,
            canvas_lengths=(length,),
            sampling=SamplingParams(temperature=temperature, seed=seed),
        )
    )

    if filled.finish_reason == "stop":
        jsonschema.validate(json.loads(filled.text), schema)
    else:
        assert filled.finish_reason == "length"


async def test_a_stream_within_a_form_adds_up_to_the_plain_answer(filler: Filler) -> None:
    constraint = filler.grammars.compile(json_form(PERSON))
    request = FillRequest("fill", PromptParts(prefix=PREFIX, suffix=SUFFIX), max_tokens=120, constraint=constraint)

    pieces = [piece async for piece in filler.stream(request)]

    assert "".join(piece for piece in pieces if isinstance(piece, str)) == filler.fill(request).text


def test_the_shipped_model_fills_a_hole_with_json_of_the_schema(nano: Filler) -> None:
    constraint = nano.grammars.compile(json_form(PERSON))
    for seed in range(3):
        sampling = SamplingParams(temperature=0.8 if seed else 0.0, seed=seed)
        filled = nano.fill(
            FillRequest(
                "fill",
                PromptParts(prefix=PREFIX, suffix=SUFFIX),
                max_tokens=120,
                constraint=constraint,
                sampling=sampling,
            )
        )

        assert filled.finish_reason == "stop"
        jsonschema.validate(json.loads(filled.text), PERSON)
        # Keys and brackets are forced: they take no step.
        assert filled.steps < filled.completion_tokens


async def test_a_pattern_and_a_free_fill_side_by_side_do_not_know_of_each_other(nano: Filler) -> None:
    free = FillRequest("fill", PromptParts(prefix="def add(a, b):\n    return ", suffix="\n"), max_tokens=16)
    digits = FillRequest(
        "fill",
        PromptParts(prefix="year = ", suffix="\n"),
        max_tokens=16,
        constraint=nano.grammars.compile(pattern_form("[12][0-9]{3}")),
    )
    alone = nano.fill(free).text

    together, year = await asyncio.gather(nano.afill(free), nano.afill(digits))

    assert together.text == alone
    assert len(year.text) == 4
    assert year.text.isdigit()
