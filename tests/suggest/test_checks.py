"""Each case reads like an editor: `before<answer>after`, and what is left of the answer."""

from __future__ import annotations

import pytest

from calomel.suggest.checks.blank import changes_only_space, is_blank
from calomel.suggest.checks.line_rest import is_inert, line_rest, splits_word, within_line
from calomel.suggest.checks.overlap import without_overlap


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
