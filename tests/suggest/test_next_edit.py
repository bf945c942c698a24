from __future__ import annotations

import asyncio

import pytest
from tests.suggest.editor import URI, Editor, ScriptedModel, editing, settle

from calomel.suggest.completer import CompleteRequest, Kind
from calomel.suggest.edit import Answer, Suggestion, apply
from calomel.suggest.question import Diagnostic, Trigger
from calomel.suggest.silence import Silence
from calomel.workspace.settings import SuggestSettings

NOW = SuggestSettings(debounce_seconds=0.0)
FILLS: tuple[Kind, ...] = ("fill",)


def reason(answer: Answer) -> str:
    assert isinstance(answer, Silence), answer
    return str(answer.reason)


def result(editor: Editor, answer: Answer) -> str:
    assert isinstance(answer, Suggestion), answer
    return apply(editor.document.text, answer.edits)


def region(request: CompleteRequest) -> str:
    assert request.kind == "edit"
    assert request.parts.region is not None
    return request.parts.region.text


LINES = "".join(f"line_{number} = old_name\n" for number in range(20))


async def test_the_lines_around_the_cursor_are_rewritten() -> None:
    async with editing(LINES.replace("line_9", "line_9|"), lambda request: region(request).replace("line_11", "other"),
                       settings=NOW) as editor:  # fmt: skip
        editor.type("x")
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion)
        (request,) = editor.model.requests
        assert region(request).splitlines()[0] == "line_7 = old_name"
        assert region(request).splitlines()[-1] == "line_14 = old_name"
        parts = request.parts
        assert parts.region is not None
        assert parts.prefix + parts.region.text + parts.suffix == editor.document.text
        assert parts.region.text[: parts.region.cursor].endswith("line_9x")
        assert result(editor, answer) == editor.document.text.replace("line_11", "other")
        assert (len(answer.edits), answer.jump) == (1, False)


async def test_an_edit_further_away_is_announced_as_a_jump() -> None:
    async with editing(LINES.replace("line_9", "line_9|"), lambda request: region(request).replace("line_13", "other"),
                       settings=NOW) as editor:  # fmt: skip
        editor.type("x")
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion)
        assert answer.jump


async def test_the_other_edits_of_an_answer_are_offered_one_after_the_other() -> None:
    def reply(request: CompleteRequest) -> str:
        return region(request).replace("line_9y", "first").replace("line_13", "second")

    async with editing(LINES.replace("line_9", "line_9|"), reply, settings=NOW) as editor:
        editor.type("y")
        first = await editor.next_edit()
        assert isinstance(first, Suggestion)
        assert [edit.text for edit in first.edits] == ["first"]
        edit = first.edits[0]
        editor.change(edit)
        editor.suggester.accepted(first.id)
        second = await editor.next_edit()
        assert isinstance(second, Suggestion)
        assert second.cached
        assert second.id != first.id
        assert "second = old_name" in result(editor, second)
        assert len(editor.model.requests) == 1


async def test_after_an_acceptance_more_lines_are_looked_at() -> None:
    async with editing(LINES.replace("line_5", "line_5|"), lambda request: region(request).replace("line_5x", "new"),
                       settings=NOW) as editor:  # fmt: skip
        editor.type("x")
        first = await editor.next_edit()
        assert isinstance(first, Suggestion)
        editor.change(first.edits[0])
        editor.suggester.accepted(first.id)
        await editor.next_edit()
        assert [len(region(request).splitlines()) for request in editor.model.requests[:2]] == [8, 13]


async def test_a_rename_goes_on_elsewhere_in_the_file() -> None:
    text = "old_name = 1\n" + "\n" * 20 + "print(old_name)\n"

    def reply(request: CompleteRequest) -> str:
        return region(request).replace("print(old_name)", "print(new_name)")

    async with editing("|" + text, reply, settings=NOW) as editor:
        editor.change((0, 3, "new"))
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion)
        assert answer.jump
        assert result(editor, answer) == "new_name = 1\n" + "\n" * 20 + "print(new_name)\n"
        assert len(editor.model.requests) == 2


async def test_a_model_that_only_fills_in_says_so() -> None:
    async with editing("x = |\n", model=ScriptedModel(kinds=FILLS), settings=NOW) as editor:
        editor.type("1")
        assert reason(await editor.next_edit()) == "not_trained_for_edits"
        assert editor.model.requests == []


async def test_a_model_that_only_fills_in_continues_a_rename_if_it_would_write_the_new_name() -> None:
    text = "old_name = 1\n\n\n\nprint(old_name)\nlog(old_name)\n"
    said = ["new_name", "new_names"]
    async with editing("|" + text, lambda _: said.pop(), model=ScriptedModel(kinds=FILLS), settings=NOW) as editor:
        editor.change((0, 3, "new"))
        answer = await editor.next_edit()
        assert result(editor, answer) == "new_name = 1\n\n\n\nprint(old_name)\nlog(new_name)\n"
        assert [request.kind for request in editor.model.requests] == ["fill", "fill"]
        assert editor.model.requests[0].parts.prefix.endswith("print(")
        assert editor.model.requests[0].parts.suffix.startswith(")\nlog(")


async def test_diagnostics_tell_where_to_look() -> None:
    text = "x = |\n" + "\n" * 20 + "print(undefined)\n"

    def reply(request: CompleteRequest) -> str:
        return region(request).replace("undefined", "x")

    async with editing(text, reply, settings=NOW) as editor:
        editor.type("1")
        at = editor.document.text.index("undefined")
        answer = await editor.suggester.next_edit(
            URI, None, editor.cursor, diagnostics=[Diagnostic(at, at + 9, "undefined name")]
        )
        assert "print(x)" in result(editor, answer)


async def test_no_edit_without_an_edit() -> None:
    async with editing("x = |\n", settings=NOW) as editor:
        assert reason(await editor.next_edit()) == "no_recent_edit"
        editor.type("1")
        await editor.time.advance(11.0)
        assert reason(await editor.next_edit(Trigger.CURSOR)) == "no_recent_edit"
        assert editor.model.requests == []


async def test_another_version_is_stale() -> None:
    async with editing("x = |\n", settings=NOW) as editor:
        editor.type("1")
        assert reason(await editor.suggester.next_edit(URI, 1, editor.cursor)) == "stale"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ("x = 1\ny = 2\n", "no_change"),
        ("x = 1\ny  =  2\n", "whitespace_only"),
        ("x = \ny = 2\n", "deletes_typed"),
        ("", "empty"),
        ("x = 1\ny = '********'\n", "secret"),
    ],
)
async def test_worthless_rewritings_are_hidden_with_their_reason(new: str, expected: str) -> None:
    async with editing("x = |\ny = 2\n", new, settings=NOW) as editor:
        editor.type("1")
        assert reason(await editor.next_edit()) == expected


async def test_a_rewriting_that_was_cut_off_deletes_nothing() -> None:
    async with editing(LINES.replace("line_9", "line_9|"), "line_7 = old_name\n", settings=NOW) as editor:
        editor.type("x")
        assert reason(await editor.next_edit()) == "deletes_too_much"
        editor.model.reply = lambda request: region(request)[:-30]
        editor.model.finish_reason = "length"
        editor.type("y")
        assert reason(await editor.next_edit()) == "cut_off"


async def test_a_document_with_other_line_ends_keeps_them() -> None:
    async with editing("x = |\r\ny = 2\r\n", "x = 1\ny = 3\n", settings=NOW) as editor:
        editor.type("1")
        assert result(editor, await editor.next_edit()) == "x = 1\r\ny = 3\r\n"


async def test_a_rejected_edit_does_not_come_back() -> None:
    text = "x = |\ny = 2\n\nz = 3\nw = 4\n"
    async with editing(text, lambda request: region(request).replace("y = 2", "y = 3"), settings=NOW) as editor:
        editor.type("1")
        first = await editor.next_edit()
        assert isinstance(first, Suggestion)
        editor.suggester.rejected(first.id)
        assert reason(await editor.next_edit()) == "rejected_before"
        cursor = editor.cursor
        editor.change((len(editor.document), len(editor.document), "more = 1\n"))
        editor.cursor = cursor
        editor.suggester.apply_settings(editor.suggester.settings)  # empties the cache
        assert reason(await editor.next_edit()) == "rejected_before"
        editor.change((cursor - 1, cursor, "5"))
        assert isinstance(await editor.next_edit(), Suggestion)


async def test_text_and_next_edit_of_one_keystroke_do_not_disturb_each_other() -> None:
    def reply(request: CompleteRequest) -> str:
        return "23" if request.kind == "fill" else region(request).replace("y = 2", "y = 3")

    model = ScriptedModel()
    async with editing("x = |\ny = 2\n", reply, settings=NOW, model=model) as editor:
        editor.type("1")
        fill = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        edit = asyncio.ensure_future(editor.suggester.next_edit(URI, None, editor.cursor))
        await settle()
        assert isinstance(await fill, Suggestion)
        assert isinstance(await edit, Suggestion)
        assert model.most_running == 1


async def test_typing_cancels_a_next_edit_that_was_for_the_text_before() -> None:
    model = ScriptedModel(hold=True)
    async with editing("x = |\ny = 2\n", settings=NOW, model=model) as editor:
        editor.type("1")
        edit = asyncio.ensure_future(editor.suggester.next_edit(URI, None, editor.cursor))
        await settle()
        assert model.running == 1
        editor.type("2")
        fill = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        assert reason(await edit) == "superseded"
        assert (model.cancelled, model.requests[-1].kind) == (1, "fill")
        model.release()
        await fill


async def test_next_edits_can_be_turned_off_alone() -> None:
    settings = SuggestSettings(debounce_seconds=0.0, next_edit=False)
    async with editing("x = |\n", settings=settings) as editor:
        editor.type("1")
        assert reason(await editor.next_edit()) == "off_next_edit"
        editor.type(" ")
        assert isinstance(await editor.inline(), Suggestion)


async def test_the_edit_that_is_being_made_is_the_last_that_the_model_sees() -> None:
    async with editing(LINES.replace("line_9", "line_9|"), region, settings=NOW) as editor:
        editor.type("x")
        await editor.next_edit()
        request = editor.model.requests[0]
        assert [(hunk.before, hunk.after) for hunk in request.parts.edits] == [
            ("line_9 = old_name\n", "line_9x = old_name\n")
        ]
