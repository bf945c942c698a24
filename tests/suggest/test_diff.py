from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from calomel.suggest.edit import (
    Planned,
    TextEdit,
    apply,
    edits_of,
    minimal_edits,
    near_cursor,
    row_of,
    slid,
    split_lines,
)


def edits(text: str, rewritten: str) -> list[TextEdit]:
    return list(edits_of(minimal_edits(text, 0, len(text), rewritten)))


def test_a_changed_word_is_one_small_edit() -> None:
    assert edits("a\nold = 1\nb\n", "a\nnew = 1\nb\n") == [TextEdit(2, 5, "new")]


def test_two_changed_words_on_neighbouring_lines_are_two_edits() -> None:
    assert edits("x = 1\ny = 1\n", "x = 2\ny = 2\n") == [TextEdit(4, 5, "2"), TextEdit(10, 11, "2")]


def test_an_inserted_line_replaces_nothing() -> None:
    assert edits("a\nc\n", "a\nb\nc\n") == [TextEdit(2, 2, "b\n")]


def test_a_removed_line_inserts_nothing() -> None:
    assert edits("a\nb\nc\n", "a\nc\n") == [TextEdit(2, 4, "")]


def test_an_unchanged_region_gives_no_edit() -> None:
    assert edits("a\r\nb\r\n", "a\r\nb\r\n") == []


def test_a_changed_accent_is_replaced_with_its_letter() -> None:
    assert edits("e\u0301\n", "e\u0300\n") == [TextEdit(0, 2, "e\u0300")]


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


def test_the_nearest_edit_comes_first_with_its_neighbours() -> None:
    text = "".join(f"line {number}\n" for number in range(12))
    found = minimal_edits(text, 0, len(text), text.replace("2", "two").replace("3", "three").replace("9", "nine"))
    chosen, rest = near_cursor(text, found, text.index("line 1\n"))
    assert [edit.text for edit in chosen] == ["two", "three"]
    assert [edit.text for edit in rest] == ["nine"]


def test_of_two_equally_near_edits_the_lower_one_comes_first() -> None:
    text = "a\nb\nc\nd\ne\n"
    chosen, rest = near_cursor(text, minimal_edits(text, 0, len(text), "A\nb\nc\nd\nE\n"), text.index("c"))
    assert [edit.text for edit in chosen] == ["E"]
    assert [edit.text for edit in rest] == ["A"]


def test_a_line_inserted_below_the_cursor_is_shown_at_the_cursor() -> None:
    text = "def f():\n\nx\n"
    chosen, _ = near_cursor(text, minimal_edits(text, 0, len(text), "def f():\n    return\n\nx\n"), 8)
    assert edits_of(chosen) == (TextEdit(8, 8, "\n    return"),)


@given(st.text("ab\n", max_size=12), st.text("ab\n", min_size=1, max_size=6), st.integers(0, 12), st.integers(0, 12))
def test_sliding_an_insertion_changes_nothing_in_the_result(text: str, new: str, at: int, cursor: int) -> None:
    edit = Planned(min(at, len(text)), min(at, len(text)), new, "")
    assert apply(text, [slid(edit, text, min(cursor, len(text))).edit]) == apply(text, [edit.edit])
