from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from calomel.prompts.parts import PromptParts
from calomel.suggest.completer import Draft, Fill, FillRequest
from calomel.suggest.filler import Filler
from calomel.suggest.in_process import open_filler

PREFIX = "def average(numbers):\n    total = sum(numbers)\n    if not numbers:\n        retu"
SUFFIX = "\n    return total / len(numbers)\n"


@pytest.fixture(scope="module")
def filler() -> Iterator[Filler]:
    """The shipped model."""
    opened = open_filler(threads=1)
    yield opened
    opened.close()


def test_the_answer_goes_on_with_the_half_word(filler: Filler) -> None:
    fill = filler.fill(
        FillRequest(
            "fill", PromptParts(path="a.py", prefix=PREFIX, suffix=SUFFIX), max_tokens=8, whole_word=True, min_tokens=1
        )
    )
    assert fill.text.startswith("rn")
    assert fill.completion_tokens <= 9
    assert 0.0 < fill.confidence <= 1.0
    assert len(fill.result.ids) == len(fill.result.log_probs) == len(fill.result.entropies)


def test_the_prompt_is_that_of_the_words_beginning(filler: Filler) -> None:
    first = filler.fill(
        FillRequest("fill", PromptParts(path="b.py", prefix=PREFIX, suffix=SUFFIX), max_tokens=8, whole_word=True)
    )
    # One letter more of the same word: nothing of the prompt is new but what is never kept.
    second = filler.fill(
        FillRequest("fill", PromptParts(path="b.py", prefix=PREFIX + "r", suffix=SUFFIX), max_tokens=8, whole_word=True)
    )
    assert second.prompt_tokens == first.prompt_tokens
    assert second.cached_tokens >= first.prompt_tokens - 20


def test_streamed_pieces_are_the_answer(filler: Filler) -> None:
    request = FillRequest(
        "fill", PromptParts(path="a.py", prefix=PREFIX, suffix=SUFFIX), max_tokens=24, whole_word=True, min_tokens=1
    )

    async def pieces() -> tuple[list[str], Fill]:
        items = [item async for item in filler.stream(request)]
        last = items.pop()
        assert isinstance(last, Fill)
        return [item for item in items if isinstance(item, str)], last

    streamed, fill = asyncio.run(pieces())
    assert "".join(streamed) == fill.text


@pytest.mark.parametrize("prefix", ["a process th", "import nump", "x = sel", "print(hel", "retur"])
@pytest.mark.parametrize(("least", "most"), [(0, 1), (1, 1), (2, 2), (1, 5), (5, 5)])
def test_bounds_count_what_is_said_and_a_stream_says_the_same(
    filler: Filler, prefix: str, least: int, most: int
) -> None:
    """Whichever tokens spell the half word."""
    request = FillRequest("fill", PromptParts(prefix=prefix), max_tokens=most, min_tokens=least)
    plain = filler.fill(request)

    async def streamed() -> str:
        return "".join([item async for item in filler.stream(request) if isinstance(item, str)])

    assert asyncio.run(streamed()) == plain.text
    assert least <= plain.completion_tokens <= most
    assert plain.completion_tokens == len(plain.result.ids)
    assert plain.finish_reason == "stop" or plain.completion_tokens == most


def test_drafts_are_judged_as_they_stand(filler: Filler) -> None:
    asked = FillRequest(
        "fill",
        PromptParts(path="a.py", prefix=PREFIX, suffix=SUFFIX),
        max_tokens=8,
        drafts=(Draft("rn 0.0", "found"),),
        recall=False,
    )
    answer = asyncio.run(filler.complete(asked))
    (draft,) = [each for each in answer.candidates if each.maker == "found"]
    (own,) = [each for each in answer.candidates if each.maker == "canvas"]
    assert "rn 0.0".startswith(draft.text)
    assert own.text == filler.fill(asked).text


def test_a_cursor_behind_white_space_changes_nothing(filler: Filler) -> None:
    prefix = PREFIX[: PREFIX.rindex("\n") + 1] + "        "
    asked = FillRequest("fill", PromptParts(path="a.py", prefix=prefix, suffix=SUFFIX), max_tokens=8)
    assert filler.fill(asked).result.ids == filler.fill(replace(asked, whole_word=False)).result.ids
