"""The marks of golden cases are read as they are explained."""

from __future__ import annotations

from tests.selectivity.filters.golden import proposal

from calomel.selectivity.proposal import Edit, Recent


def test_an_insertion_at_the_cursor_is_a_fill() -> None:
    read = proposal("x = ├1┤\n")
    assert (read.kind, read.text, read.after, read.cursor) == ("fill", "x = \n", "x = 1\n", 4)


def test_replacements_in_a_region_are_an_edit() -> None:
    read = proposal("a\n⌈├b→c┤\nd├e→┤\n⌉‸f")
    assert (read.kind, read.text, read.after) == ("edit", "a\nb\nde\nf", "a\nc\nd\nf")
    assert (read.region, read.cursor) == ((2, 7), 7)


def test_what_was_done_may_have_a_suggestion_inside() -> None:
    read = proposal("⟨old→n├ew→o┤⟩ ⟨gone→⟩‸")
    assert read.edits == (Edit(1, 3, "o"),)
    assert read.recent == (Recent(0, 3, "old", "new"), Recent(4, 4, "gone", ""))


def test_secrets_are_hidden_in_the_other_text() -> None:
    read = proposal("key = '▒hunter▒'├\n┤")
    assert (read.text, read.masked) == ("key = 'hunter'", "key = '******'")
