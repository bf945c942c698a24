"""What becomes of suggestions, offered and held back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from tests.suggest.editor import NOW, URI, Editor, ScriptedModel, editing, reason, suggestion

from calomel.suggest.edit import Suggestion
from calomel.suggest.snapshot import Trigger
from calomel.workspace.documents import FullChange, Position, RangeChange


async def offered(editor: Editor, *, shown: bool = True) -> Suggestion:
    answer = suggestion(await editor.inline())
    if shown:
        editor.suggester.shown(answer.id)
    return answer


async def test_an_acceptance_reported_behind_the_text_is_told_once() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        suggestion = await offered(editor)
        await editor.time.advance(1.0)
        editor.type("compute(1)")
        editor.suggester.accepted(suggestion.id)
        editor.suggester.accepted(suggestion.id)
        assert editor.outcomes.told == [("shown", ""), ("accepted", "by_text")]
        accepted = editor.outcomes.all[-1]
        assert (accepted.length, accepted.accepted_length) == (10, 10)
        assert accepted.visible_seconds == pytest.approx(1.0)
        assert accepted.signals is not None
        assert (accepted.signals.mean_log_prob, accepted.signals.characters_inserted) == (-0.1, 10)


@pytest.mark.parametrize("command", [True, False])
async def test_an_acceptance_is_marked_in_the_diff_stream(*, command: bool) -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        suggestion = await offered(editor)
        if command:
            editor.suggester.accepted(suggestion.id)
        editor.type("compute(1)")
        assert [hunk.predicted for hunk in editor.workspace.history.open_edit()] == [True]


@pytest.mark.parametrize("form", ["whole line", "two steps", "whole document"])
async def test_an_acceptance_without_a_command_is_seen_in_any_form_of_the_text(form: str) -> None:
    async with editing("a\nx = old_name|\n", "a\nx = new_name + 1\n") as editor:
        editor.change((0, 1, "b"))
        editor.change((0, 1, "a"))
        editor.cursor = 14
        answer = suggestion(await editor.next_edit())
        editor.suggester.shown(answer.id)
        await editor.time.advance(1.0)
        if form == "whole line":
            editor.several(RangeChange(Position(1, 0), Position(2, 0), "x = new_name + 1\n"))
        elif form == "two steps":
            # What an editor does that sends each edit's smallest change, the last one first.
            editor.several(
                RangeChange(Position(1, 12), Position(1, 12), " + 1"),
                RangeChange(Position(1, 4), Position(1, 7), "new"),
            )
        else:
            editor.several(FullChange("a\nx = new_name + 1\n"))
        assert editor.document.text == "a\nx = new_name + 1\n"
        assert editor.outcomes.told == [("shown", ""), ("accepted", "by_text")]


async def test_a_late_command_wins_over_what_the_text_told() -> None:
    async with editing("x = |\n", "ab") as editor:
        suggestion = await offered(editor)
        await editor.time.advance(1.0)
        editor.type("a")
        # The client put in something else than was suggested, and says behind it that it was accepted.
        editor.type("bc")
        editor.suggester.accepted(suggestion.id)
        await editor.time.advance(1.0)
        editor.suggester.status()
        assert editor.outcomes.told == [("shown", ""), ("accepted", "by_command")]


async def test_a_partial_acceptance_is_told_with_its_growing_length() -> None:
    async with editing("x = |\n", "one two 😀 three") as editor:
        suggestion = await offered(editor)
        editor.type("one ")
        editor.suggester.partly_accepted(suggestion.id, 4)
        editor.type("two 😀")
        editor.suggester.partly_accepted(suggestion.id, 10)
        editor.suggester.partly_accepted(suggestion.id, 10)
        assert [(told.outcome, told.accepted_length) for told in editor.outcomes.all[1:]] == [
            ("partly_accepted", 4),
            ("partly_accepted", 10),
        ]
        editor.type(" three")
        editor.suggester.partly_accepted(suggestion.id, 16)
        assert (editor.outcomes.all[-1].outcome, editor.outcomes.all[-1].accepted_length) == ("accepted", 16)


async def test_ten_seconds_without_an_action_ignore_a_suggestion_that_may_still_be_accepted() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        await offered(editor)
        await editor.time.advance(10.0)
        editor.suggester.status()
        editor.type("compute(1)")
        assert editor.outcomes.told == [("shown", ""), ("ignored", "no_action"), ("accepted", "by_text")]


async def test_a_rejected_suggestion_is_told_and_closing_tells_the_rest() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        suggestion = await offered(editor)
        editor.suggester.rejected(suggestion.id, "Esc")
        assert editor.outcomes.told == [("shown", ""), ("rejected", "esc")]
        editor.type("y = ")
        await offered(editor)
        await editor.time.advance(1.0)
        outcomes = editor.outcomes
    assert outcomes.told[2:] == [("shown", ""), ("ignored", "closed")]


async def test_a_closed_document_takes_its_suggestion_along() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        await offered(editor)
        await editor.time.advance(0.3)
        editor.workspace.close(URI)
        assert editor.outcomes.told == [("shown", ""), ("ignored", "closed")]
        silent = await asyncio.ensure_future(editor.suggester.inline(URI, 0, Trigger.EDIT))
        assert not isinstance(silent, Suggestion)
        assert silent.reason == "unknown_document"


UNSURE = -2.0  # 0.135 of one token: no threshold with a name lets it through


def unsure() -> ScriptedModel:
    return ScriptedModel(log_prob=UNSURE)


async def held(editor: Editor) -> None:
    assert reason(await editor.inline()) == "low_confidence"
    await editor.time.advance(1.0)


def told(editor: Editor) -> list[tuple[str, str]]:
    editor.suggester.status()
    return editor.outcomes.told


async def test_what_is_held_back_is_told_once_with_its_reason_and_its_numbers() -> None:
    async with editing("x = |\n", "compute(1)", settings=NOW, model=unsure()) as editor:
        await held(editor)
        await held(editor)
        # The same state again costs no question.
        assert len(editor.model.requests) == 1
        assert told(editor) == [("withheld", "low_confidence")]
        only = editor.outcomes.all[0]
        assert (only.kind, only.maker, only.length, only.text) == ("fill", "canvas", 10, "compute(1)")
        assert only.probability == pytest.approx(0.1353, abs=1e-3)
        assert only.signals is not None
        assert (only.signals.mean_log_prob, only.signals.characters_inserted) == (UNSURE, 10)


async def test_what_the_user_then_writes_by_hand_would_have_been_accepted() -> None:
    async with editing("x = |\n", "ab", settings=NOW, model=unsure()) as editor:
        await held(editor)
        editor.type("a")
        editor.type("b")
        assert told(editor) == [("withheld", "low_confidence"), ("typed", "low_confidence")]
        first, second = editor.outcomes.all
        assert (second.id, second.signals) == (first.id, None)


async def test_what_is_shown_after_all_keeps_its_id() -> None:
    model = unsure()
    async with editing("x = |\n", "f(a)", settings=NOW, model=model) as editor:
        await held(editor)
        shown = suggestion(await editor.inline(Trigger.EXPLICIT))
        editor.suggester.shown(shown.id)
        await editor.time.advance(1.0)
        editor.type("f(a)")
        assert told(editor) == [("withheld", "low_confidence"), ("shown", ""), ("accepted", "by_text")]
        assert len({each.id for each in editor.outcomes.all}) == 1


async def test_the_log_says_why_in_numbers_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "calomel")
    async with editing("secret_name = |\n", "compute(1)", settings=NOW, model=unsure()) as editor:
        await held(editor)
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "withheld: low_confidence, fill by canvas, probability 0.135, threshold 0.30, 10 characters" in said
    assert "silent: fill, low_confidence" in said
    assert "secret_name" not in said
    assert "compute" not in said


async def moves_away(editor: Editor) -> None:
    editor.cursor = 9
    await editor.inline()


async def asks_anew(editor: Editor) -> None:
    editor.suggester.apply_settings(editor.suggester.settings)
    editor.model.reply = lambda _: "other(2)"
    await editor.inline(Trigger.EXPLICIT)


async def types(editor: Editor, keys: str) -> None:
    for key in keys:
        editor.type(key)
    await editor.time.advance(1.0)
    editor.suggester.status()


@pytest.mark.parametrize(
    ("seen", "does", "expected"),
    [
        pytest.param(0.1, partial(types, keys="z"), [], id="what flashes by"),
        pytest.param(0.3, partial(types, keys="z"), [("ignored", "typed_against")], id="typing against it"),
        pytest.param(1.0, partial(types, keys="ab"), [("ignored", "typed_out")], id="typing all of it"),
        pytest.param(0.3, moves_away, [("ignored", "moved_away")], id="moving away"),
        pytest.param(0.3, asks_anew, [("superseded", "")], id="a newer one"),
    ],
)
async def test_what_is_not_accepted_is_told_with_its_reason(
    seen: float, does: Callable[[Editor], Awaitable[None]], expected: list[tuple[str, str]]
) -> None:
    async with editing("x = |\ny = \n", "ab") as editor:
        await offered(editor)
        await editor.time.advance(seen)
        await does(editor)
        assert editor.outcomes.told == ([("shown", ""), *expected] if expected else [])
