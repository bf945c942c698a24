from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.suggest.editor import URI, Editor, ScriptedModel, editing

from calomel.suggest.completer import CompleteRequest
from calomel.suggest.edit import Planned, Suggestion, TextEdit, plan
from calomel.suggest.offers import Place
from calomel.suggest.question import Trigger
from calomel.suggest.silence import Silence
from calomel.workspace.documents import TextChange
from calomel.workspace.history import Origin
from calomel.workspace.settings import SuggestSettings

NOW = SuggestSettings(debounce_seconds=0.0)
UNSURE = -2.0  # 0.135 of one token: no threshold with a name lets it through


def unsure() -> ScriptedModel:
    return ScriptedModel(log_prob=UNSURE)


async def held(editor: Editor) -> None:
    answer = await editor.inline()
    assert isinstance(answer, Silence), answer
    assert answer.reason == "low_confidence"
    await editor.time.advance(1.0)


def told(editor: Editor) -> list[tuple[str, str]]:
    editor.suggester.status()
    return editor.outcomes.told


async def test_what_is_held_back_is_told_once_with_its_reason_and_its_numbers() -> None:
    async with editing("x = |\n", "compute(1)", settings=NOW, model=unsure()) as editor:
        await held(editor)
        await held(editor)
        assert told(editor) == [("withheld", "low_confidence")]
        only = editor.outcomes.all[0]
        assert (only.kind, only.maker, only.length, only.text) == ("fill", "canvas", 10, "compute(1)")
        assert only.probability == pytest.approx(0.1353, abs=1e-3)
        assert only.signals is not None
        assert (only.signals.mean_log_prob, only.signals.characters_inserted) == (UNSURE, 10)
        assert only.request is not None


async def test_what_the_user_then_writes_by_hand_would_have_been_accepted() -> None:
    async with editing("x = |\n", "ab", settings=NOW, model=unsure()) as editor:
        await held(editor)
        editor.type("a")
        editor.type("b")
        assert told(editor) == [("withheld", "low_confidence"), ("typed", "low_confidence")]
        first, second = editor.outcomes.all
        assert (second.id, second.signals, second.request) == (first.id, None, None)


async def test_typing_along_keeps_it_the_same_suggestion() -> None:
    text = "compute(1)"

    def rest(request: CompleteRequest) -> str:
        return text[len(request.parts.prefix) - len("x = ") :]

    async with editing("x = |\n", rest, settings=NOW, model=unsure()) as editor:
        for letter in text:
            await held(editor)
            editor.type(letter)
        assert told(editor) == [("withheld", "low_confidence"), ("typed", "low_confidence")]


async def test_detours_are_the_users_own_typing_too() -> None:
    async with editing("x = |\n", "f(a)", settings=NOW, model=unsure()) as editor:
        await held(editor)
        editor.type("g")
        editor.backspace()
        editor.type("f")
        # Editors close brackets by themselves.
        editor.change((editor.cursor, editor.cursor, "()"))
        editor.cursor -= 1
        editor.type("a")
        assert editor.text == "x = f(a|)\n"
        assert told(editor) == [("withheld", "low_confidence"), ("typed", "low_confidence")]


@pytest.mark.parametrize(
    "write",
    [
        lambda editor: editor.type("await f(a)"),
        lambda editor: editor.change((0, 0, "f(a)\n")),
        lambda editor: editor.type("f(b)"),
    ],
    ids=["behind something else", "elsewhere", "something like it"],
)
async def test_what_is_not_written_at_its_place_was_not_wanted(write: Any) -> None:
    async with editing("x = |\n", "f(a)", settings=NOW, model=unsure()) as editor:
        await held(editor)
        write(editor)
        assert told(editor) == [("withheld", "low_confidence")]


async def test_it_is_followed_through_changes_elsewhere() -> None:
    async with editing("a\nx = |\n", "f(a)", settings=NOW, model=unsure()) as editor:
        await held(editor)
        editor.change((0, 1, "import os\n"))
        editor.cursor = len("import os\n\nx = ")
        editor.type("f(a)")
        assert told(editor)[-1] == ("typed", "low_confidence")


async def test_after_half_a_minute_and_forty_keystrokes_it_is_followed_no_longer() -> None:
    for seconds, keys, expected in ((60.0, 10, "typed"), (5.0, 45, "typed"), (60.0, 45, "withheld")):
        async with editing("|\nx = \n", "f(a)", settings=NOW, model=unsure()) as editor:
            editor.cursor = len(editor.document.text) - 1
            await held(editor)
            place = editor.cursor
            editor.cursor = 0
            for _ in range(keys):
                editor.type("k")
            await editor.time.advance(seconds)
            editor.suggester.status()
            editor.cursor = place + keys
            editor.type("f(a)")
            assert told(editor)[-1][0] == expected, (seconds, keys)


async def test_what_would_have_been_gone_before_anybody_noticed_is_not_told() -> None:
    async with editing("x = |\n", "f(a)", settings=NOW, model=unsure()) as editor:
        assert isinstance(await editor.inline(), Silence)
        editor.type("z")
        await editor.time.advance(1.0)
        assert told(editor) == []


async def test_what_another_suggestion_puts_there_is_not_the_users_typing() -> None:
    model = unsure()
    async with editing("x = |\n", "f(a)", settings=NOW, model=model) as editor:
        await held(editor)
        model.log_prob = -0.1
        model.reply = lambda _: "f(a) + 1"
        shown = await editor.inline(Trigger.EXPLICIT)
        assert isinstance(shown, Suggestion)
        editor.suggester.shown(shown.id)
        await editor.time.advance(1.0)
        editor.suggester.accepted(shown.id)
        editor.type("f(a) + 1")
        assert told(editor) == [("withheld", "low_confidence"), ("shown", ""), ("accepted", "by_command")]


async def test_what_is_shown_after_all_keeps_its_id() -> None:
    model = unsure()
    async with editing("x = |\n", "f(a)", settings=NOW, model=model) as editor:
        await held(editor)
        shown = await editor.inline(Trigger.EXPLICIT)
        assert isinstance(shown, Suggestion)
        editor.suggester.shown(shown.id)
        await editor.time.advance(1.0)
        editor.type("f(a)")
        assert told(editor) == [("withheld", "low_confidence"), ("shown", ""), ("accepted", "by_text")]
        assert len({each.id for each in editor.outcomes.all}) == 1


async def test_a_held_back_edit_is_followed_in_every_form_of_the_text() -> None:
    def reply(request: CompleteRequest) -> str:
        return "a = max\nb = max\n" if request.kind == "edit" else ""

    async with editing("a = old|\nb = old\n", reply, settings=NOW, model=unsure()) as editor:
        editor.change((0, 1, "b"))
        editor.change((0, 1, "a"))
        answer = await editor.next_edit()
        assert isinstance(answer, Silence)
        await editor.time.advance(1.0)
        assert told(editor) == [("withheld", "low_confidence")]
        editor.change((12, 15, ""))
        editor.type("max")
        assert told(editor) == [("withheld", "low_confidence")]
        editor.change((0, 7, "a = max"))
        assert told(editor)[-1] == ("typed", "low_confidence")


async def test_the_status_counts_what_was_held_back_and_has_the_last_one() -> None:
    settings = SuggestSettings(debounce_seconds=0.0, aggressiveness_by_language={"python": 0.4})
    async with editing("x = |\n", "f(a)", settings=settings, model=unsure()) as editor:
        assert editor.suggester.status().withheld["last"] is None
        await held(editor)
        editor.type("f(a)")
        report = editor.suggester.status().withheld
        assert (report["by_reason"], report["by_maker"]) == ({"low_confidence": 1}, {"canvas": 1})
        assert report["typed"] == {"low_confidence": 1}
        assert (report["last"]["reason"], report["last"]["threshold"]) == ("low_confidence", 0.4)
        assert report["last"]["probability"] == pytest.approx(0.1353, abs=1e-3)


async def test_a_language_has_its_own_threshold_at_once() -> None:
    async with editing("x = |\n", "f(a)", settings=NOW, model=unsure()) as editor:
        await held(editor)
        editor.suggester.apply_settings(
            SuggestSettings(debounce_seconds=0.0, aggressiveness_by_language={"python": 0.1})
        )
        assert isinstance(await editor.inline(), Suggestion)


async def test_the_log_says_why_in_numbers_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "calomel")
    async with editing("secret_name = |\n", "compute(1)", settings=NOW, model=unsure()) as editor:
        await held(editor)
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "withheld: low_confidence, fill by canvas, probability 0.135, threshold 0.30, 10 characters" in said
    assert "silent: fill, low_confidence" in said
    assert "secret_name" not in said
    assert "compute" not in said


async def test_few_are_followed_at_once() -> None:
    async with editing("|\n", lambda request: f"f{len(request.parts.suffix)}", settings=NOW, model=unsure()) as editor:
        editor.change((0, 0, "\n" * 40))
        for row in range(40):
            editor.cursor = row
            await editor.inline()
            await editor.time.advance(1.0)
        assert len([each for each in told(editor) if each[0] == "withheld"]) == 40
        assert len(editor.suggester._session.ledger.held_back._followed) == 16


TEXTS = st.text("ab(\n", max_size=8)


@given(before=TEXTS, text=TEXTS, after=TEXTS, wanted=TEXTS, steps=st.lists(st.tuples(st.integers(0, 30), TEXTS)))
def test_a_place_knows_what_the_text_holds_there(
    before: str, text: str, after: str, wanted: str, steps: list[tuple[int, str]]
) -> None:
    whole = before + text + after
    edits = plan(whole, [TextEdit(len(before), len(before) + len(text), wanted)])
    if not edits:
        return
    place = Place.of(whole, edits)
    for at, inserted in steps:
        start = at % (len(whole) + 1)
        end = min(len(whole), start + at // 5)
        change = TextChange(start, end, inserted, whole[start:end], 0, 0, 0, 0)
        place.changed(change)
        whole = whole[:start] + inserted + whole[end:]
        assert whole[place.start : place.start + len(place.now)] == place.now


def test_two_places_that_want_the_same_are_one() -> None:
    text = "x = foo\n"
    typed_along = Place(4, "foo", "foo(x)", inserts=True)
    assert typed_along.same(Place.of(text, [Planned(7, 7, "(x)", "")]), text)
    assert not typed_along.same(Place.of(text, [Planned(7, 7, "(y)", "")]), text)


async def test_an_undo_is_no_typing() -> None:
    async with editing("x = |\n", "f(a)", settings=NOW, model=unsure()) as editor:
        editor.type("f(a)")
        editor.backspace(4)
        await held(editor)
        editor.type("f(a)")
        assert editor.workspace.history.latest(URI) in {Origin.REDO, Origin.UNDO}
        assert told(editor) == [("withheld", "low_confidence")]
