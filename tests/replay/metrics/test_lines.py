from __future__ import annotations

import pytest

from calomel.replay.metrics.lines import is_exact, is_no_op, line_score, position_error


def test_lines_are_compared_as_multisets_of_removed_and_added_ones() -> None:
    # Suggested: -b +B. Expected: -b +B +D. In common 2, missed 1: F1 = 4/5.
    found = line_score("a\nb\nc", "a\nB\nc", "a\nB\nc\nD")
    assert found == (2, 0, 1)
    assert found.f1 == pytest.approx(0.8)


def test_two_texts_left_as_they_are_agree() -> None:
    assert line_score("a", "a", "a").f1 == 1.0


def test_a_wrong_edit_shares_no_line() -> None:
    assert line_score("a", "x", "y").f1 == pytest.approx(0.5)  # The removed line is the same.
    assert line_score("", "x", "y").f1 == 0.0


def test_exact_is_the_same_text_whatever_its_line_ends() -> None:
    assert is_exact("a\r\nb", "a\nb\n")
    assert not is_exact("a\nb ", "a\nb")


def test_position_error_is_the_distance_of_the_first_changed_lines() -> None:
    assert position_error("a\nb\nc\nd", "a\nX\nc\nd", "a\nb\nc\nX") == 2
    assert position_error("a\nb", "a\nb\nc", "a\nb\nd") == 0
    assert position_error("a\nb", "a\nb", "a\nX") is None


def test_a_suggestion_that_changes_nothing_is_a_no_op() -> None:
    assert is_no_op("a", "a")
    assert not is_no_op("a", "b")
