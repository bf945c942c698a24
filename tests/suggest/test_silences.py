from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.suggest.editor import URI, ScriptedModel, editing, settle

from calomel.suggest.completer import CompleterError
from calomel.suggest.edit import Answer, Suggestion
from calomel.suggest.question import Trigger
from calomel.suggest.silence import Silence, SilenceReason
from calomel.workspace.documents import Position, RangeChange
from calomel.workspace.privacy import Privacy, Verdict
from calomel.workspace.secrets import Span
from calomel.workspace.settings import Aggressiveness, SuggestSettings
from calomel.workspace.syntax import Inside, SyntaxTrees

NOW = SuggestSettings(debounce_seconds=0.0)


def reason(answer: Answer) -> str:
    assert isinstance(answer, Silence), answer
    return str(answer.reason)


def test_every_reason_has_one_plain_sentence() -> None:
    for each in SilenceReason:
        assert re.fullmatch(r"[A-Z][^.]*\.", each.message), each


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (replace(NOW, enabled=False), "off_globally"),
        (replace(NOW, languages={"python": False}), "off_language"),
        (replace(NOW, languages={"*": False}), "off_language"),
    ],
)
async def test_what_the_settings_turn_off_asks_no_model(settings: SuggestSettings, expected: str) -> None:
    async with editing("x = |\n", settings=settings) as editor:
        assert reason(await editor.inline()) == expected
        assert reason(await editor.inline(Trigger.EXPLICIT)) == expected
        assert editor.model.requests == []


async def test_commands_turn_a_language_a_file_and_everything_off_and_on_again() -> None:
    async with editing("x = |\n", settings=NOW) as editor:
        suggester = editor.suggester
        for scope, expected in (("global", "off_globally"), ("file", "off_file"), ("language", "off_language")):
            assert suggester.toggle(scope, uri=URI, language="python") is False
            assert reason(await editor.inline()) == expected
            assert suggester.toggle(scope, uri=URI, language="python") is True
        with pytest.raises(ValueError, match="missing"):
            suggester.toggle("file")
        assert isinstance(await editor.inline(), Suggestion)


async def test_snoozing_ends_by_itself() -> None:
    async with editing("x = |\n", settings=NOW) as editor:
        editor.suggester.snooze(editor.time.now + 60)
        assert reason(await editor.inline()) == "snoozed"
        assert editor.suggester.status().off == "snoozed"
        await editor.time.advance(60)
        assert isinstance(await editor.inline(), Suggestion)
        assert editor.suggester.status().off is None


class Kept(Privacy):
    def allowed(self, path: Path | None, language_id: str | None = None) -> Verdict:
        return Verdict(allowed=False, reason="secret_file:.env")


async def test_an_ignored_file_is_never_read_and_the_rule_is_named() -> None:
    async with editing("x = |\n", settings=NOW, privacy=Kept()) as editor:
        answer = await editor.inline(Trigger.EXPLICIT)
        assert reason(answer) == "ignored_path"
        assert isinstance(answer, Silence)
        assert answer.message.endswith("(secret_file:.env)")
        assert editor.model.requests == []


async def test_generated_text_is_never_read() -> None:
    async with editing("# @generated\nx = |\n", settings=NOW, privacy=Privacy()) as editor:
        assert reason(await editor.inline()) == "ignored_path"
        assert editor.model.requests == []


async def test_several_cursors_are_left_alone_until_there_is_one_again() -> None:
    async with editing("a\nb|\n", settings=NOW) as editor:
        editor.several(
            RangeChange(Position(0, 1), Position(0, 1), "x"), RangeChange(Position(1, 1), Position(1, 1), "x")
        )
        editor.cursor = 5
        assert reason(await editor.inline()) == "multi_cursor"
        editor.type(" ")
        assert isinstance(await editor.inline(), Suggestion)


async def test_the_inside_of_a_word_is_left_alone_unless_asked() -> None:
    async with editing("comp|ute\n", "X", settings=NOW) as editor:
        assert reason(await editor.inline()) == "mid_word"
        assert isinstance(await editor.inline(Trigger.EXPLICIT), Suggestion)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("unreachable", "no_model"),
        ("loading", "loading"),
        ("overloaded", "overloaded"),
        ("timeout", "timeout"),
        ("refused", "failed"),
        ("failed", "failed"),
        ("new in a later version", "failed"),
    ],
)
async def test_an_error_of_the_model_is_a_reason(code: str, expected: str) -> None:
    async with editing("x = |\n", lambda _: CompleterError(code, "The server said no."), settings=NOW) as editor:
        answer = await editor.inline()
        assert reason(answer) == expected
        assert isinstance(answer, Silence)
        assert answer.message.endswith("The server said no.")
        assert editor.suggester.status().silences == {expected: 1}


async def test_an_unforeseen_error_is_a_reason_without_the_users_text() -> None:
    async with editing("x = |\n", lambda _: KeyError("my_secret_name"), settings=NOW) as editor:
        answer = await editor.inline()
        assert reason(answer) == "failed"
        assert isinstance(answer, Silence)
        assert "my_secret_name" not in answer.message


async def test_a_mistake_of_our_own_is_a_reason_too() -> None:
    async with editing("x = |\n", settings=NOW) as editor:
        editor.workspace.situation = lambda *_: 1 / 0  # type: ignore[method-assign, assignment]
        answer = await editor.inline()
        assert reason(answer) == "failed"
        assert isinstance(answer, Silence)
        assert "ZeroDivisionError at test_silences.py" in answer.message


async def test_a_model_that_comes_back_is_used_again() -> None:
    said: list[str | CompleterError] = [CompleterError("unreachable", "Gone."), "compute(1)"]
    async with editing("x = |\n", lambda _: said.pop(0), settings=NOW) as editor:
        assert reason(await editor.inline()) == "no_model"
        assert isinstance(await editor.inline(), Suggestion)


async def test_a_model_that_does_not_answer_in_time_is_given_up() -> None:
    model = ScriptedModel(hold=True)
    async with editing("x = |\n", settings=NOW, model=model) as editor:
        assert reason(await editor.inline(wait=10.0)) == "timeout"
        assert (model.running, model.cancelled) == (0, 1)


async def test_a_question_waits_for_a_loading_model_and_not_forever() -> None:
    model = ScriptedModel(loading=True)
    async with editing("x = |\n", settings=NOW, model=model) as editor:
        asking = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        await editor.time.advance(5.0)
        assert not asking.done()
        await editor.time.advance(6.0)
        assert reason(await asking) == "loading"


async def test_what_the_model_is_not_sure_of_is_hidden_unless_asked() -> None:
    model = ScriptedModel(log_prob=-1.6)
    async with editing("x = |\n", settings=NOW, model=model) as editor:
        assert reason(await editor.inline()) == "low_confidence"
        # The same state again costs no question.
        assert reason(await editor.inline()) == "low_confidence"
        assert len(model.requests) == 1
        assert isinstance(await editor.inline(Trigger.EXPLICIT), Suggestion)


@pytest.mark.parametrize(
    ("aggressiveness", "shown"), [("quiet", False), ("balanced", False), ("eager", True), (0.1, True)]
)
async def test_the_aggressiveness_moves_the_threshold(aggressiveness: Aggressiveness, *, shown: bool) -> None:
    settings = replace(NOW, aggressiveness=aggressiveness)
    async with editing("x = |\n", settings=settings, model=ScriptedModel(log_prob=-1.6)) as editor:
        assert isinstance(await editor.inline(), Suggestion) is shown


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("x = |\n", "", "empty"),
        ("x = |\n", " \n ", "whitespace_only"),
        ("f(|, value)\n", ", value", "duplicate_of_suffix"),
        ("|\ntotal = compute(values)\n", "total = compute(values)", "repeats_below"),
        ("total = compute()\ntot|\n", "al = compute()", "repeats_above"),
        ("key = |\n", '"**********"', "secret"),
    ],
)
async def test_worthless_answers_are_hidden_with_their_reason(text: str, answer: str, expected: str) -> None:
    async with editing(text, answer, settings=NOW) as editor:
        assert reason(await editor.inline()) == expected


async def test_what_was_just_deleted_does_not_come_back() -> None:
    async with editing("x = foo|\n", "foo(1)", settings=NOW) as editor:
        editor.backspace()
        editor.backspace()
        editor.backspace()
        assert reason(await editor.inline()) == "reinserts_deleted"
        assert isinstance(await editor.inline(Trigger.EXPLICIT), Suggestion)


class Masks(Privacy):
    def spans(self, text: str) -> tuple[Span, ...]:
        return tuple((*found.span(), "password") for found in re.finditer("hunter22", text))


async def test_a_secret_is_not_seen_not_touched_and_not_suggested() -> None:
    async with editing("a = |\nkey = 'hunter22'\n", "'hunter22'", settings=NOW, privacy=Masks()) as editor:
        assert reason(await editor.inline()) == "secret"
        assert "hunter22" not in repr(editor.model.requests)
        editor.cursor = editor.document.text.index("hunter22") + 4
        editor.model.reply = lambda _: "x"
        assert reason(await editor.inline(Trigger.EXPLICIT)) == "secret"


@pytest.mark.parametrize("place", ["comment", "string"])
async def test_comments_and_strings_can_be_left_alone(place: Inside) -> None:
    class Syntax(SyntaxTrees):
        def in_comment_or_string(self, document: object, offset: int) -> Inside:
            return place

    async with editing(
        "x = |\n", settings=replace(NOW, in_comments=place != "comment", in_strings=place != "string")
    ) as editor:
        editor.workspace.syntax = Syntax()
        assert reason(await editor.inline()) == f"in_{place}"
        assert isinstance(await editor.inline(Trigger.EXPLICIT), Suggestion)


async def test_a_rejected_suggestion_does_not_come_back_before_its_line_changes() -> None:
    async with editing("x = |\ny = 1\n", "compute(1)", settings=NOW) as editor:
        first = await editor.inline()
        assert isinstance(first, Suggestion)
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
        assert isinstance(await editor.inline(), Suggestion)


async def test_rejecting_again_and_again_brings_a_pause() -> None:
    async with editing("|\n", lambda request: f"answer_{len(request.parts.prefix)}()", settings=NOW) as editor:
        for _ in range(3):
            editor.type("z ")
            answer = await editor.inline()
            assert isinstance(answer, Suggestion)
            editor.suggester.rejected(answer.id)
        editor.type("z ")
        assert reason(await editor.inline()) == "cooldown"
        assert isinstance(await editor.inline(Trigger.EXPLICIT), Suggestion)
        await editor.time.advance(6.0)
        editor.type("z ")
        assert isinstance(await editor.inline(), Suggestion)


async def test_a_document_that_changed_under_an_answer_leaves_nothing_to_show() -> None:
    model = ScriptedModel(hold=True)
    async with editing("x = |\n", settings=NOW, model=model) as editor:
        asking = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        editor.change((0, 5, "something else"))
        model.release()
        assert reason(await asking) == "stale"


async def test_status_says_how_it_went() -> None:
    async with editing("x = |\n", settings=NOW) as editor:
        first = await editor.inline()
        assert isinstance(first, Suggestion)
        status = editor.suggester.status()
        assert (status.requests, status.asked, status.cached) == (
            1,
            1,
            0,
        )
        assert status.last == {"shown": first.id}
        assert status.latency_p50 == 0.0
        editor.suggester.toggle(enabled=False)
        await editor.inline()
        status = editor.suggester.status()
        assert status.last == {"reason": "off_globally", "message": "Suggestions are turned off."}
        assert status.off == "off_globally"


async def test_after_the_end_there_is_silence() -> None:
    async with editing("x = |\n", settings=NOW) as editor:
        await editor.suggester.aclose()
        assert reason(await editor.inline()) == "closed"
