"""Questions of an editor, as they are typed: when a model is asked, and what becomes of its answer."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import NoReturn

import pytest
from tests.suggest.editor import NOW, URI, ScriptedModel, editing, reason, settle, suggestion

from calomel.code.trees import error_count
from calomel.infer.completer import Candidate, CompleteRequest
from calomel.selectivity.calibrator import Calibrator, KindCalibrator
from calomel.selectivity.record import SourceClass
from calomel.suggest.edit import Suggestion
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.snapshot import Trigger
from calomel.workspace.privacy import Privacy
from calomel.workspace.syntax import SyntaxTrees


async def test_typing_what_is_suggested_asks_no_model_and_keeps_the_suggestion() -> None:
    async with editing("x = |\n", "compute(1)") as editor:
        first = suggestion(await editor.inline())
        for character in "comp":
            editor.type(character)
            again = suggestion(await editor.inline())
            assert again.id == first.id
            assert again.cached
            assert editor.after(again) == "x = compute(1)\n"
        assert len(editor.model.requests) == 1


async def test_a_bracket_that_the_editor_closes_keeps_the_suggestion() -> None:
    async with editing("x = f|\n", "(a, b)") as editor:
        await editor.inline()
        editor.change((5, 5, "()"))
        editor.cursor = 6
        assert suggestion(await editor.inline()).edits[-1].text == "a, b"
        assert len(editor.model.requests) == 1


async def test_an_answer_that_comes_late_is_fitted_to_what_was_typed_since() -> None:
    hold = asyncio.Event()
    model = ScriptedModel(hold=hold)
    async with editing("x = |\n", "compute(1)", model=model) as editor:
        first = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        await editor.time.advance(0.2)
        assert model.running == 1
        editor.type("c")
        second = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        assert reason(await first) is SilenceReason.SUPERSEDED
        hold.set()
        await settle()
        # No time has passed: the answer of the first question came within the wait of the second one.
        assert suggestion(await second).edits[-1].text == "ompute(1)"
        assert len(model.requests) == 1


async def test_a_hundred_keystrokes_leave_one_question_running_and_none_behind() -> None:
    hold = asyncio.Event()
    model = ScriptedModel(hold=hold)
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
        hold.set()
        answers = await asyncio.gather(*asking)
        assert model.most_running == 1
        assert model.cancelled == len(model.requests) - 1
        assert [reason(answer) for answer in answers[:-1]] == [SilenceReason.SUPERSEDED] * 99
        assert suggestion(answers[-1]).edits[-1].text == "nothing like it"
        assert editor.suggester.status().silences == {"superseded": 99}


async def test_text_of_one_key_is_given_only_on_request() -> None:
    async with editing("total = sum(values|\n", ")") as editor:
        assert reason(await editor.inline()) == "saves_nothing"
        assert suggestion(await editor.inline(Trigger.EXPLICIT)).edits[0].text == ")"


async def test_of_what_is_typed_along_the_last_key_stays_and_does_not_come_anew() -> None:
    async with editing("x = |\n", "ab") as editor:
        shown = suggestion(await editor.inline())
        editor.type("a")
        assert suggestion(await editor.inline()).id == shown.id
    hold = asyncio.Event()
    async with editing("x = |\n", "ab", model=ScriptedModel(hold=hold)) as editor:
        first = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await editor.time.advance(1.0)
        editor.type("a")
        second = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        hold.set()
        assert (reason(await first), reason(await second)) == ("superseded", "saves_nothing")


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


async def test_the_inside_of_a_word_is_left_alone_unless_asked() -> None:
    async with editing("comp|ute\n", "X", settings=NOW) as editor:
        assert reason(await editor.inline()) == "mid_word"
        assert suggestion(await editor.inline(Trigger.EXPLICIT))


async def test_an_unforeseen_error_is_a_reason_without_the_users_text() -> None:
    def failing(*_: object) -> NoReturn:
        raise KeyError("my_secret_name")

    async with editing("x = |\n", failing, settings=NOW) as editor:
        for _ in range(2):
            answer = await editor.inline()
            assert reason(answer) == "failed"
            assert isinstance(answer, Silence)
            assert "KeyError at test_asking.py" in answer.message
            assert "my_secret_name" not in answer.message
            # The next mistake is one of our own.
            editor.workspace.situation = failing  # type: ignore[method-assign, assignment]


async def test_a_model_that_does_not_answer_in_time_is_given_up() -> None:
    model = ScriptedModel(hold=asyncio.Event())
    async with editing("x = |\n", settings=NOW, model=model) as editor:
        assert reason(await editor.inline(wait=10.0)) == "timeout"
        assert (model.running, model.cancelled) == (0, 1)


async def test_a_question_waits_for_a_loading_model_and_not_forever() -> None:
    model = ScriptedModel(loading=asyncio.Event())
    async with editing("x = |\n", settings=NOW, model=model) as editor:
        asking = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        await editor.time.advance(5.0)
        assert not asking.done()
        await editor.time.advance(6.0)
        assert reason(await asking) == "loading"


async def test_a_text_that_would_not_be_shown_is_not_written_to_its_end_unless_asked() -> None:
    def given_up(request: CompleteRequest) -> tuple[Candidate, ...]:
        whole = Candidate("computed", (-4.0,))
        return (whole if request.floor is None else Candidate("", finish_reason="unlikely"),)

    async with editing("x = |\n", given_up, settings=NOW) as editor:
        await editor.inline()
        fill = KindCalibrator({}, 3.0, floors={"balanced": -3.5})
        known = editor.suggester.filter.known
        known["fill"] = replace(known["fill"], calibrator=Calibrator({"fill": fill}))
        editor.type("c")
        assert reason(await editor.inline()) == "low_confidence"
        assert suggestion(await editor.inline(Trigger.EXPLICIT))
        editor.suggester.apply_settings(replace(NOW, aggressiveness=0.1))
        assert suggestion(await editor.inline())
        assert [request.floor for request in editor.model.requests[1:]] == [-3.5, None, None]


async def test_what_was_just_deleted_does_not_come_back() -> None:
    async with editing("x = foo|\n", "foo(1)", settings=NOW) as editor:
        editor.backspace()
        editor.backspace()
        editor.backspace()
        assert reason(await editor.inline()) == "reinserts_deleted"
        assert suggestion(await editor.inline(Trigger.EXPLICIT))


@pytest.mark.parametrize("source", ["small", "fim"])
async def test_what_was_accepted_and_undone_does_not_return(source: SourceClass) -> None:
    async with editing("total = 1\nx = |\n", "total + 2", settings=NOW) as editor:
        editor.model.source = source
        found, start = suggestion(await editor.inline()), editor.cursor
        editor.change((start, start, "total + 2"))
        editor.suggester.accepted(found.id)
        editor.change((start, start + len("total + 2"), ""))
        assert reason(await editor.inline()) == "rejected_before"
        await editor.time.advance(120.0)
        assert reason(await editor.inline()) == "rejected_before"
        assert suggestion(await editor.inline(Trigger.EXPLICIT))


async def test_a_secret_is_not_seen_not_touched_and_not_suggested() -> None:
    secret = "hunter2Q7zP1mX9kL2v"
    async with editing(f"a = |\npassword = '{secret}'\n", f"'{secret}'", settings=NOW, privacy=Privacy()) as editor:
        assert reason(await editor.inline()) == "secret"
        assert secret not in repr([each.parts for each in editor.model.requests])
        # It is not kept for the record either.
        await editor.time.advance(1.0)
        editor.suggester.status()
        assert editor.outcomes.all == []
        editor.cursor = editor.document.text.index(secret) + 4
        editor.model.reply = lambda _: "x"
        assert reason(await editor.inline(Trigger.EXPLICIT)) == "secret"


@pytest.mark.parametrize(("place", "text"), [("comment", "x = 1  # y|\n"), ("string", "x = 'y|'\n")])
async def test_comments_and_strings_can_be_left_alone(place: str, text: str) -> None:
    wanted = replace(NOW, in_comments=place != "comment", in_strings=place != "string")
    async with editing(text, " and z", settings=wanted) as editor:
        editor.workspace.syntax = SyntaxTrees(parse_seconds=60.0)
        assert reason(await editor.inline()) == f"in_{place}"
        assert suggestion(await editor.inline(Trigger.EXPLICIT))


async def test_a_rejected_suggestion_does_not_come_back_before_its_line_changes() -> None:
    async with editing("x = |\ny = 1\n", "compute(1)", settings=NOW) as editor:
        first = suggestion(await editor.inline())
        editor.suggester.rejected(first.id)
        assert reason(await editor.inline()) == "rejected_before"
        editor.type("comp")
        editor.model.reply = lambda _: "ute(1)"
        assert reason(await editor.inline()) == "rejected_before"
        # Far away text may change as it likes.
        cursor = editor.cursor
        editor.change((len(editor.document), len(editor.document), "z = 3\n\nw = 5\n"))
        editor.cursor = cursor
        assert reason(await editor.inline()) == "rejected_before"
        editor.change((0, 1, "result"))
        editor.cursor = cursor + 5
        assert suggestion(await editor.inline())


async def test_rejecting_again_and_again_brings_a_pause() -> None:
    async with editing("|\n", lambda request: f"answer_{len(request.parts.prefix)}()", settings=NOW) as editor:
        for _ in range(3):
            editor.type("z ")
            answer = suggestion(await editor.inline())
            editor.suggester.rejected(answer.id)
        editor.type("z ")
        assert reason(await editor.inline()) == "cooldown"
        assert suggestion(await editor.inline(Trigger.EXPLICIT))
        await editor.time.advance(6.0)
        editor.type("z ")
        assert suggestion(await editor.inline())


async def test_a_document_that_changed_under_an_answer_leaves_nothing_to_show() -> None:
    hold = asyncio.Event()
    model = ScriptedModel(hold=hold)
    async with editing("x = |\n", settings=NOW, model=model) as editor:
        asking = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        editor.change((0, 5, "something else"))
        hold.set()
        assert reason(await asking) == "stale"


async def test_a_change_while_another_question_has_the_model_is_not_missed() -> None:
    hold = asyncio.Event()
    async with editing("x = |\n", "value()", settings=NOW, model=ScriptedModel(hold=hold)) as editor:
        editor.type("a")
        first = asyncio.ensure_future(editor.suggester.next_edit(URI, None, editor.cursor))
        await settle()
        second = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        assert len(editor.model.requests) == 1
        editor.change((0, 0, "# what is new\n"))
        hold.set()
        await first
        assert reason(await second) == "stale"
        # What is cached is of the text as it is.
        editor.cursor = editor.document.text.index("a\n") + 1
        await editor.inline()
        assert "# what is new" in editor.model.requests[-1].parts.prefix


async def test_a_change_in_the_pause_before_a_question_ends_it() -> None:
    async with editing("x = |\n", "value()") as editor:
        editor.type("a")
        asking = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        editor.change((0, 0, "# what is new\n"))
        await editor.time.advance(1.2)
        assert reason(await asking) == "stale"
        assert editor.model.requests == []


async def test_a_line_of_blanks_behind_the_cursor_takes_no_longer_than_a_person_waits() -> None:
    blanks, lines = " " * 2000, "pass\n" * 20
    async with editing(f"x = |{blanks}y\n{lines}", "value()", settings=NOW) as editor:
        began = time.process_time()
        await editor.inline()
        assert time.process_time() - began <= 3.0


@pytest.mark.parametrize(
    ("text", "says", "shown"),
    [
        ("class A:\n    def f(self):\n        self.owner = |\n", "= None", False),
        ("class A:\n    def f(self):\n        self.owner = |\n", "None", True),
        ("x = 1\ny = |\n", "(x + 1", False),
        ("x = 1\ny = f(|)\n", "x]", False),
        ("x = 1\ny = f(|)\n", "x, 1", True),
        ("def f(a):\n    if |\n", "a:", True),
        ("def f(a):\n    return a +|\n", " * 2", False),
        ("def f(a):\n    return a +|\n", " 2", True),
        ("|\n", "def f(a):", True),
    ],
)
@pytest.mark.parametrize("source", ["small", "fim", "edits", "hosted"])
async def test_what_cannot_be_right_is_not_shown_to_who_asks_either(
    text: str, says: str, source: SourceClass, *, shown: bool
) -> None:
    async with editing(text, says, settings=NOW, model=ScriptedModel(source=source, log_prob=-3.0)) as editor:
        editor.workspace.syntax = SyntaxTrees(parse_seconds=60.0)
        answer = await editor.inline(Trigger.EXPLICIT)
        if shown or isinstance(answer, Suggestion):
            assert (error_count(editor.after(answer), "python", 60.0) or 0) <= says.endswith(
                ":"
            )  # whose body is missing
        else:
            assert answer.message


@pytest.mark.parametrize(
    ("text", "says", "shown"),
    [
        ("/** The orders that|\n */\nf();\n", " */", False),
        ("/**\n * The orders that|\n */\nf();\n", "} >", False),
        ("/**\n * The orders (of a|\n */\nf();\n", " day)", True),
        ("/** The orders.|\nf();\n", " */", True),
        ("/**\n * The orders.\n|\nf();\n", " */", True),
    ],
)
async def test_a_small_model_ends_no_comment_within_a_sentence(text: str, says: str, *, shown: bool) -> None:
    async with editing("|", says, settings=NOW, model=ScriptedModel(log_prob=-0.01)) as editor:
        editor.workspace.syntax = SyntaxTrees(parse_seconds=60.0)
        editor.open(text, "javascript")
        assert isinstance(await editor.inline(), Suggestion) is shown
