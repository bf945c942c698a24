"""A parameter that can be spared goes from the signature, the description, the body and the calls."""

from __future__ import annotations

import pytest
from tests.training.edits.told import told

from calomel.training.edits.parameter_removed import parameter_removed

UNUSED = {
    "python": (
        "def scan(a, old, b):\n    return a + b\n\n\nscan(1, 2, 3)\nscan(1, b=3, old=2)\n",
        "def scan(a, b):\n    return a + b\n\n\nscan(1, 3)\nscan(1, b=3)\n",
    ),
    "typescript": (
        "function scan(a: A, old?: B) {\n  return a;\n}\n\nscan(1, 2);\nscan(1);\n",
        "function scan(a: A) {\n  return a;\n}\n\nscan(1);\nscan(1);\n",
    ),
    "javascript": (
        (
            "/**\n * @param {A} a - one\n * @param {B} old - two\n */\nfunction scan(a, old) {\n  return a;\n"
            "}\n\nscan(1, 2);\n"
        ),
        "/**\n * @param {A} a - one\n */\nfunction scan(a) {\n  return a;\n}\n\nscan(1);\n",
    ),
    "go": (
        'package a\n\nfunc scan(old int, a string) string {\n\treturn a\n}\n\nvar b = scan(1, "x")\n',
        'package a\n\nfunc scan(a string) string {\n\treturn a\n}\n\nvar b = scan("x")\n',
    ),
    "rust": (
        (
            "impl T {\n    fn scan(&self, a: u8, old: u8) -> u8 {\n        a\n    }\n\n    fn b(&self) -> u8 {\n"
            "        self.scan(1, 2)\n    }\n}\n"
        ),
        (
            "impl T {\n    fn scan(&self, a: u8) -> u8 {\n        a\n    }\n\n    fn b(&self) -> u8 {\n"
            "        self.scan(1)\n    }\n}\n"
        ),
    ),
}


@pytest.mark.parametrize("language", UNUSED)
def test_an_unused_parameter_goes_with_its_arguments(language: str) -> None:
    before, after = UNUSED[language]
    stories = [story for story in told(parameter_removed, language, before) if story.text == before]
    ends = {story.states()[-1] for story in stories}
    assert after in ends
    story = next(story for story in stories if story.states()[-1] == after)
    assert "old" not in story.states()[1].split("scan(", 1)[1].split(")")[0]


SAME = {
    "python": (
        "def scan(a, size):\n    return read(a, size)\n\n\nscan(b, 16)\nscan(c, 16)\n",
        "def scan(a):\n    return read(a, 16)\n\n\nscan(b)\nscan(c)\n",
    ),
    "typescript": (
        "function scan(a: A, size: number) {\n  if (size) read(a);\n}\n\nscan(b, 16);\nscan(c, 16);\n",
        "function scan(a: A) {\n  const size = 16;\n  if (size) read(a);\n}\n\nscan(b);\nscan(c);\n",
    ),
    "go": (
        (
            "package a\n\nfunc scan(a A, fast bool) {\n\tif fast {\n\t\tread(a)\n\t}\n}\n\nfunc b() {\n"
            "\tscan(c, true)\n}\n"
        ),
        (
            "package a\n\nfunc scan(a A) {\n\tfast := true\n\tif fast {\n\t\tread(a)\n\t}\n}\n\nfunc b() {\n"
            "\tscan(c)\n}\n"
        ),
    ),
    "rust": (
        "fn scan(a: A, fast: bool) {\n    if fast {\n        read(a);\n    }\n}\n\nfn b() {\n    scan(c, true);\n}\n",
        (
            "fn scan(a: A) {\n    let fast = true;\n    if fast {\n        read(a);\n    }\n}\n\nfn b() {\n"
            "    scan(c);\n}\n"
        ),
    ),
}


@pytest.mark.parametrize("language", SAME)
def test_a_value_that_all_callers_give_takes_the_place_of_the_parameter(language: str) -> None:
    before, after = SAME[language]
    assert after in {story.states()[-1] for story in told(parameter_removed, language, before)}


def test_a_parameter_that_callers_need_stays() -> None:
    text = "def scan(a):\n    return a + 1\n\n\nscan(1)\nscan(2)\n"
    assert all(story.text != text for story in told(parameter_removed, "python", text))


def test_a_parameter_added_in_vain_is_taken_back() -> None:
    text = "def scan(a):\n    return a + 1\n\n\nscan(1)\nscan(2)\n"
    stories = told(parameter_removed, "python", text)
    assert len(stories) > 10
    assert {story.states()[-1] for story in stories} == {text}


def test_a_function_without_parameters_or_calls_has_no_story() -> None:
    assert told(parameter_removed, "go", "package a\n\nfunc scan(a int) {\n}\n") == []
