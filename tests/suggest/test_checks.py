"""Each case reads like an editor: `before<answer>after`, and what is left of the answer."""

from __future__ import annotations

import pytest
from tests.suggest.editor import editing

from calomel.suggest.edit import Suggestion
from calomel.suggest.fitting import (
    changes_only_space,
    is_blank,
    is_inert,
    line_rest,
    splits_word,
    within_line,
    without_echo,
    without_overlap,
)
from calomel.suggest.silence import Silence


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
    ("prefix", "answer", "left"),
    [
        ("    return ", "return width * height", "width * height"),
        ("    return ", "returned", "returned"),
        ("export ", "export export class", "class"),
        ("x = not ", "not y", "not y"),
        ("returned ", "turned x", "turned x"),
        ("a\n", "a b", "a b"),
    ],
)
def test_the_word_before_the_cursor_is_not_said_again(prefix: str, answer: str, left: str) -> None:
    assert without_echo(prefix, answer) == left


async def test_a_bare_return_is_not_answered_with_another_one() -> None:
    async with editing("def area(width, height):\n    retur|\n", "return width * height") as editor:
        editor.type("n ")
        answer = await editor.inline()
        assert isinstance(answer, Suggestion)
        assert [edit.text for edit in answer.edits] == ["width * height"]


async def test_the_brackets_that_the_line_above_ends_with_are_not_said_again() -> None:
    async with editing("    self.names.remove(name)|\n", "(name)") as editor:
        editor.type("\n    ")
        answer = await editor.inline()
        assert isinstance(answer, Silence)
        assert answer.reason == "repeats_above"
