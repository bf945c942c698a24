"""The same edit at several places."""

from __future__ import annotations

import re

import pytest
from tests.training.edits.told import inserted, told

from calomel.training.edits.repeated import repeated_edit, type_changed

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


CASES_TYPES = {
    "python": "def f(size: int, n: str):\n    return size\n\n\nclass A:\n    size: int\n",
    "typescript": "function f(size: number, n: string) {}\n\ninterface A {\n  size: number;\n}\n",
    "go": "package a\n\nfunc f(size int, n string) {\n}\n\ntype A struct {\n\tsize int\n}\n",
    "rust": "fn f(size: u32, n: &str) {}\n\nstruct A {\n    size: u32,\n}\n",
}


@pytest.mark.parametrize("language", CASES_TYPES)
def test_a_field_comes_first_and_the_parameters_of_its_name_follow(language: str) -> None:
    text = CASES_TYPES[language]
    kind = {"python": "int", "typescript": "number", "go": "int", "rust": "u32"}[language]
    stories = told(type_changed, language, text)
    assert len(stories) > 1
    for story in stories:
        first, second = story.changes
        assert first.text == second.text
        assert first.start > second.start
        assert story.states()[-1] == re.sub(rf"(?<=size[: ]){kind}|(?<=size: ){kind}", first.text, text)


def test_a_default_is_written_as_the_type_wants_it() -> None:
    text = "class A:\n    rate: int = 2\n\n    def set(self, rate: int = 2):\n        self.rate = rate\n"
    ends = {story.states()[-1] for story in told(type_changed, "python", text)}
    assert text.replace("int = 2", "float = 2.0") in ends
    assert text.replace("int = 2", 'str = "2"') in ends


def test_the_result_of_a_getter_follows() -> None:
    text = "package a\n\ntype A struct {\n\tname string\n}\n\nfunc GetName() string {\n\treturn b\n}\n"
    ends = {story.states()[-1] for story in told(type_changed, "go", text)}
    assert text.replace("string", "[]byte") in ends


@pytest.mark.parametrize("text", ["def f(a: int):\n    return a\n", "def f(a, b):\n    return a\n"])
def test_a_type_that_stands_once_or_nowhere_has_no_story(text: str) -> None:
    assert told(type_changed, "python", text) == []
