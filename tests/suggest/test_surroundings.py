from __future__ import annotations

import pytest

from calomel.suggest.edit import Planned
from calomel.suggest.signals import Surroundings, surroundings


def at(text: str, *inserted: str) -> Surroundings:
    """`|` is the cursor, and what is inserted there."""
    cursor = text.index("|")
    return surroundings(text.replace("|", "", 1), cursor, [Planned(cursor, cursor, each, "") for each in inserted])


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("call(|", "open"),
        ("call(a) |", "close"),
        ('print("|', "quote"),
        ("a, |", "comma"),
        ("self.|", "dot"),
        ("if a:|", "colon"),
        ("x = |", "operator"),
        ("retu|", "word"),
        ("snake_|", "word"),
        ("größe|", "word"),
        ("above\n    |", "start"),
        ("|", "start"),
    ],
)
def test_the_character_before_the_cursor_has_a_kind(text: str, before: str) -> None:
    assert at(text).before == before


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_line_around_the_cursor_is_measured_without_its_white_space(end: str) -> None:
    found = at(f"long line above{end}    total = su|  )  ;{end}below{end}")
    assert (found.line_before, found.line_after, found.word_before) == (10, 2, 2)
    found = at(f"above{end}|{end}below")
    assert (found.line_before, found.line_after, found.word_before) == (0, 0, 0)


def test_words_that_the_document_has_are_known() -> None:
    text = "total = price + tax\n|"
    assert at(text, "total = price").known_words == 1.0
    assert at(text, "total = other_name").known_words == 0.5
    assert at(text, "unheard").known_words == 0.0
    # Short ones and numbers are no words.
    assert at(text, "a + 12)").known_words is None
    assert at(text).known_words is None
    # Each counts once, in all edits together.
    assert at(text, "price price unheard", "unheard price").known_words == 0.5


def test_a_first_line_that_stands_there_already_is_a_repetition() -> None:
    text = "    pass\n    return 1\n    pass\n|"
    assert at(text, "\n    pass\n").repeats == 2
    assert at(text, "pass\nother()").repeats == 2
    assert at(text, "raise").repeats == 0
    assert at(text, "\n  \n").repeats == 0
    assert at("x = 0\n" * 50 + "|", "x = 0").repeats == 5


def test_a_long_line_without_words_is_measured_too() -> None:
    found = at("=" * 10_000 + "a" * 500 + "|", "b" * 100)
    assert (found.line_before, found.word_before, found.before) == (10_500, 64, "word")
