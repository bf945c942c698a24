"""Each case reads like an editor: `before<answer>after`, and what is left of the answer."""

from __future__ import annotations

import pytest

from calomel.suggest.checks.blank import changes_only_space, is_blank
from calomel.suggest.checks.line_rest import is_inert, line_rest, splits_word, within_line
from calomel.suggest.checks.masked import has_mask, touches_masked
from calomel.suggest.checks.overlap import without_overlap
from calomel.suggest.checks.repeated import repeats_above, repeats_below
from calomel.suggest.suggestion import TextEdit


@pytest.mark.parametrize(
    ("answer", "suffix", "left"),
    [
        ("a, bar)", ", bar)\n", "a"),
        ("g()", ")\n", "g()"),
        ("x)", ")\n", "x"),
        ("x))", ")\n", "x)"),
        ('hello")', '")\n', "hello"),
        ('hello"', '")\n', "hello"),
        ("d['k']", "]\n", "d['k']"),
        ("a = 1\nb = 2", "\nb = 2\nc\n", "a = 1"),
        ("return x\n}\n", "\n}\n", "return x\n}\n"),
        ("print", "printer\n", "print"),
        ("x + b", " b\n", "x +"),
        ("aa", "a\n", "aa"),
        ("value", "value\n", ""),
        ("", "x", ""),
        ("x", "", "x"),
    ],
)
def test_what_already_follows_is_taken_off(answer: str, suffix: str, left: str) -> None:
    assert without_overlap(answer, suffix) == left


@pytest.mark.parametrize("rest", ["", "  ", ")", '")', "]);", "):", " }"])
def test_closing_brackets_behind_the_cursor_allow_several_lines(rest: str) -> None:
    assert is_inert(rest)
    assert within_line("a\nb", rest) == "a\nb"


@pytest.mark.parametrize("rest", ["foo", ") + 1", "= 3", "(x"])
def test_words_behind_the_cursor_allow_one_line(rest: str) -> None:
    assert not is_inert(rest)
    assert within_line("a\r\nb", rest) == "a"


def test_the_rest_of_a_line_ends_at_any_line_end() -> None:
    assert [line_rest(suffix) for suffix in ("ab\nc", "ab\r\nc", "ab\rc", "ab")] == ["ab"] * 4


def test_a_cursor_inside_a_word_is_seen() -> None:
    assert splits_word("fo", "o")
    assert not splits_word("foo", "(")
    assert not splits_word("foo ", "bar")


def test_white_space_is_nothing() -> None:
    assert is_blank(" \n\t")
    assert changes_only_space("a b\n", "a  b")
    assert not changes_only_space("a b", "a c")


@pytest.mark.parametrize(
    ("line_prefix", "answer", "below", "repeated"),
    [
        ("    ", "total = compute(values)", "\n    total = compute(values)\n    return total\n", True),
        ("    ", "total = compute(value)", "\n    total = compute(values)\n", True),
        ("    ", "}", "\n}\n", False),
        ("x", "1 = y1", "\nx2 = y2\n", False),
        ("", "first_line()\nsecond_line()", "\nfirst_line()\nother()\n", False),
        ("done()", "\nreturn result", "\nreturn result\n", True),
        ("", "something_new()", "", False),
    ],
)
def test_an_answer_that_stands_below_already_is_repeated(
    line_prefix: str, answer: str, below: str, *, repeated: bool
) -> None:
    assert repeats_below(line_prefix, answer, below) is repeated


def test_an_answer_that_makes_the_line_like_the_one_above_is_repeated() -> None:
    assert repeats_above("    tot", "al = compute()", "x\n    total = compute()\n")
    assert not repeats_above("    tot", "al = compute(2)", "x\n    total = compute()\n")
    assert not repeats_above("    ", "}", "    }\n")


def test_an_edit_beside_or_in_a_secret_touches_it() -> None:
    text, masked = 'key = "hunter22"\nx = \n', 'key = "********"\nx = \n'
    assert touches_masked([TextEdit(9, 9, "a")], text, masked)
    assert touches_masked([TextEdit(7, 7, "a")], text, masked)
    assert touches_masked([TextEdit(0, 16, "")], text, masked)
    assert not touches_masked([TextEdit(21, 21, "1")], text, masked)
    assert not touches_masked([TextEdit(9, 9, "a")], text, text)


def test_a_masked_value_in_an_answer_is_seen_and_a_banner_is_not() -> None:
    assert has_mask('token = "****************"')
    assert has_mask("https://user:********@host")
    assert not has_mask("/**********************")
    assert not has_mask("f(**kwargs)")
