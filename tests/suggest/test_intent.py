"""What the last edits still want: an edit that was taken back wants nothing, and no answer takes one back."""

from __future__ import annotations

import pytest
from tests.suggest.editor import URI, Editor, Reply, editing

from calomel.suggest.completer import Candidate, CompleteRequest
from calomel.suggest.suggestion import Answer, Suggestion, apply
from calomel.workspace.documents import FullChange
from calomel.workspace.preferences import SuggestSettings

NOW = SuggestSettings(debounce_seconds=0.0)
TEXT = (
    "def pay(cart, percent):\n"
    "    |value = cart.total()\n"
    "    value = value - value * percent / 100\n"
    "    if value < 0:\n"
    "        value = 0\n"
    "    return value\n"
)


def likes_drafts(request: CompleteRequest) -> Reply:
    """Every draft is sure, and the model has nothing of its own to say."""
    return tuple(Candidate(each.text, (-0.01,), maker=each.maker) for each in request.drafts)


def after(editor: Editor, answer: Answer) -> str | None:
    return apply(editor.document.text, answer.edits) if isinstance(answer, Suggestion) else None


def types_over(editor: Editor, old: str, new: str, at: int | None = None) -> int:
    """`cw` and the new word, key by key."""
    start = editor.document.text.index(old) if at is None else at
    editor.change((start, start + len(old), ""))
    for key in new:
        editor.type(key)
    return start


async def test_a_rename_goes_on_while_it_stands() -> None:
    async with editing(TEXT, likes_drafts, settings=NOW) as editor:
        types_over(editor, "value", "amount")
        await editor.time.advance(2.5)
        assert "amount = amount - amount" in str(after(editor, await editor.next_edit()))


@pytest.mark.parametrize("pause", [0.0, 2.5])
@pytest.mark.parametrize("how", ["whole", "in steps"])
async def test_what_was_undone_is_not_gone_on_with(pause: float, how: str) -> None:
    async with editing(TEXT, likes_drafts, settings=NOW) as editor:
        start = types_over(editor, "value", "amount")
        await editor.time.advance(pause)
        if how == "whole":
            editor.change((start, start + 6, "value"))
        else:
            editor.change((start, start + 6, ""))
            editor.change((start, start, "value"))
        await editor.time.advance(2.5)
        assert after(editor, await editor.next_edit()) is None


async def test_what_was_undone_is_no_intent_behind_another_edit() -> None:
    async with editing(TEXT, likes_drafts, settings=NOW) as editor:
        start = types_over(editor, "value", "amount")
        await editor.time.advance(2.5)
        editor.change((start, start + 6, "value"))
        await editor.time.advance(2.5)
        editor.cursor = len(editor.document.text)
        editor.type("x")
        assert "amount" not in str(after(editor, await editor.next_edit()))


@pytest.mark.parametrize("how", ["reopened", "replaced", "minimal"])
async def test_what_a_reload_took_away_is_not_offered_again(how: str) -> None:
    async with editing(TEXT, likes_drafts, settings=NOW) as editor:
        before = editor.document.text
        types_over(editor, "value", "amount")
        await editor.time.advance(2.5)
        first = await editor.next_edit()
        assert isinstance(first, Suggestion)
        editor.change(first.edits[0])
        editor.suggester.accepted(first.id)
        await editor.time.advance(2.5)
        if how == "reopened":
            editor.workspace.close(URI)
            editor.workspace.open(URI, "python", 9, before)
        elif how == "replaced":
            editor.several(FullChange(before))
        else:
            text = editor.document.text
            low, high = text.index("amount"), text.index("    if ")
            editor.change((low, high, before[before.index("value =") : before.index("    if ")]))
        await editor.time.advance(2.5)
        assert after(editor, await editor.next_edit()) is None
        editor.cursor = editor.document.text.index("        value")
        editor.type("\n")
        editor.change((editor.cursor - 1, editor.cursor, ""))
        editor.cursor = len(editor.document.text)
        editor.type("# done")
        assert "amount" not in str(after(editor, await editor.next_edit()))


async def test_an_answer_takes_no_edit_back() -> None:
    def inverse(request: CompleteRequest) -> str:
        assert request.parts.region is not None
        return request.parts.region.text.replace("amount", "value")

    async with editing(TEXT, inverse, settings=NOW) as editor:
        types_over(editor, "value", "amount")
        await editor.time.advance(90.0)  # however long ago
        assert after(editor, await editor.next_edit()) is None
