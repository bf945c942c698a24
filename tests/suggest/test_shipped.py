"""Fills of the shipped model, and fills that have to be JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from calomel.engine import SamplingParams
from calomel.infer.completer import FillRequest
from calomel.infer.filler import Filler
from calomel.infer.in_process import open_filler
from calomel.prompts.grammar import json_form
from calomel.prompts.parts import PromptParts

PREFIX = "def average(numbers):\n    total = sum(numbers)\n    if not numbers:\n        retu"


SUFFIX = "\n    return total / len(numbers)\n"


def test_the_answer_goes_on_with_the_half_word(nano: Filler) -> None:
    parts = PromptParts(path="a.py", prefix=PREFIX, suffix=SUFFIX)
    fill = nano.fill(FillRequest("fill", parts, max_tokens=8, whole_word=True, min_tokens=1))
    assert fill.text.startswith("rn")
    assert fill.completion_tokens <= 9
    assert 0.0 < fill.confidence <= 1.0
    assert len(fill.result.ids) == len(fill.result.log_probs) == len(fill.result.entropies)


@pytest.mark.parametrize("prefix", ["a process th", "x = sel", "retur"])
@pytest.mark.parametrize(("least", "most"), [(0, 1), (2, 2), (1, 5)])
def test_bounds_count_what_is_said_and_a_stream_says_the_same(nano: Filler, prefix: str, least: int, most: int) -> None:
    """Whichever tokens spell the half word."""
    request = FillRequest("fill", PromptParts(prefix=prefix), max_tokens=most, min_tokens=least)
    plain = nano.fill(request)

    async def streamed() -> str:
        return "".join([item async for item in nano.stream(request) if isinstance(item, str)])

    assert asyncio.run(streamed()) == plain.text
    assert least <= plain.completion_tokens <= most
    assert plain.completion_tokens == len(plain.result.ids)
    assert plain.finish_reason == "stop" or plain.completion_tokens == most


@pytest.mark.parametrize("prefix", ["import os\n\nplan_of_wo", "import os\n\nx = "])
def test_an_answer_that_nobody_would_see_is_given_up_early(nano: Filler, prefix: str) -> None:
    """What the half word costs is no part of it."""
    request = FillRequest("fill", PromptParts(path="a.py", prefix=prefix), max_tokens=48, min_tokens=40)
    whole = nano.fill(request)
    score = sum(whole.result.log_probs)
    assert nano.fill(replace(request, floor=score - 0.1)).text == whole.text
    early = nano.fill(replace(request, floor=score / 4))
    assert early.finish_reason == "unlikely" != whole.finish_reason
    assert early.forwards < whole.forwards
    assert early.text == ""


def test_a_cursor_behind_white_space_changes_nothing(nano: Filler) -> None:
    prefix = PREFIX[: PREFIX.rindex("\n") + 1] + "        "
    asked = FillRequest("fill", PromptParts(path="a.py", prefix=prefix, suffix=SUFFIX), max_tokens=8)
    assert nano.fill(asked).result.ids == nano.fill(replace(asked, whole_word=False)).result.ids


async def test_a_file_of_windows_is_filled_as_any_other_with_its_own_line_ends(nano: Filler) -> None:
    prefix = "import os\n\n\ndef first(path):\n    with open(path) as handle:\n        return handle.read()\n\n\n"
    prefix += "def second(path):\n    with o"
    suffix = "\n        return handle.read()\n"

    def asked(*texts: str) -> FillRequest:
        parts = PromptParts(path="a.py", prefix=texts[0], suffix=texts[1])
        return FillRequest("fill", parts, max_tokens=32, fitted=True)

    windows = asked(*(text.replace("\n", "\r\n") for text in (prefix, suffix)))
    plain = nano.fill(asked(prefix, suffix)).text
    assert plain == "pen(path) as handle:"
    assert nano.fill(windows).text == plain.replace("\n", "\r\n")
    assert "".join([piece async for piece in nano.stream(windows) if isinstance(piece, str)]) == plain


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
    filler = open_filler(threads=1, dtype="float32")  # in bfloat16 a sum depends on what else is in its forward
    yield filler
    filler.close()


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_shipped_model_fills_a_hole_with_json_of_the_schema(nano: Filler, temperature: float) -> None:
    parts = PromptParts(prefix="# A person, as JSON.\nperson = ", suffix="\nprint(person)\n")
    form, sampling = nano.grammars.compile(json_form(PERSON)), SamplingParams(temperature=temperature, seed=1)
    filled = nano.fill(FillRequest("fill", parts, max_tokens=120, constraint=form, sampling=sampling))
    assert filled.finish_reason == "stop"
    jsonschema.validate(json.loads(filled.text), PERSON)
    # Keys and brackets are forced: they take no step.
    assert filled.steps < filled.completion_tokens
