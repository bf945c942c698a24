from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.suggest.cache import rebase
from calomel.suggest.edit import Planned, TextEdit, apply, edits_of, plan, trimmed

ALPHABET = "ab()\n"


@dataclass(frozen=True, slots=True)
class Typed:
    start: int
    end: int
    inserted: str
    removed: str


def typed(text: str, start: int, end: int, inserted: str) -> tuple[Typed, str]:
    return Typed(start, end, inserted, text[start:end]), text[:start] + inserted + text[end:]


def insertion(at: int, text: str) -> tuple[Planned, ...]:
    return (Planned(at, at, text, ""),)


def test_typing_what_is_suggested_shortens_the_suggestion() -> None:
    change, _ = typed("x = ", 4, 4, "fo")
    assert rebase(insertion(4, "foo()"), change) == insertion(6, "o()")


def test_typing_the_whole_suggestion_leaves_nothing_of_it() -> None:
    change, _ = typed("x = ", 4, 4, "foo()")
    assert rebase(insertion(4, "foo()"), change) == ()


def test_typing_something_else_drops_the_suggestion() -> None:
    change, _ = typed("x = ", 4, 4, "bar")
    assert rebase(insertion(4, "foo()"), change) is None


def test_deleting_before_the_cursor_drops_the_suggestion() -> None:
    change, _ = typed("x = ", 3, 4, "")
    assert rebase(insertion(4, "foo()"), change) is None


def test_typing_elsewhere_above_moves_the_suggestion() -> None:
    change, _ = typed("a\nx = ", 0, 0, "long")
    assert rebase(insertion(6, "foo()"), change) == insertion(10, "foo()")


def test_typing_elsewhere_below_leaves_the_suggestion_in_its_place() -> None:
    change, _ = typed("x = \nb", 5, 6, "")
    assert rebase(insertion(4, "foo()"), change) == insertion(4, "foo()")


def test_a_bracket_that_the_editor_closes_by_itself_agrees() -> None:
    change, _ = typed("foo", 3, 3, "()")
    assert rebase(insertion(3, "(a, b)"), change) == insertion(4, "a, b")


def test_deleting_what_the_edit_replaces_anyway_agrees() -> None:
    change, _ = typed("old_name", 0, 1, "")
    assert rebase(plan("old_name", [TextEdit(0, 8, "new_name")]), change) == (Planned(0, 2, "new", "ld"),)


def test_typing_the_new_word_over_the_old_one_agrees() -> None:
    change, _ = typed("old_name", 0, 3, "n")
    assert rebase(plan("old_name", [TextEdit(0, 8, "new_name")]), change) == insertion(1, "ew")


def test_a_short_word_that_stands_a_little_inside_agrees_where_that_is_asked_for() -> None:
    change, _ = typed("x = ", 4, 4, "nam")
    assert rebase(insertion(4, "self.name"), change) is None
    assert rebase(insertion(4, "self.name"), change, kind="edit") == (
        Planned(4, 4, "self.", ""),
        Planned(7, 7, "e", ""),
    )


def test_an_edit_made_for_another_text_does_not_agree_with_anything() -> None:
    assert rebase((Planned(0, 3, "new", "old"),), Typed(0, 1, "", "x")) is None


def moved(change: Typed, edits: tuple[Planned, ...]) -> TextEdit:
    """The change as it is in the text that has the edits already; the naive reference."""
    by = sum(len(edit.text) - len(edit.removed) for edit in edits if edit.end < change.start)
    return TextEdit(change.start + by, change.end + by, change.inserted)


@st.composite
def situations(draw: st.DrawFn) -> tuple[str, tuple[Planned, ...], Typed]:
    text = draw(st.text(ALPHABET, max_size=14))
    edits: list[TextEdit] = []
    at = 0
    for _ in range(draw(st.integers(0, 3))):
        if at > len(text):
            break
        start = draw(st.integers(at, len(text)))
        end = draw(st.integers(start, min(len(text), start + 4)))
        edits.append(TextEdit(start, end, draw(st.text(ALPHABET, max_size=6))))
        at = end + 1
    planned = plan(text, edits)
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 3)))
    inserted = draw(st.text(ALPHABET, max_size=3) | st.sampled_from([edit.text[:2] for edit in planned] or [""]))
    return text, planned, Typed(start, end, inserted, text[start:end])


@given(situations(), st.sampled_from([0, 10]))
def test_applying_after_typing_equals_typing_after_applying(
    situation: tuple[str, tuple[Planned, ...], Typed], max_offset: int
) -> None:
    text, edits, change = situation
    rebased = rebase(edits, change, kind="edit")
    if rebased is None:
        return
    now = apply(text, [TextEdit(change.start, change.end, change.inserted)])
    assert all(edit.fits(now) for edit in rebased)
    result = apply(now, edits_of(rebased))
    wanted = apply(text, edits_of(edits))
    if any(edit.start <= change.end and edit.end >= change.start for edit in edits):
        # A change beside an edit may also lie apart from it, once both are cut to what they change.
        done = trimmed(Planned(change.start, change.end, change.inserted, change.removed))
        small = Typed(done.start, done.end, done.text, done.removed)
        assert result in {wanted, apply(wanted, [moved(small, edits)])}
    else:
        assert result == apply(wanted, [moved(change, edits)])


def test_an_accepted_edit_that_comes_as_whole_lines_leaves_nothing() -> None:
    text = "a = old\nb = 1\nc = old\n"
    edits = plan(text, [TextEdit(4, 7, "new"), TextEdit(18, 21, "new")])
    change, _ = typed(text, 0, len(text), text.replace("old", "new"))
    assert rebase(edits, change) == ()


def test_lines_that_come_again_unchanged_change_nothing() -> None:
    change, _ = typed("x = \n", 0, 5, "x = \n")
    assert rebase(insertion(4, "foo()"), change) == insertion(4, "foo()")


@given(st.text(ALPHABET, max_size=8), st.integers(0, 8), st.text(ALPHABET, min_size=1, max_size=8), st.data())
def test_any_way_of_typing_the_suggestion_in_pieces_ends_with_nothing_left(
    text: str, at: int, suggested: str, data: st.DataObject
) -> None:
    at = min(at, len(text))
    edits: tuple[Planned, ...] | None = insertion(at, suggested)
    wanted = apply(text, [TextEdit(at, at, suggested)])
    done = 0
    while done < len(suggested):
        piece = data.draw(st.integers(1, len(suggested) - done))
        change, text = typed(text, at + done, at + done, suggested[done : done + piece])
        assert edits is not None
        edits = rebase(edits, change)
        done += piece
    assert edits == ()
    assert text == wanted


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_line_end_with_its_indentation_agrees(line_end: str) -> None:
    change, _ = typed("if x:", 5, 5, f"{line_end}    ")
    assert rebase(insertion(5, f"{line_end}    pass"), change) == insertion(5 + len(line_end) + 4, "pass")
