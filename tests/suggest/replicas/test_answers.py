"""Answers of replicas are those of one engine, whatever is asked."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from typing import Any

import pytest
from tests.suggest.replicas.conftest import Open

from calomel.engine import EngineError, Priority, Request, Result, SamplingParams
from calomel.engine.errors import InvalidRequestError
from calomel.prompts.grammar import json_form, pattern_form
from calomel.prompts.parts import EditRegion, PromptParts
from calomel.suggest.completer import CompleteRequest, Draft, Ending, Fill, FillRequest, Patience
from calomel.suggest.filler import Filler
from calomel.suggest.replicas.wire import read_request, request_data

PREFIX = "import json\n\n\ndef load(path):\n    with open("
SUFFIX = "\n    return found\n"


def same(one: Result, other: Result) -> bool:
    """Equal but for the time that it took, and what the caches had."""
    told = [
        replace(each, prefill_seconds=0.0, denoise_seconds=0.0, cached_tokens=0, computed_tokens=0)
        for each in (one, other)
    ]
    return told[0] == told[1]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"stop": ("\n",)},
        {"stop": (")", "\n\n"), "max_tokens": 48},
        {"policy": "left_to_right", "max_tokens": 20},
        {"policy": "fixed:2", "max_tokens": 20, "stop": (":",)},
        {"sampling": SamplingParams(temperature=0.8, top_p=0.9, seed=7)},
        {"canvas_lengths": (8, 16, 32), "min_tokens": 3},
        {"priority": Priority.BACKGROUND, "deadline": 60.0},
    ],
)
def test_an_answer_is_the_one_of_a_single_engine(replicated: Open, single: Filler, more: dict[str, Any]) -> None:
    filler, _ = replicated()
    wanted = FillRequest(prefix=PREFIX, suffix=SUFFIX, path="load.py", **more)
    found, expected = filler.fill(wanted), single.fill(wanted)
    assert (found.text, found.finish_reason, found.confidence) == (
        expected.text,
        expected.finish_reason,
        expected.confidence,
    )
    assert same(found.result, expected.result)


@pytest.mark.parametrize(
    "form", [json_form({"type": "object", "properties": {"a": {"type": "integer"}}}), pattern_form("[a-c]{2,5}")]
)
def test_what_an_answer_may_be_is_kept_by_the_replica(replicated: Open, single: Filler, form: Any) -> None:
    filler, _ = replicated()
    wanted = FillRequest(prefix="value = ", suffix="\n", max_tokens=24)
    found = filler.fill(replace(wanted, constraint=filler.grammars.compile(form)))
    expected = single.fill(replace(wanted, constraint=single.grammars.compile(form)))
    assert found.text == expected.text
    assert same(found.result, expected.result)


async def test_a_stream_and_its_canvases_are_those_of_a_single_engine(replicated: Open, single: Filler) -> None:
    filler, _ = replicated()
    wanted = FillRequest(prefix=PREFIX, max_tokens=40, min_tokens=30, stop=("import",), policy="fixed:2", max_steps=16)

    async def told(which: Filler) -> list[object]:
        items = [item async for item in which.canvases(wanted)] + [item async for item in which.stream(wanted)]
        return [item.text if isinstance(item, Fill) else item for item in items]

    found = await told(filler)
    assert len(found) > 4
    assert found == await told(single)


async def test_a_region_is_rewritten_as_by_a_single_engine(replicated: Open, single: Filler) -> None:
    filler, line = replicated()
    text = "def total(prices):\n    result = 0\n    for price in prices:\n        result += item\n    return result\n"
    wanted = CompleteRequest(
        kind="edit",
        parts=PromptParts(path="a.py", prefix="", suffix="", region=EditRegion(text, len(text) - 20)),
        drafts=(Draft("repeat", text.replace("item", "price")),),
    )
    found, expected = await filler.arewrite(wanted), await single.arewrite(wanted)
    told = [[(each.maker, each.text) for each in answer.candidates] for answer in (found, expected)]
    assert told[0] == told[1]
    # What shares a forward with what is chance, and the last digits are its.
    ratios = [[each.log_ratio for each in answer.candidates] for answer in (found, expected)]
    assert ratios[0] == pytest.approx(ratios[1], abs=1e-3)
    assert max(len(group) for place in line.places for group in place.sent) > 1


async def test_requests_that_are_asked_together_are_sent_together(replicated: Open) -> None:
    filler, line = replicated()
    base = Request(context=(5, 6, 7), max_new_tokens=4, session="s")
    handles = filler.engine.submit_all([base, replace(base, given=(9,)), replace(base, record_canvases=True)])
    assert all([await handle.wait() for handle in handles])
    assert [len(group) for place in line.places for group in place.sent] == [3]


def test_every_field_of_a_request_arrives(single: Filler) -> None:
    ending = single.until("hole", ("x", "yy"))
    assert ending is not None
    constraint = single.grammars.compile(pattern_form("ab*"))
    request = Request(
        context=(1, 70_000, 3),
        max_new_tokens=7,
        canvas_lengths=(4, 8),
        frozen={2: 9},
        sampling=SamplingParams(0.5, 0.9, 40, 0.1, 0.2, 1.1, 3),
        policy="fixed:2",
        max_steps=3,
        deadline=12.5,
        priority=Priority.BACKGROUND,
        record_canvases=True,
        reuse=2,
        min_new_tokens=1,
        until=ending,
        given=(4, 5),
        guess=(6,),
        constraint=constraint,
        suffix=(8, 9),
        session="s",
        client="c",
    )
    plain = Request(context=(1,))
    untouched = [each.name for each in fields(Request) if getattr(request, each.name) == getattr(plain, each.name)]
    assert untouched == []
    assert read_request(request_data(request), single, 12.5) == request


def test_an_end_is_told_as_data_and_any_other_function_is_refused(single: Filler) -> None:
    ended = read_request(request_data(Request(context=(1,), until=Patience(2))), single, None).until
    assert ended is not None
    assert [ended(()), ended(()), ended(())] == [False, True, True]
    plain = read_request(request_data(Request(context=(1,), until=single.until("plain", ("b",)))), single, None).until
    assert isinstance(plain, Ending)
    assert [plain(single.tokenizer.encode(text)) for text in ("a", "abc")] == [False, True]
    with pytest.raises(InvalidRequestError, match="until is a function"):
        request_data(Request(context=(1,), until=lambda _: True))


def test_a_wrong_request_is_refused_before_it_is_sent(replicated: Open) -> None:
    filler, line = replicated()
    with pytest.raises(InvalidRequestError, match="max_new_tokens"):
        filler.engine.submit(Request(context=(1,), max_new_tokens=0))
    assert all(not place.sent for place in line.places)


def test_an_engines_refusal_comes_back_as_the_same_error(replicated: Open, single: Filler) -> None:
    request = Request(context=(1, 2), policy="threshold:7")
    messages = []
    for engine in (replicated()[0].engine, single.engine):
        with pytest.raises(EngineError) as refused:
            engine.submit(request).result(10)
        messages.append((type(refused.value), str(refused.value)))
    assert messages[0] == messages[1]


def test_the_front_knows_the_shape_of_the_model_that_replicas_have(replicated: Open, single: Filler) -> None:
    assert replicated()[0].engine.config == single.engine.config


async def test_many_at_once_are_each_answered_as_alone(replicated: Open, single: Filler) -> None:
    filler, _ = replicated(3)
    wanted = [FillRequest(prefix=f"{PREFIX}name_{at}", suffix=SUFFIX, max_tokens=12) for at in range(12)]
    found = await asyncio.gather(*(filler.in_session(f"s{at % 5}").afill(each) for at, each in enumerate(wanted)))
    assert [each.text for each in found] == [single.fill(each).text for each in wanted]
