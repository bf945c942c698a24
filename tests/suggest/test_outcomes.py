from __future__ import annotations

import asyncio

import pytest
from tests.suggest.editor import URI, Editor, editing

from calomel.suggest.edit import Suggestion
from calomel.suggest.question import Trigger
from calomel.workspace.documents import FullChange, Position, RangeChange


async def offered(editor: Editor, *, shown: bool = True) -> Suggestion:
    answer = await editor.inline()
    assert isinstance(answer, Suggestion), answer
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


async def test_an_acceptance_reported_before_the_text_is_told_once() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        suggestion = await offered(editor)
        editor.suggester.accepted(suggestion.id)
        editor.type("compute(1)")
        await editor.time.advance(20.0)
        await editor.inline()
        assert editor.outcomes.told[:2] == [("shown", ""), ("accepted", "by_command")]
        assert len([told for told in editor.outcomes.all if told.id == suggestion.id]) == 2


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
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion), answer
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


async def test_typing_the_whole_suggestion_by_hand_is_no_acceptance() -> None:
    async with editing("x = |\n", "ab") as editor:
        await offered(editor)
        await editor.time.advance(1.0)
        editor.type("a")
        editor.type("b")
        await editor.time.advance(1.0)
        editor.suggester.status()
        assert editor.outcomes.told == [("shown", ""), ("ignored", "typed_out")]


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


async def test_what_flashes_by_is_neither_shown_nor_ignored() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        await offered(editor)
        await editor.time.advance(0.1)
        editor.type("z")
        await editor.time.advance(1.0)
        editor.suggester.status()
        assert editor.outcomes.told == []
        assert editor.suggester.status().outcomes == {"unseen": 1}


async def test_what_the_editor_never_displayed_is_not_told() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        await offered(editor, shown=False)
        await editor.time.advance(30.0)
        editor.type("z")
        await editor.time.advance(1.0)
        editor.suggester.status()
        assert editor.outcomes.told == []


async def test_typing_against_a_suggestion_ignores_it() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        await offered(editor)
        await editor.time.advance(0.3)
        editor.type("z")
        await editor.time.advance(1.0)
        editor.suggester.status()
        assert editor.outcomes.told == [("shown", ""), ("ignored", "typed_against")]


async def test_ten_seconds_without_an_action_ignore_a_suggestion_that_may_still_be_accepted() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        await offered(editor)
        await editor.time.advance(10.0)
        editor.suggester.status()
        editor.type("compute(1)")
        assert editor.outcomes.told == [("shown", ""), ("ignored", "no_action"), ("accepted", "by_text")]


async def test_moving_away_ignores_a_suggestion() -> None:
    async with editing("x = |\ny = \n", "compute(1)") as editor:
        await offered(editor)
        await editor.time.advance(0.3)
        editor.cursor = 9
        await editor.inline()
        assert editor.outcomes.told == [("shown", ""), ("ignored", "moved_away")]


async def test_the_editors_own_reason_is_kept_as_a_short_name() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        suggestion = await offered(editor)
        await editor.time.advance(0.3)
        editor.suggester.ignored(suggestion.id, 'Lost focus: "password = hunter2" and much more than that')
        assert editor.outcomes.told == [("shown", ""), ("ignored", "lost_focus_password_hunter2_and")]


async def test_a_newer_suggestion_supersedes_the_visible_one() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        await offered(editor)
        await editor.time.advance(0.3)
        editor.suggester.apply_settings(editor.suggester.settings)
        editor.model.reply = lambda _: "other(2)"
        await editor.inline(Trigger.EXPLICIT)
        assert editor.outcomes.told == [("shown", ""), ("superseded", "")]


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


async def test_unknown_ids_are_tolerated() -> None:
    async with editing("x = |\n") as editor:
        suggester = editor.suggester
        suggester.shown("?")
        suggester.accepted("?")
        suggester.partly_accepted("?", 3)
        suggester.rejected("?", None)
        suggester.ignored("?", "gone")
        assert editor.outcomes.told == []


async def test_a_closed_document_takes_its_suggestion_along() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        await offered(editor)
        await editor.time.advance(0.3)
        editor.workspace.close(URI)
        assert editor.outcomes.told == [("shown", ""), ("ignored", "closed")]
        silent = await asyncio.ensure_future(editor.suggester.inline(URI, 0, Trigger.EDIT))
        assert not isinstance(silent, Suggestion)
        assert silent.reason == "unknown_document"
