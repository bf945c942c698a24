"""The same edit at several places."""

from __future__ import annotations

import pytest
from tests.training.edits.told import inserted, told

from calomel.training.edits.repeated import repeated_edit

CASES = {
    "python": (
        "async def f(a):\n    x = await a.one()\n    y = await a.two()\n    z = await a.three()\n    return x, y, z\n",
        "async def f(a):\n    x = a.one()\n    y = a.two()\n    z = a.three()\n    return x, y, z\n",
        ["await "] * 3,
    ),
    "typescript": (
        "export const one = 1;\nexport const two = 2;\nexport const three = 3;\n",
        "const one = 1;\nconst two = 2;\nconst three = 3;\n",
        ["export "] * 3,
    ),
    "javascript": (
        "if (a) {\n  one(b === 1);\n  two(c === 2);\n  three(d === 3);\n}\n",
        "if (a) {\n  one(b == 1);\n  two(c == 2);\n  three(d == 3);\n}\n",
        ["==="] * 3,
    ),
    "go": (
        "package a\n\ntype A struct {\n\tOneMore int\n\tTwoMore int\n\tSixMore int\n}\n",
        "package a\n\ntype A struct {\n\tOneMore int64\n\tTwoMore int64\n\tSixMore int64\n}\n",
        ["int"] * 3,
    ),
    "rust": (
        "struct A {\n    pub one: u8,\n    pub two: u8,\n    pub three: u8,\n}\n",
        "struct A {\n    one: u8,\n    two: u8,\n    three: u8,\n}\n",
        ["pub "] * 3,
    ),
}


@pytest.mark.parametrize("language", CASES)
def test_lines_that_are_alike_are_edited_alike(language: str) -> None:
    text, before, changes = CASES[language]
    stories = {story.text: story for story in told(repeated_edit, language, text)}
    assert before in stories
    assert inserted(stories[before]) == changes
    assert stories[before].states()[-1] == text


def test_lines_are_edited_from_top_to_bottom() -> None:
    for story in told(repeated_edit, "python", CASES["python"][0]):
        starts = [change.start for change in story.changes]
        assert starts == sorted(starts)


def test_two_lines_are_no_repetition() -> None:
    assert told(repeated_edit, "typescript", "export const one = 1;\nexport const two = 2;\n") == []
