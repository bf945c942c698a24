from __future__ import annotations

import pytest

from calomel.prompts.parts import Edit
from calomel.replay import person
from calomel.replay.events import Changed, Closed, Event, Selected
from calomel.replay.opportunity import Verdict
from calomel.replay.person import Moment, judge

DOCUMENT = "a.py"


def typing(text: str, at: int, start: float = 1.0, gap: float = 0.2) -> list[Event]:
    """One keystroke for each character."""
    return [
        Changed(entry, start + entry * gap, DOCUMENT, (Edit(at + entry, at + entry, character),))
        for entry, character in enumerate(text)
    ]


def later(seconds: float) -> Event:
    return Selected(99, seconds, DOCUMENT, 0, 0)


def verdict(text: str, edits: list[Edit], events: list[Event]) -> Verdict:
    return judge(Moment(DOCUMENT, text, 0.0, 0), edits, events)


def test_what_the_person_types_is_accepted() -> None:
    found = verdict("x = \n", [Edit(4, 4, "compute(1)")], typing("compute(1)", 4))
    assert found.outcome == "accepted"
    assert found.accepted_characters == 10
    assert found.saved_characters == 9  # one key accepts
    assert (found.before, found.after, found.expected) == ("x = ", "x = compute(1)", "x = compute(1)")
    assert found.until == 10
    assert found.visible_seconds == pytest.approx(2.8)
    assert found.ending == "taken"


def test_what_comes_too_late_is_rejected() -> None:
    waste = typing("abcdefgh" * 6, 0, gap=0.1)
    for when, outcome in ((5.5, "accepted"), (31.0, "rejected")):
        back = Changed(50, when, DOCUMENT, (Edit(0, 48, ""),))
        events = [*waste, back, *typing("compute", 0, when + 1.0)]
        assert verdict("", [Edit(0, 0, "compute")], events).outcome == outcome


@pytest.mark.parametrize("text", ["abc", "a  b\n c"])
def test_few_characters_are_too_short_even_when_typed(text: str) -> None:
    found = verdict("", [Edit(0, 0, text)], typing(text, 0))
    assert found.outcome == "too_short"
    assert (found.accepted_characters, found.saved_characters, found.kept) == (0, 0, None)


def test_kept_is_what_stands_a_minute_after_it_was_there() -> None:
    edits = [Edit(0, 0, "compute()")]
    typed = typing("compute()", 0, gap=0.1)
    assert verdict("", edits, [*typed, later(62.0)]).kept is True
    deleted = Changed(20, 30.0, DOCUMENT, (Edit(0, 9, ""),))
    assert verdict("", edits, [*typed, deleted, later(62.0)]).kept is False
    too_late = Changed(20, 62.0, DOCUMENT, (Edit(0, 9, ""),))
    assert verdict("", edits, [*typed, too_late]).kept is True
    assert verdict("", edits, typed).kept is None
    assert verdict("", edits, [*typed, Closed(21, 20.0, DOCUMENT), later(80.0)]).kept is None


def test_one_of_two_places_is_accepted_partly() -> None:
    edits = [Edit(0, 3, "fresher"), Edit(8, 11, "fresher")]
    events: list[Event] = [Changed(0, 1.0, DOCUMENT, (Edit(0, 3, "fresher"),))]
    found = verdict("old and old\n", edits, events)
    assert (found.outcome, found.accepted_characters) == ("partly", 7)
    assert verdict("old and old\n", edits, [Changed(0, 1.0, DOCUMENT, tuple(edits))]).outcome == "accepted"


LONG = "abcdefgh" * 12
assert len(LONG) > person.KEYSTROKES


@pytest.mark.parametrize(
    ("text", "edit", "typed", "gap", "outcome", "characters"),
    [
        ("x = \n", Edit(4, 4, "compute"), "compute(1)", 0.2, "accepted", 7),
        # Whole words of the beginning, and the first line, are accepted in part.
        ("", Edit(0, 0, "return values.first"), "return valid", 0.2, "partly", len("return")),
        ("", Edit(0, 0, "if ready:\n    go()\n"), "if ready:\n    stop()", 0.2, "partly", len("if ready:")),
        ("", Edit(0, 0, "return"), "go()\nreturn", 0.2, "rejected", 0),
        ("", Edit(0, 0, "if condition:"), "if x:", 0.2, "rejected", 0),
        # Few keystrokes after long pauses are within the horizon, and a long suggestion gets more.
        ("", Edit(0, 0, "compute"), "compute", 70.0, "accepted", 7),
        ("", Edit(0, 0, LONG), LONG, 1.0, "accepted", len(LONG)),
    ],
)
def test_what_is_typed_decides(text: str, edit: Edit, typed: str, gap: float, outcome: str, characters: int) -> None:
    found = verdict(text, [edit], typing(typed, edit.start, gap=gap))
    assert (found.outcome, found.accepted_characters) == (outcome, characters)
    assert found.saved_characters == max(0, characters - 1)  # one key accepts


@pytest.mark.parametrize(
    ("text", "suggested", "done", "outcome", "saved"),
    [
        # Brackets that the editor closes do not matter.
        ("", Edit(0, 0, "go(1)"), [Edit(0, 0, "go"), Edit(2, 2, "()"), Edit(3, 3, "1")], "accepted", 4),
        # Indentation is not saved and not compared.
        ("if:\n", Edit(3, 3, "\n    go()"), [Edit(3, 3, "\n\tgo()")], "accepted", len("\ngo()") - 1),
        # Who types the beginning of the line anew still accepts.
        ("ret\n", Edit(3, 3, "ry"), [Edit(0, 3, ""), Edit(0, 0, "retry")], "too_short", 0),
        ("ret\n", Edit(3, 3, "rying()"), [Edit(0, 3, ""), Edit(0, 0, "retrying()")], "accepted", 6),
        ("first()\n", Edit(0, 5, "second"), [Edit(0, 5, ""), Edit(0, 0, "second")], "accepted", 5),
        ("first()\n", Edit(0, 5, "second"), [], "rejected", 0),
        # A deletion saves no characters.
        ("import a\nb\n", Edit(0, 9, ""), [Edit(0, 8, "")], "accepted", 0),
    ],
)
def test_what_the_person_makes_of_the_text_decides(
    text: str, suggested: Edit, done: list[Edit], outcome: str, saved: int
) -> None:
    changes = [Changed(entry, 1.0 + entry, DOCUMENT, (edit,)) for entry, edit in enumerate(done)]
    found = verdict(text, [suggested], [*changes, later(50.0)])
    assert (found.outcome, found.saved_characters) == (outcome, saved)


def test_a_suggestion_is_visible_until_the_person_disagrees() -> None:
    found = verdict("", [Edit(0, 0, "compute")], typing("comb", 0))
    assert found.visible_seconds == pytest.approx(1.6)
    assert found.ending == "typed_on"
    found = verdict("x\n", [Edit(1, 1, "compute")], [later(100.0)])
    assert (found.outcome, found.expected) == ("rejected", None)
    # Lines written behind it are not expected of it.
    assert verdict("", [Edit(0, 0, "one()")], typing("one()\ntwo()", 0)).expected == "one()"
