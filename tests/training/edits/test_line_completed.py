"""A line more, of words that were there before."""

from __future__ import annotations

import pytest
from tests.training.edits.told import inserted, told

from calomel.training.edits.line_completed import line_completed

CASES = {
    "python": (
        "def f(rows, total):\n    count = 1\n    print(rows, total, count)\n",
        "\n    print(rows, total, count)",
    ),
    "typescript": (
        "function f(rows: number[], total: number) {\n  if (rows) total = 2;\n  rows.push(total, total);\n}\n",
        "\n  rows.push(total, total);",
    ),
    "javascript": (
        "function f(rows, push, total) {\n  if (rows) total = 2;\n  rows.push(total, total);\n}\n",
        "\n  rows.push(total, total);",
    ),
    "go": (
        "package a\n\nfunc f(rows []int) {\n\tn := 1\n\tf(append(rows, n))\n\tf(append(rows, 1))\n}\n",
        "\n\tf(append(rows, 1))",
    ),
    "rust": (
        "fn f(rows: Rows, total: u8) {\n    let n = 1;\n    f(rows, total + n);\n}\n",
        "\n    f(rows, total + n);",
    ),
}


@pytest.mark.parametrize("language", CASES)
def test_a_line_is_added_behind_the_one_before_it(language: str) -> None:
    text, line = CASES[language]
    stories = {inserted(story)[0]: story for story in told(line_completed, language, text)}
    assert line in stories
    assert len(stories[line].changes) == 1
    assert stories[line].text == text.replace(line, "", 1)
    assert stories[line].states()[-1] == text


def test_a_line_of_words_from_nowhere_is_no_story() -> None:
    assert told(line_completed, "python", "x = 1\nfrobnicate(quux, garply)\n") == []
