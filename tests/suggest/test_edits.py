"""Edits and texts that move on, against naive references."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.code.lines import split_lines
from calomel.prompts.parts import row_of
from calomel.suggest.edit import at_cursor, grouped
from calomel.workspace.documents import TextChange
from calomel.workspace.edits import (
    Planned,
    TextEdit,
    apply,
    common_prefix,
    edits_of,
    is_boundary,
    minimal_edits,
    plan,
    rebase,
    slid,
    trimmed,
)


def test_a_form_feed_does_not_end_a_line() -> None:
    assert split_lines("a\x0cb\u2028c\rd\r\ne") == ["a\x0cb\u2028c\r", "d\r\n", "e"]
    assert row_of("a\x0cb\u2028c\rd\r\ne", 9) == 2


TEXT = st.text("ab \r\né", max_size=24)


@given(TEXT, TEXT, TEXT, TEXT)
def test_applying_the_edits_gives_the_rewritten_text(front: str, old: str, new: str, back: str) -> None:
    text = front + old + back
    found = minimal_edits(text, len(front), len(front) + len(old), new)
    assert apply(text, edits_of(found)) == front + new + back
    assert all(left.end < right.start for left, right in pairwise(found))


def test_edits_of_near_lines_or_of_the_same_names_belong_together() -> None:
    text = "".join(f"line {number}\n" for number in range(40))

    def groups(**changes: str) -> list[list[str]]:
        new = text
        for old, word in changes.items():
            new = new.replace(f" {old[1:]}\n", f" {word}\n")
        return [[edit.text for edit in group] for group in grouped(text, minimal_edits(text, 0, len(text), new))]

    assert groups(_2="two", _5="five", _15="fifteen") == [["two", "five"], ["fifteen"]]
    assert groups(_2="total", _15="total", _30="ten") == [["total", "total"], ["ten"]]
    assert groups(_2="total", _38="total") == [["total"], ["total"]]  # not to be seen at once
    assert grouped(
        text,
        minimal_edits(text, 0, len(text), text.replace(" 2\n", " 2 self\n").replace(" 20\n", " 20 self\n")),
        {"self"},
    )[1:]


def test_a_line_inserted_below_the_cursor_is_shown_at_the_cursor() -> None:
    text = "def f():\n\nx\n"
    chosen = at_cursor(text, minimal_edits(text, 0, len(text), "def f():\n    return\n\nx\n"), 8)
    assert edits_of(chosen) == (TextEdit(8, 8, "\n    return"),)


@given(st.text("ab\n", max_size=12), st.text("ab\n", min_size=1, max_size=6), st.integers(0, 12), st.integers(0, 12))
def test_sliding_an_insertion_changes_nothing_in_the_result(text: str, new: str, at: int, cursor: int) -> None:
    edit = Planned(min(at, len(text)), min(at, len(text)), new, "")
    assert apply(text, edits_of([slid(edit, text, min(cursor, len(text)))])) == apply(text, edits_of([edit]))


@pytest.mark.parametrize(
    "whole",
    ["\r\n", "e\u0301", "👍🏽", "👩\u200d💻", "❤\ufe0f", "🇦🇹"],
    ids=["crlf", "accent", "skin", "joiner", "heart", "flag"],
)
def test_what_is_one_character_to_a_person_is_not_cut(whole: str) -> None:
    text = f"a{whole}b"
    assert [at for at in range(len(text) + 1) if is_boundary(text, at)] == [0, 1, 1 + len(whole), 2 + len(whole)]


def test_a_common_beginning_does_not_end_within_a_character() -> None:
    assert common_prefix("xe\u0301", "xe\u0300") == 1
    assert common_prefix("👩\u200d💻", "👩\u200d🔬") == 0


ALPHABET = "ab()\n"


def change_of(start: int, end: int, inserted: str, removed: str) -> TextChange:
    return TextChange(start, end, inserted, removed, 0, 0, 0, 0)  # nobody here looks at lines


def typed(text: str, start: int, end: int, inserted: str) -> tuple[TextChange, str]:
    return change_of(start, end, inserted, text[start:end]), text[:start] + inserted + text[end:]


def insertion(at: int, text: str) -> tuple[Planned, ...]:
    return (Planned(at, at, text, ""),)


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


def moved(change: TextChange, edits: tuple[Planned, ...]) -> TextEdit:
    """The change as it is in the text that has the edits already; the naive reference."""
    by = sum(len(edit.text) - len(edit.removed) for edit in edits if edit.end < change.start)
    return TextEdit(change.start + by, change.end + by, change.inserted)


@st.composite
def situations(draw: st.DrawFn) -> tuple[str, tuple[Planned, ...], TextChange]:
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
    return text, planned, change_of(start, end, inserted, text[start:end])


@given(situations(), st.sampled_from([0, 10]))
def test_applying_after_typing_equals_typing_after_applying(
    situation: tuple[str, tuple[Planned, ...], TextChange], max_offset: int
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
        small = change_of(done.start, done.end, done.text, done.removed)
        assert result in {wanted, apply(wanted, [moved(small, edits)])}
    else:
        assert result == apply(wanted, [moved(change, edits)])


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
