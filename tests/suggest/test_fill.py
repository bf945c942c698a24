from __future__ import annotations

import asyncio

import pytest

from calomel.engine import EngineError
from calomel.engine.errors import RequestCancelledError
from calomel.prompts.parts import Excerpt, PromptParts
from calomel.suggest.completer import Fill, FillRequest
from calomel.suggest.filler import Filler

REQUEST = FillRequest(
    "fill",
    PromptParts(path="a.py", prefix="def add(a, b):\n    return ", suffix="\n\n\nprint(add(1, 2))\n"),
    max_tokens=24,
)


def test_the_same_hole_is_filled_the_same_way_and_from_the_cache(filler: Filler) -> None:
    first, second = filler.fill(REQUEST), filler.fill(REQUEST)

    assert second.text == first.text
    assert first.cached_tokens == 0
    assert second.cached_tokens > 0
    assert first.prompt_tokens == second.prompt_tokens
    assert 0 < first.confidence <= 1
    assert first.completion_tokens == len(first.result.ids) <= 24


def test_an_answer_ends_before_its_stop_string_and_no_canvas_is_made_behind_it(filler: Filler) -> None:
    whole = filler.fill(
        FillRequest(
            "fill",
            PromptParts(prefix=REQUEST.parts.prefix, suffix=REQUEST.parts.suffix),
            max_tokens=120,
            canvas_lengths=(8,),
        )
    )
    stop = whole.text[2:4]

    stopped = filler.fill(
        FillRequest(
            "fill",
            PromptParts(prefix=REQUEST.parts.prefix, suffix=REQUEST.parts.suffix),
            max_tokens=120,
            canvas_lengths=(8,),
            stop=(stop,),
        )
    )

    assert stopped.text == whole.text[: whole.text.index(stop)]
    assert stopped.finish_reason == "stop"
    assert stopped.forwards < whole.forwards / 2


async def test_a_stream_adds_up_to_the_plain_answer(filler: Filler) -> None:
    for policy in ("threshold:0.5", "fixed:2", "left_to_right"):
        request = FillRequest(
            "fill",
            PromptParts(prefix=REQUEST.parts.prefix, suffix=REQUEST.parts.suffix),
            max_tokens=40,
            policy=policy,
            max_steps=16,
        )
        pieces = [piece async for piece in filler.stream(request)]

        last = pieces[-1]
        assert isinstance(last, Fill)
        assert "".join(piece for piece in pieces[:-1] if isinstance(piece, str)) == last.text
        assert last.text == filler.fill(request).text


async def test_a_stream_never_shows_what_a_stop_string_takes_back(filler: Filler) -> None:
    stop = filler.fill(REQUEST).text[3:6]
    request = FillRequest(
        "fill",
        PromptParts(path="a.py", prefix=REQUEST.parts.prefix, suffix=REQUEST.parts.suffix),
        max_tokens=24,
        stop=(stop,),
        policy="fixed:1",
        max_steps=32,
    )

    shown = [piece async for piece in filler.stream(request) if isinstance(piece, str)]

    assert stop not in "".join(shown)


async def test_cancelling_the_task_cancels_the_request(filler: Filler) -> None:
    request = FillRequest(
        "fill", PromptParts(prefix="x = 1\n" * 300), max_tokens=1000, policy="left_to_right", max_context=3000
    )
    task = asyncio.create_task(filler.afill(request))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises((asyncio.CancelledError, RequestCancelledError)):
        await task
    assert filler.fill(REQUEST).completion_tokens >= 0


def test_an_unknown_policy_is_the_engines_error(filler: Filler) -> None:
    with pytest.raises(EngineError, match="sideways"):
        filler.fill(FillRequest("fill", PromptParts(prefix="x"), policy="sideways:2"))


def test_parts_take_the_place_of_prefix_suffix_and_path(filler: Filler) -> None:
    bare = filler.fill(FillRequest("fill", PromptParts(path="a.py", prefix="def f(", suffix=")\n"), max_tokens=4))
    same = filler.fill(FillRequest("fill", PromptParts(path="a.py", prefix="def f(", suffix=")\n"), max_tokens=4))
    assert (same.text, same.prompt_tokens) == (bare.text, bare.prompt_tokens)

    parts = PromptParts(related=(Excerpt("b.py", 0, "import b\n"),), path="a.py", prefix="def f(", suffix=")\n")
    more = filler.fill(FillRequest("fill", parts, max_tokens=4))
    assert more.prompt_tokens > bare.prompt_tokens
