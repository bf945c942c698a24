"""Regions that a client sends, and the client's own account of its edits."""

from __future__ import annotations

from typing import Any

import pytest
from tests.suggest.editor import Elsewhere, Reply, ScriptedModel

from calomel.engine import DeadlineExceededError, EngineStoppedError
from calomel.infer.completer import Candidate, CompleteRequest, ModelInfo
from calomel.prompts.edit_prompt import EditPrompt
from calomel.prompts.parts import Hunk, RegionBounds
from calomel.suggest.judging import SuggestionFilter
from calomel.suggest.silence import SilenceReason
from calomel.suggest.stateless import EditService, RegionAnswer, Streams, named

TEXT = "def area(width, height):\n    return w * height\n\n\ndef twice(w):\n    return 2 * w\n"


RENAME = Hunk("shape.py", 0, "def area(w, height):\n", "def area(width, height):\n")


INFO = ModelInfo("m", "w", ("fill", "edit"), 32768, 2048, None, "0", RegionBounds(above=1, below=2))


def liking(text: str = "") -> ScriptedModel:
    """Likes all drafts, and fills holes with `text`."""

    def reply(request: CompleteRequest) -> Reply:
        if request.kind == "fill":
            return text
        return tuple(Candidate(each.text, (-0.01,), maker=each.maker) for each in request.drafts)

    return ScriptedModel(reply, log_prob=-0.01)


def prompt(text: str, *edits: Hunk, region: str, cursor: str) -> EditPrompt:
    """The region is `region`; the cursor stands behind the first `cursor` of it."""
    start = text.index(region)
    at = region.index(cursor) + len(cursor)
    return EditPrompt("shape.py", text[:start], region, text[start + len(region) :], at, edits)


async def rewritten(
    model: ScriptedModel | Elsewhere, asked: EditPrompt, service: EditService | None = None, **options: Any
) -> RegionAnswer:
    service = service or EditService(SuggestionFilter())
    return await service.rewrite(model.complete, INFO, asked, **options)


@pytest.mark.parametrize("unit", ["x = 1\n", "xoxb-"])
async def test_of_a_huge_file_what_is_near_is_looked_at(unit: str) -> None:
    far = unit * (2_000_000 // len(unit)) + "\n"
    region = "    return w * height\n"

    model = liking()
    answer = await rewritten(model, prompt(far + TEXT + far, RENAME, region=region, cursor="return w"))

    assert answer.text == "    return width * height\n"
    assert all(len(each.parts.prefix + each.parts.suffix) < 300_000 for each in model.requests)


async def test_without_an_edit_to_go_on_with_text_for_the_cursor_is_tried() -> None:
    text = "def area(width, height):\n    return \n"

    answer = await rewritten(liking("width * height"), prompt(text, region="    return \n", cursor="return "))

    assert answer.text == "    return width * height\n"
    assert answer.decisions[0].kind == "fill"


async def test_the_model_sees_edits_and_snippets_of_this_client_alone() -> None:
    service = EditService(SuggestionFilter())
    other = Hunk("shape.py", 4, "def half(w):\n", "def twice(w):\n")
    mine = prompt(TEXT, RENAME, other, region="    return w * height\n", cursor="return w")
    # As if the beginning of the same history were lost.
    yours = prompt(TEXT, other, region="    return w * height\n", cursor="return w")
    model = liking()

    await rewritten(liking(), mine, service, client="me")
    await rewritten(model, yours, service, client="you")

    assert {request.parts.edits for request in model.requests} == {(other,)}


@pytest.mark.parametrize("text", ["", "\n", "x"])
async def test_an_empty_file_or_region_is_no_reason_to_fail(text: str) -> None:
    for cursor in (None, 0):
        answer = await rewritten(liking(), EditPrompt(None, "", text, "", cursor))
        assert answer.text == text


async def test_an_edit_that_comes_too_late_is_silence_and_any_other_failure_is_told() -> None:
    model = ScriptedModel(lambda _: DeadlineExceededError("late"))
    asked = prompt(TEXT, RENAME, region="    return w * height\n", cursor="return w")

    late = await rewritten(model, asked)

    assert (late.text, late.reason) == ("    return w * height\n", SilenceReason.TIMEOUT)
    model.reply = lambda _: EngineStoppedError("stopped")
    with pytest.raises(EngineStoppedError):
        await rewritten(model, asked)


def test_an_edit_of_the_file_under_its_longer_or_shorter_name_is_its_own() -> None:
    hunks = (Hunk("src/a.py", 0, "x\n", "y\n"), Hunk("other_a.py", 0, "x\n", "y\n"), Hunk("a.py", 0, "x\n", "y\n"))

    bare = named(EditPrompt("a.py", "", "y\n", "", None, hunks)).edits
    absolute = named(EditPrompt("/home/me/src/a.py", "", "y\n", "", None, hunks)).edits

    assert [hunk.path for hunk in bare] == ["a.py", "other_a.py", "a.py"]
    assert [hunk.path for hunk in absolute] == ["/home/me/src/a.py", "other_a.py", "/home/me/src/a.py"]


def hunks(*names: str) -> tuple[Hunk, ...]:
    return tuple(Hunk("a.py", 0, "", f"{name}\n") for name in names)


def test_a_history_that_loses_its_beginning_only_grows_here() -> None:
    streams = Streams()
    first = streams.follow("me", hunks("a", "b", "c"))
    second = streams.follow("me", hunks("b", "c", "d"))

    assert second.hunks == hunks("a", "b", "c", "d")
    assert second.hops == first.hops
