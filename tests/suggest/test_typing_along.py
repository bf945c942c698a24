from __future__ import annotations

import asyncio

import pytest
from tests.suggest.editor import URI, ScriptedModel, editing, settle

from calomel.suggest.edit import Answer, Suggestion, apply
from calomel.suggest.question import Selected, Trigger
from calomel.suggest.silence import Silence, SilenceReason


def suggestion(answer: Answer) -> Suggestion:
    assert isinstance(answer, Suggestion), answer
    return answer


def reason(answer: Answer) -> SilenceReason:
    assert isinstance(answer, Silence), answer
    assert answer.message.startswith(answer.reason.message)
    return answer.reason


async def test_text_is_suggested_at_the_cursor() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        offered = suggestion(await editor.inline())
        assert apply(editor.document.text, offered.edits) == "x = compute(1)\n"
        assert not offered.cached


async def test_typing_what_is_suggested_asks_no_model_and_keeps_the_suggestion() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        first = suggestion(await editor.inline())
        for character in "comp":
            editor.type(character)
            again = suggestion(await editor.inline())
            assert again.id == first.id
            assert again.cached
            assert apply(editor.document.text, again.edits) == "x = compute(1)\n"
        assert len(editor.model.requests) == 1


async def test_going_back_by_a_character_brings_the_longer_suggestion_back() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        await editor.inline()
        editor.type("c")
        await editor.inline()
        editor.backspace()
        assert suggestion(await editor.inline()).insert_text == "compute(1)"
        assert len(editor.model.requests) == 1


async def test_typing_something_else_asks_again() -> None:
    async with editing("x = |\n", lambda request: "y + 1" if request.parts.prefix.endswith("= ") else "eta") as editor:
        first = suggestion(await editor.inline())
        editor.type("z")
        second = suggestion(await editor.inline())
        assert second.insert_text == "eta"
        assert second.id != first.id
        assert len(editor.model.requests) == 2


async def test_a_bracket_that_the_editor_closes_keeps_the_suggestion() -> None:
    async with editing("x = f|\n", "(a, b)") as editor:
        await editor.inline()
        editor.change((5, 5, "()"))
        editor.cursor = 6
        assert suggestion(await editor.inline()).insert_text == "a, b"
        assert len(editor.model.requests) == 1


async def test_a_visible_suggestion_moves_with_text_that_comes_above() -> None:
    async with editing("a\nx = |\n", "compute(1)") as editor:
        first = suggestion(await editor.inline())
        cursor = editor.cursor
        editor.change((0, 0, "import a\n"))
        editor.cursor = cursor + len("import a\n")
        again = suggestion(await editor.inline())
        assert (again.id, again.insert_text, again.start) == (first.id, "compute(1)", editor.cursor)


async def test_an_answer_that_comes_late_is_fitted_to_what_was_typed_since() -> None:
    model = ScriptedModel(hold=True)
    async with editing("x = |\n", "compute(1)", model=model) as editor:
        first = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        await editor.time.advance(0.2)
        assert model.running == 1
        editor.type("c")
        second = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        assert reason(await first) is SilenceReason.SUPERSEDED
        model.release()
        await settle()
        # No time has passed: the answer of the first question came within the wait of the second one.
        assert suggestion(await second).insert_text == "ompute(1)"
        assert len(model.requests) == 1


async def test_what_still_runs_when_the_pause_is_over_is_cancelled() -> None:
    model = ScriptedModel(hold=True)
    async with editing("x = |\n", "compute(1)", model=model) as editor:
        first = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        await editor.time.advance(0.2)
        editor.type("c")
        second = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        await editor.time.advance(0.2)
        assert (model.cancelled, model.running, len(model.requests)) == (1, 1, 2)
        model.reply = lambda _: "ompute(1)"
        model.release()
        await settle()
        assert suggestion(await second).insert_text == "ompute(1)"
        assert reason(await first) is SilenceReason.SUPERSEDED


async def test_a_hundred_keystrokes_leave_one_question_running_and_none_behind() -> None:
    model = ScriptedModel(hold=True)
    async with editing("|\n", "nothing like it", model=model) as editor:
        before = len(asyncio.all_tasks())
        asking = []
        for number in range(100):
            editor.type("abcdefghij"[number % 10])
            asking.append(asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT)))
            await editor.time.advance(0.05 if number % 7 else 0.3)
            # The question itself, its work, the wait, and the call of the model with its timer.
            assert len(asyncio.all_tasks()) - before <= 8
        await editor.time.advance(0.3)
        model.release()
        answers = await asyncio.gather(*asking)
        assert model.most_running == 1
        assert model.cancelled == len(model.requests) - 1
        assert [reason(answer) for answer in answers[:-1]] == [SilenceReason.SUPERSEDED] * 99
        assert suggestion(answers[-1]).insert_text == "nothing like it"
        assert editor.suggester.status().silences == {"superseded": 99}


async def test_cancelling_the_question_cancels_the_model() -> None:
    model = ScriptedModel(hold=True)
    async with editing("x = |\n", model=model) as editor:
        asking = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        await editor.time.advance(0.2)
        assert model.running == 1
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await settle()
        assert (model.running, model.cancelled) == (0, 1)


async def test_an_automatic_question_waits_for_a_pause_and_an_explicit_one_does_not() -> None:
    async with editing("x = |\n") as editor:
        editor.type("c")
        assert suggestion(await editor.inline(wait=0.1)).waited == pytest.approx(0.1)
        editor.type("z")
        asking = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EXPLICIT))
        await settle()
        assert asking.done()
        assert suggestion(await asking).waited == 0.0
        assert [request.min_tokens for request in editor.model.requests] == [0, 1]


async def test_the_item_selected_in_the_popup_is_continued() -> None:
    async with editing(
        "x = os.pa|\n", lambda request: ".join(a)" if request.parts.prefix.endswith("path") else ""
    ) as editor:
        asking = asyncio.ensure_future(
            editor.suggester.inline(URI, editor.cursor, Trigger.EDIT, selected=Selected(7, 9, "path"))
        )
        await settle()
        offered = suggestion(await asking)
        assert [tuple(edit) for edit in offered.edits] == [(7, 9, "path.join(a)")]


async def test_a_visible_suggestion_that_disagrees_with_the_selected_item_is_asked_anew() -> None:
    async with editing(
        "x = os.|\n", lambda request: "()" if request.parts.prefix.endswith("getcwd") else "path"
    ) as editor:
        await editor.inline()
        asking = asyncio.ensure_future(
            editor.suggester.inline(URI, editor.cursor, Trigger.EDIT, selected=Selected(7, 7, "getcwd"))
        )
        await settle()
        assert suggestion(await asking).insert_text == "getcwd()"


async def test_an_explicit_question_with_a_visible_suggestion_keeps_it() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        first = suggestion(await editor.inline())
        assert suggestion(await editor.inline(Trigger.EXPLICIT)).id == first.id
