"""Parameters come and go and change places, and the calls follow."""

from __future__ import annotations

import re

import pytest
from tests.training.edits.told import told

from calomel.training.edits.parameters import parameter_added, parameter_removed, parameters_reordered

ADDED = {
    "python": (
        "use(scan(1))\n\n\ndef scan(a: int):\n    return a\n\n\nscan(\n    2,\n)\n",
        (
            r"use\(scan\(1, (?P<one>.+)\)\)\n\n\ndef scan\(a: int, (?P<name>\w+): (?:\w+)(?: = .+)?\):\n"
            r"    return a\n\n\n"
            r"scan\(\n    2,(?:\n    (?P<two>.+),)?\n\)\n"
        ),
    ),
    "typescript": (
        "use(scan(1));\n\nfunction scan(\n  a: number,\n): number {\n  return a;\n}\n",
        (
            r"use\(scan\(1, (?P<one>.+)\)\);\n\nfunction scan\(\n  a: number,\n"
            r"  (?P<name>\w+): \w+(?: = .+)?,\n\): number "
            r"\{\n  return a;\n\}\n"
        ),
    ),
    "javascript": (
        "use(scan(1));\n\nfunction scan(a) {\n  return a;\n}\n",
        r"use\(scan\(1, (?P<one>.+)\)\);\n\nfunction scan\(a, (?P<name>\w+)(?: = .+)?\) \{\n  return a;\n\}\n",
    ),
    "go": (
        "package a\n\nvar b = scan(1)\n\nfunc scan(a int) int {\n\treturn a\n}\n",
        (
            r"package a\n\nvar b = scan\(1, (?P<one>.+)\)\n\nfunc scan\(a int, (?P<name>\w+) \w+\) int \{\n"
            r"\treturn a\n\}\n"
        ),
    ),
    "rust": (
        'fn main() {\n    println!("{}", scan(1));\n}\n\nfn scan(a: u8) -> u8 {\n    a\n}\n',
        (
            r'fn main\(\) \{\n    println!\("\{\}", scan\(1, (?P<one>.+)\)\);\n\}\n\n'
            r"fn scan\(a: u8, (?P<name>\w+): &?\w+\) -> u8 \{\n    a\n\}\n"
        ),
    ),
}


@pytest.mark.parametrize("language", ADDED)
def test_a_new_parameter_comes_into_the_signature_first_and_then_into_the_calls(language: str) -> None:
    text, pattern = ADDED[language]
    stories = told(parameter_added, language, text)
    assert len(stories) > 10
    for story in stories:
        end = story.states()[-1]
        found = re.fullmatch(pattern, end)
        assert found is not None, end
        assert found["name"] in story.changes[0].text
        assert story.states()[1].count(found["name"]) >= 1
    assert len({re.fullmatch(pattern, story.states()[-1])["name"] for story in stories}) > 8  # type: ignore[index]


def test_a_value_that_all_callers_have_is_handed_on() -> None:
    text = (
        "package a\n\nfunc Run(ctx context.Context, n int) {\n\tstep(n)\n}\n\n"
        "func More(ctx context.Context) {\n\tstep(2)\n}\n\nfunc step(n int) {\n\tprint(n)\n}\n"
    )
    ends = {story.states()[-1] for story in told(parameter_added, "go", text)}
    assert (
        text.replace("step(n)\n", "step(ctx, n)\n")
        .replace("step(2)", "step(ctx, 2)")
        .replace("step(n int)", "step(ctx context.Context, n int)")
        in ends
    )


def test_a_function_that_is_handed_around_keeps_its_signature() -> None:
    assert told(parameter_added, "python", "def scan(a):\n    return a\n\n\nscan(1)\nmap(scan, [1])\n") == []


def test_a_call_that_spreads_its_arguments_cannot_be_followed() -> None:
    assert told(parameter_added, "typescript", "function scan(a) {}\nscan(...rest);\n") == []


def test_a_function_without_calls_gets_no_parameter() -> None:
    assert told(parameter_added, "go", "package a\n\nfunc scan(a int) {\n}\n") == []


def test_a_parameter_added_in_vain_is_taken_back() -> None:
    text = "def scan(a):\n    return a + 1\n\n\nscan(1)\nscan(2)\n"
    stories = told(parameter_removed, "python", text)
    assert len(stories) > 10
    assert {story.states()[-1] for story in stories} == {text}


def test_a_function_without_calls_loses_no_parameter() -> None:
    assert told(parameter_removed, "go", "package a\n\nfunc scan(a int) {\n}\n") == []


REORDERED = {
    "python": (
        "def scan(self_, b, size=1):\n    return b\n\n\nscan(1, 2)\nscan(f(3, 4), 5, size=6)\nscan(b=7, self_=8)\n",
        "def scan(b, self_, size=1):\n    return b\n\n\nscan(2, 1)\nscan(5, f(3, 4), size=6)\nscan(b=7, self_=8)\n",
    ),
    "typescript": (
        "class A {\n  scan(\n    a: X,\n    b: Y,\n  ) {}\n\n  run() {\n    this.scan(1, 'ü');\n  }\n}\n",
        "class A {\n  scan(\n    b: Y,\n    a: X,\n  ) {}\n\n  run() {\n    this.scan('ü', 1);\n  }\n}\n",
    ),
    "javascript": ("const scan = (a, b) => a;\nscan(1, 2);\n", "const scan = (b, a) => a;\nscan(2, 1);\n"),
    "go": (
        'package a\n\nfunc (t *T) scan(a int, b string) {\n}\n\nfunc (t *T) run() {\n\tt.scan(1, "x")\n}\n',
        'package a\n\nfunc (t *T) scan(b string, a int) {\n}\n\nfunc (t *T) run() {\n\tt.scan("x", 1)\n}\n',
    ),
    "rust": (
        (
            'impl T {\n    fn scan(&self, a: u8, b: &str) {}\n\n    fn run(&self) {\n        self.scan(1, "x");\n'
            "    }\n}\n"
        ),
        (
            'impl T {\n    fn scan(&self, b: &str, a: u8) {}\n\n    fn run(&self) {\n        self.scan("x", 1);\n'
            "    }\n}\n"
        ),
    ),
}


@pytest.mark.parametrize("language", REORDERED)
def test_two_parameters_and_their_arguments_change_places(language: str) -> None:
    before, after = REORDERED[language]
    (story,) = told(parameters_reordered, language, before)
    assert story.states()[-1] == after
    assert "scan" in before[: story.changes[0].start].splitlines()[-1] or "(\n" in before[: story.changes[0].start]


def test_of_three_one_moves_to_the_front_or_changes_with_its_neighbour() -> None:
    text = "def scan(a, b, c):\n    return a\n\n\nscan(1, 2, 3)\n"
    ends = {story.states()[-1].splitlines()[0] for story in told(parameters_reordered, "python", text)}
    assert ends == {"def scan(b, a, c):", "def scan(a, c, b):", "def scan(c, a, b):"}


def test_a_parameter_with_a_default_keeps_its_place() -> None:
    assert told(parameters_reordered, "python", "def scan(a, b=1):\n    return a\n\n\nscan(1, 2)\n") == []


def test_calls_by_name_alone_need_nothing() -> None:
    assert told(parameters_reordered, "python", "def scan(a, b):\n    return a\n\n\nscan(b=1, a=2)\n") == []
