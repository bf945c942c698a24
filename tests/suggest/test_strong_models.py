"""Models that were trained on edits: one answer is one change, doubts are evidence, and outcomes are learned from."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.suggest.editor import Editor, ScriptedModel, editing

from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest
from calomel.prompts.parts import PromptParts, RegionBounds
from calomel.selectivity.calibrator import THRESHOLDS, Subject
from calomel.selectivity.record import Records, Source, SourceClass
from calomel.suggest.candidates import region_parts
from calomel.suggest.edit import Answer, Suggestion
from calomel.suggest.silence import Silence
from calomel.suggest.snapshot import Trigger
from calomel.workspace.edits import apply
from calomel.workspace.settings import SuggestSettings

WIDE = RegionBounds(above=40, below=40)
LINES = "".join(f"value_{number} = {number}\n" for number in range(40))


def rewriting(*changes: tuple[str, str], source: SourceClass = "edits") -> ScriptedModel:
    """A model that makes these changes wherever it finds them, and proposes nothing at the cursor."""

    def reply(request: CompleteRequest) -> tuple[Candidate, ...]:
        if request.parts.region is None:
            return ()
        text = request.parts.region.text
        for old, new in changes:
            text = text.replace(old, new)
        return (Candidate(text),)

    return Strong(reply, source=source, region=WIDE)


class Strong(ScriptedModel):
    """Tells no likelihoods."""

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        answer = await super().complete(request)
        return CompleteAnswer(answer.candidates, model="scripted", judged=False)


def accept(editor: Editor, answer: Answer) -> None:
    assert isinstance(answer, Suggestion)
    editor.suggester.shown(answer.id)
    by = 0
    for start, end, text in answer.edits:
        editor.change((start + by, end + by, text))
        by += len(text) - (end - start)
    editor.suggester.accepted(answer.id)


async def test_what_follows_from_one_answer_comes_without_another_question() -> None:
    model = rewriting(("value_3 = 3\n", "three = 3\n"), ("value_15 = 15\n", "fifteen = 15\n"), ("value_30", "thirty"))
    async with editing(f"|{LINES}", model.reply, model=model) as editor:
        editor.type("x = 1\n")
        texts, places = [], []
        for _ in range(3):
            answer = await editor.next_edit()
            assert isinstance(answer, Suggestion)
            texts.append("".join(edit.text for edit in answer.edits))
            places.append((answer.index, answer.total))
            accept(editor, answer)
        assert (texts, places) == (["three", "fifteen", "thirty"], [(1, 3), (2, 3), (3, 3)])
        assert sum(request.kind == "edit" for request in model.requests) == 1


async def test_what_a_dismissed_suggestion_would_go_on_with_does_not_come_either() -> None:
    model = rewriting(("value_3 = 3\n", "three = 3\n"), ("value_15 = 15\n", "fifteen = 15\n"))
    async with editing(f"|{LINES}", model.reply, model=model) as editor:
        editor.type("x = 1\n")
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion)
        editor.suggester.rejected(answer.id, "escape")
        assert isinstance(await editor.next_edit(), Silence)
        asked = await editor.next_edit(Trigger.EXPLICIT)
        assert isinstance(asked, Suggestion)
        assert asked.edits == answer.edits


async def test_a_client_may_do_all_of_an_answer_at_once() -> None:
    model = rewriting(("value_3 = 3\n", "three = 3\n"), ("value_15 = 15\n", "fifteen = 15\n"))
    async with editing(f"|{LINES}", model.reply, model=model) as editor:
        editor.type("x = 1\n")
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion)
        editor.suggester.shown(answer.id)
        every = sorted([*answer.edits, *(edit for edits in answer.rest for edit in edits)], reverse=True)
        wanted = apply(editor.document.text, sorted(every))
        for edit in every:
            editor.change(edit)
        editor.suggester.accepted(answer.id)
        assert editor.document.text == wanted
        assert ("accepted", "by_text") in editor.outcomes.told
        assert not isinstance(await editor.next_edit(), Suggestion)


async def test_what_follows_the_visible_edit_does_not_repeat_it_while_the_user_types_at_another_one() -> None:
    model = rewriting(("value_3 = 3\n", "three = 3\n"), ("value_15 = 15\n", "fifteen = 15\n"))
    async with editing(f"|{LINES}", model.reply, model=model) as editor:
        editor.type("x = 1\n")
        first = await editor.next_edit()
        assert isinstance(first, Suggestion)
        row = editor.document.text.index("value_15")
        editor.change((row, row + len("value_15"), "fif"))
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion)
        assert answer.id == first.id
        every = sorted([*answer.edits, *(edit for edits in answer.rest for edit in edits)])
        wanted = f"x = 1\n{LINES}".replace("value_3 = 3", "three = 3").replace("value_15", "fifteen")
        assert apply(editor.document.text, every) == wanted


@pytest.mark.parametrize(("source", "shown"), [("edits", True), ("hosted", True), ("small", False), ("fim", False)])
async def test_a_name_that_the_file_has_not_is_proof_against_a_small_model_alone(
    source: SourceClass, *, shown: bool
) -> None:
    model = rewriting(("value_3 = 3\n", "value_3 = measured_elsewhere\n"), source=source)
    async with editing(f"|{LINES}", model.reply, model=model) as editor:
        editor.type("x = 1\n")
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion) is shown
        if source == "small":
            assert isinstance(answer, Silence)
            assert answer.reason == "unknown_name"


@pytest.mark.parametrize("level", ["quiet", "balanced", "eager"])
async def test_a_trained_model_speaks_at_every_level_where_nothing_speaks_against_it(level: str) -> None:
    model = rewriting(("value_3 = 3\n", "value_3 = value_2\n"))
    settings = SuggestSettings(debounce_seconds=0.0, aggressiveness=level)  # type: ignore[arg-type]
    async with editing(f"|{LINES}", model.reply, model=model, settings=settings) as editor:
        editor.type("x = 1\n")
        assert isinstance(await editor.next_edit(), Suggestion)


async def test_a_model_that_is_dismissed_again_and_again_becomes_quiet() -> None:
    shown = []
    model = rewriting(*((f"value_{number} = {number}\n", f"value_{number} = -{number}\n") for number in range(8)))
    settings = SuggestSettings(debounce_seconds=0.0, aggressiveness="quiet")
    async with editing(f"|{LINES}", model.reply, model=model, settings=settings) as editor:
        for turn in range(14):
            editor.type(f"x = {turn}\n")
            editor.time.now += 60.0
            answer = await editor.next_edit()
            shown.append(isinstance(answer, Suggestion))
            if isinstance(answer, Suggestion):
                editor.suggester.shown(answer.id)
                editor.suggester.rejected(answer.id, "escape")
    assert shown[0]
    assert not shown[-1]


async def test_a_rule_gives_way_to_a_trained_model_that_writes_something_else() -> None:
    text = "def f(size):\n    return size\n\n\ndef g(size):\n    return |size\n\n\nprint(f(1), g(2))\n"
    model = rewriting(("print(f(1), g(2))", "print(f(3), g(4))"))
    async with editing(text, model.reply, model=model) as editor:
        editor.change((editor.document.text.rindex("size"), editor.document.text.rindex("size") + 4, "width"))
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion)
        assert "f(3), g(4)" in editor.after(answer)


@given(
    text=st.text("ab\n", max_size=80),
    places=st.tuples(st.integers(0, 80), st.integers(0, 80), st.integers(0, 80)),
    window=st.tuples(st.integers(0, 80), st.integers(0, 80)),
)
def test_a_region_is_always_inside_of_the_window(
    text: str, places: tuple[int, int, int], window: tuple[int, int]
) -> None:
    start, end, offset = (min(place, len(text)) for place in (*sorted(places[:2]), places[2]))
    before, after = text[max(0, offset - window[0]) : offset], text[offset : offset + window[1]]
    found = region_parts(PromptParts(prefix=before, suffix=after), text, offset, start, end, offset)
    assert found.region is not None
    assert found.region.text == text[start:end]
    whole = found.prefix + found.region.text + found.suffix
    assert whole in text
    assert before + after in whole
    assert (found.region.cursor is not None) == (start <= offset <= end)


RULE, MODEL = Source("rename", "rule"), Source("zeta-2", "edits", "zeta-2")
EDIT = Subject("edit", signals={"characters_inserted": 12, "known_words": 0.5})


def test_a_record_moves_with_outcomes_and_no_further_than_they_say() -> None:
    records = Records()
    first = records.probability(MODEL, EDIT)
    for _ in range(30):
        records.learn(MODEL, EDIT, (), records.probability(MODEL, EDIT), accepted=False)
    assert first > THRESHOLDS["quiet"]
    assert records.probability(MODEL, EDIT) < THRESHOLDS["balanced"]
    assert records.probability(RULE, EDIT) > THRESHOLDS["quiet"]  # of others nothing was learned


def test_a_source_that_one_in_ten_of_is_accepted_is_still_shown() -> None:
    records = Records()
    for turn in range(200):
        records.learn(MODEL, EDIT, (), records.probability(MODEL, EDIT), accepted=turn % 10 == 0)
    record = records.of(MODEL, "edit")
    assert record.threshold("balanced", 0.3) < records.probability(MODEL, EDIT) < record.threshold("quiet", 0.5)
    assert record.threshold("eager", 0.15) <= record.threshold("balanced", 0.3) <= record.threshold("quiet", 0.5)


def test_two_editors_add_to_one_file_of_records(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    one, other = Records(path), Records(path)
    for records in (one, other):
        records.learn(MODEL, EDIT, ("unknown_name",), 0.5, accepted=True)
        records.save()
    record = Records(path).of(MODEL, "edit")
    assert (record.shown, record.accepted, record.title) == (2, 2, "zeta-2")


@pytest.mark.parametrize("content", ["", "[]", '{"format": 99, "sources": {}}', '{"format": 1, "sources": {"x": 3}}'])
def test_a_damaged_file_of_records_is_not_used(tmp_path: Path, content: str) -> None:
    path = tmp_path / "records.json"
    path.write_text(content, encoding="utf-8")
    assert list(Records(path).rows()) == []


async def test_what_is_turned_off_is_still_answered_when_a_person_asks() -> None:
    for settings in (
        SuggestSettings(enabled=False),
        SuggestSettings(languages={"python": False}),
        SuggestSettings(show="on_request"),
    ):
        async with editing("x = |\n", "1", settings=settings) as editor:
            editor.type(" ")
            assert isinstance(await editor.inline(), Silence)
            assert editor.model.requests == []
            assert isinstance(await editor.inline(Trigger.EXPLICIT), Suggestion)


@pytest.mark.parametrize(("lines", "shown"), [(1, "if x:"), (2, "if x:\n    y()"), (None, "if x:\n    y()\n    z()")])
async def test_a_text_has_no_more_lines_than_a_person_wants(lines: int | None, shown: str) -> None:
    settings = SuggestSettings(debounce_seconds=0.0, lines=lines)
    async with editing("|\n", "if x:\n    y()\n    z()", settings=settings) as editor:
        answer = await editor.inline(Trigger.EXPLICIT)
        assert isinstance(answer, Suggestion)
        assert answer.edits[0].text == shown
