from __future__ import annotations

import math

import pytest
from tests.suggest.editor import Editor, ScriptedModel, editing

from calomel.prompts.parts import RegionBounds
from calomel.suggest.completer import Candidate, CompleteRequest, ModelInfo
from calomel.suggest.edit import Answer, Suggestion, apply
from calomel.suggest.outcome_log import line_of, record_of
from calomel.suggest.silence import Silence
from calomel.workspace.privacy import Privacy
from calomel.workspace.settings import SuggestSettings

NOW = SuggestSettings(debounce_seconds=0.0)
CALLS = "|run(a)\n" + "\n" * 6 + "run(b)\nrun(c)\n" + "\n" * 6 + "run(d)\n"


def region(request: CompleteRequest) -> str:
    assert request.parts.region is not None
    return request.parts.region.text


def agreeing(request: CompleteRequest) -> tuple[Candidate, ...]:
    """A model that would leave everything as it is, but finds every draft better."""
    drafts = [
        Candidate(draft.text, (-0.1,), maker=draft.maker, log_prob=-1.0, keep_log_prob=-6.0) for draft in request.drafts
    ]
    return (*drafts, Candidate(region(request), (-0.1,), log_prob=-6.0, keep_log_prob=-6.0))


def result(editor: Editor, answer: Answer) -> str:
    assert isinstance(answer, Suggestion), answer
    return apply(editor.document.text, answer.edits)


def reason(answer: Answer) -> str:
    assert isinstance(answer, Silence), answer
    return str(answer.reason)


class SmallModel(ScriptedModel):
    """One that rewrites few lines at once, as the shipped one does."""

    async def info(self) -> ModelInfo:
        return ModelInfo("small", "0", ("fill", "edit"), 8192, 2048, None, "1", region=RegionBounds(1, 2, 160))


async def test_what_the_last_edits_did_is_drafted_at_the_next_place_and_judged_by_the_model() -> None:
    async with editing(CALLS, agreeing, settings=NOW, model=SmallModel()) as editor:
        editor.change((5, 5, ", 1"))
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion)
        assert (answer.maker, answer.jump) == ("arguments", True)
        assert "run(b, 1)\nrun(c, 1)\n" in result(editor, answer)
        at_cursor, elsewhere = editor.model.requests
        assert at_cursor.drafts == ()
        assert [draft.text for draft in elsewhere.drafts] == [
            "\nrun(b, 1)\nrun(c, 1)\n\n", "\nrun(b, 1)\nrun(c)\n\n", "\nrun(b)\nrun(c, 1)\n\n",
        ]  # fmt: skip


async def test_one_question_looks_at_three_places_at_most() -> None:
    text = "|old_name = 1\n" + ("\n" * 6 + "use(old_name)\n") * 5
    async with editing(text, region, settings=NOW, model=SmallModel()) as editor:
        editor.change((0, 3, "new"))
        assert reason(await editor.next_edit()) == "no_change"
        assert len(editor.model.requests) == 3
        places = [request.parts.prefix.count("\n") for request in editor.model.requests]
        assert places == sorted(places)


async def test_the_cursor_is_told_only_where_it_is() -> None:
    async with editing(CALLS, region, settings=NOW, model=SmallModel()) as editor:
        editor.change((5, 5, ", 1"))
        await editor.next_edit()
        regions = [request.parts.region for request in editor.model.requests]
        assert [each is not None and each.cursor for each in regions] == [8, None, None]


async def test_nothing_is_drafted_after_an_undo() -> None:
    async with editing(CALLS, region, settings=NOW, model=SmallModel()) as editor:
        editor.change((5, 5, ", 1"))
        editor.change((5, 8, ""))
        assert reason(await editor.next_edit()) == "no_change"
        assert [request.drafts for request in editor.model.requests] == [()]


async def test_the_surest_of_the_candidates_is_offered() -> None:
    def reply(request: CompleteRequest) -> tuple[Candidate, ...]:
        text = region(request)
        return (
            Candidate(text.replace("x = 1", "x = 2"), (-0.1,), log_prob=-4.0, keep_log_prob=-5.0),
            Candidate(text.replace("y = 2", "y = 3"), (-0.1,), log_prob=-2.0, keep_log_prob=-5.0, maker="seeded"),
        )

    async with editing("x = |\ny = 2\n", reply, settings=NOW) as editor:
        editor.type("1")
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion)
        assert (answer.maker, result(editor, answer)) == ("seeded", "x = 1\ny = 3\n")
        assert answer.probability == pytest.approx(1 / (1 + math.exp(-3.0)))


async def test_an_edit_that_is_less_likely_than_silence_is_hidden() -> None:
    def reply(request: CompleteRequest) -> tuple[Candidate, ...]:
        return (Candidate(region(request).replace("y = 2", "y = 3"), (-0.01,), log_prob=-6.0, keep_log_prob=-1.0),)

    async with editing("x = |\ny = 2\n", reply, settings=NOW) as editor:
        editor.type("1")
        assert reason(await editor.next_edit()) == "low_confidence"


async def test_outcomes_say_who_proposed_the_edit_and_how_many_edits_agreed() -> None:
    async with editing(CALLS, agreeing, settings=NOW, model=SmallModel()) as editor:
        editor.change((5, 5, ", 1"))
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion)
        editor.suggester.accepted(answer.id)
        outcome = editor.outcomes.all[-1]
        assert (outcome.outcome, outcome.maker) == ("accepted", "arguments")
        assert outcome.signals is not None
        assert (outcome.signals.log_prob, outcome.signals.keep_log_prob, outcome.signals.support) == (-1.0, -6.0, 1)
        record = record_of(line_of(outcome, time=1.0, session="s", version="1"))
        assert (record.maker, record.signals["support"]) == ("arguments", 1)


def test_lines_of_earlier_versions_have_no_maker() -> None:
    assert not record_of(b'{"time": 1.0, "id": "a", "outcome": "shown", "model": "m"}').maker


async def test_a_secret_is_in_no_draft() -> None:
    class Stars(Privacy):
        def mask(self, text: str) -> str:
            return text.replace("hunter2hunter2", "*" * 14)

    text = "|a.x = 'hunter2hunter2'\n" + "\n" * 6 + "b.x = 'other'\n"
    async with editing(text, agreeing, settings=NOW, model=SmallModel(), privacy=Stars()) as editor:
        editor.change((2, 3, "name"))
        answer = await editor.next_edit()
        assert "b.name = 'other'" in result(editor, answer)
        assert all("hunter2" not in str(request) for request in editor.model.requests)


async def test_what_stands_behind_the_same_words_elsewhere_competes_for_the_line() -> None:
    text = "# Files\nself.store.put(path, encoding='utf-8')\n\n\ndef save(self):\n    self.store.|\n"
    async with editing(text, "get()", settings=NOW) as editor:
        editor.type("p")
        await editor.inline()
        (request,) = editor.model.requests
        assert [(draft.text, draft.maker) for draft in request.drafts] == [
            ("ut(path, encoding='utf-8')", "continuation")
        ]


async def test_what_stands_between_the_same_texts_elsewhere_competes_for_the_inside_of_a_line() -> None:
    text = "first = self.store.put(path, encoding='utf-8')\n\n\nsecond = self.store.put(|, encoding='utf-8')\n"
    async with editing(text, "get()", settings=NOW) as editor:
        editor.type("p")
        await editor.inline()
        (request,) = editor.model.requests
        assert [(draft.text, draft.maker) for draft in request.drafts] == [("ath", "recalled")]


async def test_what_stands_between_other_texts_does_not() -> None:
    text = "put(path, encoding='utf-8')\n\n\nout(|, encoding='utf-8')\n"
    async with editing(text, "get()", settings=NOW) as editor:
        editor.type("p")
        await editor.inline()
        (request,) = editor.model.requests
        assert request.drafts == ()


USERS = """class UserStore {
  findUser(userId: string): User {
    return this.users.get(USER_PREFIX + userId);
  }
}
"""


@pytest.mark.parametrize(
    ("typed", "drafted"),
    [
        ("class OrderStore {\n  fin|", ["dOrder(orderId: string): Order {"]),
        (
            "class OrderStore {\n  findOrder(orderId: string): Order {\n    ret|",
            ["urn this.orders.get(ORDER_PREFIX + orderId);"],
        ),
        (
            "def add_user():\n    user = User()\n    save(user)\n\ndef add_line_item():\n    |",
            ["line_item = LineItem()"],
        ),
    ],
)
async def test_what_stands_in_a_neighbour_is_drafted_with_the_own_names(typed: str, drafted: list[str]) -> None:
    async with editing(f"{USERS}\n{typed}\n", settings=NOW) as editor:
        await editor.inline()
        (request,) = editor.model.requests
        assert [draft.text for draft in request.drafts] == drafted
