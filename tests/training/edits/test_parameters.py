"""Parameters come and go, and the calls follow."""

from __future__ import annotations

import re

import pytest
from tests.training.edits.told import told

from calomel.training.edits.parameters import parameter_added, parameter_removed

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
