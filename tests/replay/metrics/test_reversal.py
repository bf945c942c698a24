from __future__ import annotations

import pytest

from calomel.replay.metrics.reversal import reversal


def test_writing_something_else_where_a_word_was_deleted_undoes_nothing() -> None:
    assert reversal("foo", "", "bar") == (0, 3)


def test_replacing_what_was_just_typed_undoes_it() -> None:
    assert reversal("", "abc", "xyz") == (3, 6)


def test_bringing_back_what_was_just_deleted_undoes_the_deletion() -> None:
    assert reversal("foo\n", "\n", "foo\n") == (3, 3)


def test_undoing_a_replacement_counts_both_sides() -> None:
    found = reversal("let foo = 1;", "let bar = 1;", "let foo = 1;")
    assert found == (6, 6)
    assert found.ratio == 1.0


def test_continuing_a_word_undoes_nothing() -> None:
    assert reversal("", "epr", "eprintln!()") == (0, 8)


def test_filling_up_a_word_in_its_middle_undoes_nothing() -> None:
    assert reversal("", "grpBy", "groupBy") == (0, 2)


def test_an_edit_elsewhere_undoes_nothing() -> None:
    assert reversal("a\nb\nc\n", "a\nB\nc\n", "a\nB\nC\n") == (0, 2)


def test_a_suggestion_that_changes_nothing_has_a_ratio_of_0() -> None:
    assert reversal("a", "ab", "ab").ratio == 0.0


@pytest.mark.parametrize(("predicted", "ratio"), [("x = 1\n", 1.0), ("x = 1\ny = 2\nz = 3\n", 0.0)])
def test_deleting_a_new_line_undoes_and_adding_one_does_not(predicted: str, ratio: float) -> None:
    assert reversal("x = 1\n", "x = 1\ny = 2\n", predicted).ratio == ratio
