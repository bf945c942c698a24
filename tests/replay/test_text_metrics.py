from __future__ import annotations

import pytest

from calomel.replay.text_metrics import (
    changed_middle,
    chrf,
    delta_chrf,
    is_exact,
    parse_error_delta,
    suite_delta_chrf,
)


def test_equal_texts_score_100() -> None:
    assert chrf("return x", "return x") == pytest.approx(100.0)


def test_two_empty_texts_score_100_since_nothing_was_expected_and_nothing_came() -> None:
    assert chrf("", "") == 100.0


def test_texts_without_a_common_character_score_0() -> None:
    assert chrf("abc", "xyz") == 0.0


def test_chrf_weighs_recall_twice_as_much_as_precision() -> None:
    # Of "ab" against "abc": 1-grams P 2/2, R 2/3; 2-grams P 1/1, R 1/2; 3-grams P 0, R 0; longer ones do not occur.
    # F = 5PR / (4P + R): 5*(2/3)/(4+2/3) = 0.714286; 5*0.5/4.5 = 0.555556; 0. Their mean is 0.423280.
    assert chrf("ab", "abc") == pytest.approx(42.3280, abs=1e-4)


def test_the_changed_middle_is_what_differs_between_the_common_lines() -> None:
    assert changed_middle("a\nb\nc\n", "a\nX\nY\nc\n") == "X\nY"
    assert changed_middle("a\nb\nc", "a\nc") == ""
    assert changed_middle("a\r\nb", "a\nB") == "B"


def test_a_repeated_line_is_not_counted_as_common_twice() -> None:
    assert changed_middle("a\na", "a\na\na") == "a"
    assert changed_middle("a", "a\na") == "a"


def test_the_suites_score_ignores_what_was_merely_copied() -> None:
    before = "one\ntwo\nthree\n"
    assert suite_delta_chrf(before, "one\nTWO\nthree\n", "one\nTWO\nthree\n") == pytest.approx(100.0)
    assert suite_delta_chrf(before, before, "one\nTWO\nthree\n") == 0.0


def test_an_answer_that_changes_nothing_where_nothing_should_change_scores_100() -> None:
    assert suite_delta_chrf("a\nb", "a\nb", "a\nb") == 100.0
    assert delta_chrf("a\nb", "a\nb", "a\nb") == 100.0


def test_delta_chrf_is_100_for_the_expected_edit_and_0_for_an_edit_where_none_was_expected() -> None:
    assert delta_chrf("let x = 1;", "let x = 2;", "let x = 2;") == pytest.approx(100.0)
    assert delta_chrf("abcdef", "abcdef ghijkl", "abcdef") == 0.0


def test_delta_chrf_of_two_different_insertions_is_0_when_every_order_has_changes() -> None:
    assert delta_chrf("", "bbbbbb", "cccccc") == 0.0


def test_an_order_that_nobody_changed_counts_as_right() -> None:
    # ab -> abd instead of abc: the 1-, 2- and 3-grams are all wrong, 4- to 6-grams do not occur: 3 of 6 orders.
    assert delta_chrf("ab", "abd", "abc") == pytest.approx(50.0)


def test_delta_chrf_counts_a_deletion() -> None:
    # Wanted: abc -> a. Made: abc -> ab. 1-grams: wanted -b -c, made -c: P 1, R 1/2. 2-grams: wanted -ab -bc, made
    # -bc: P 1, R 1/2. 3-grams: both -abc: 1, 1. Longer: 1, 1. P 1, R 5/6, F = 5*(5/6)/(4+5/6) = 0.862069.
    assert delta_chrf("abc", "ab", "a") == pytest.approx(86.2069, abs=1e-4)


def test_delta_chrf_takes_runs_of_white_space_as_one_space() -> None:
    assert delta_chrf("a b", "a  b\n\tc", "a b c") == pytest.approx(100.0)


def test_exact_is_the_same_text_whatever_its_line_ends() -> None:
    assert is_exact("a\r\nb", "a\nb\n")
    assert not is_exact("a\nb ", "a\nb")


def test_code_that_stops_parsing_counts_as_errors() -> None:
    delta = parse_error_delta("def f():\n    return 1\n", "def f(:\n    return 1\n", "python")
    assert delta is not None
    assert delta > 0


def test_code_that_is_mended_counts_as_errors_less() -> None:
    delta = parse_error_delta("x = (1\n", "x = (1)\n", "python")
    assert delta is not None
    assert delta < 0


def test_a_language_without_a_grammar_has_no_figure() -> None:
    assert parse_error_delta("a", "b", "plaintext") is None
