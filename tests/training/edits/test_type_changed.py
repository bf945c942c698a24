"""A type changes where a name is declared, and at all other declarations of it."""

from __future__ import annotations

import re

import pytest
from tests.training.edits.told import told

from calomel.training.edits.type_changed import type_changed

CASES = {
    "python": "def f(size: int, n: str):\n    return size\n\n\nclass A:\n    size: int\n",
    "typescript": "function f(size: number, n: string) {}\n\ninterface A {\n  size: number;\n}\n",
    "go": "package a\n\nfunc f(size int, n string) {\n}\n\ntype A struct {\n\tsize int\n}\n",
    "rust": "fn f(size: u32, n: &str) {}\n\nstruct A {\n    size: u32,\n}\n",
}


@pytest.mark.parametrize("language", CASES)
def test_a_field_comes_first_and_the_parameters_of_its_name_follow(language: str) -> None:
    text = CASES[language]
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
