"""What makers tell of a file: renames, parameters that come and go, and the same edit at several places."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from calomel.training.edits.parameters import parameter_added, parameter_removed
from calomel.training.edits.rename import rename
from calomel.training.edits.repeated import repeated_edit
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story

SUFFIXES = {"python": "py", "typescript": "ts", "javascript": "js", "go": "go", "rust": "rs"}
Maker = Callable[[Source, random.Random], Story | None]


def told(maker: Maker, language: str, text: str, seeds: int = 60) -> list[Story]:
    """Different stories of a file, by their texts; each ends in a file that parses."""
    source = Source(f"src/code.{SUFFIXES[language]}", language, text)
    assert not source.has_error
    found: dict[tuple[str, str], Story] = {}
    for seed in range(seeds):
        story = maker(source, random.Random(seed))
        if story is not None:
            states = story.states()
            assert (story.kind, story.language, story.path) == (maker.__name__, language, source.path)
            assert states[0] != states[-1]
            assert not source.with_text(states[0]).has_error
            assert not source.with_text(states[-1]).has_error
            found[states[0], states[-1]] = story
    return list(found.values())


def renamed(story: Story) -> tuple[str, str]:
    """The old name and the new one."""
    first = story.changes[0]
    return story.text[first.start : first.end], first.text


FUNCTIONS = {
    "python": "def fetch_rows(a):\n    return a\n\n\nb = fetch_rows(1)\nc = fetch_rows(fetch_rows(b))\n",
    "rust": (
        'fn main() {\n    println!("{}", fetch_rows(1));\n}\n\nfn fetch_rows(a: u8) -> u8 {\n    a\n}\n\n'
        "fn other() -> u8 {\n    fetch_rows(2)\n}\n"
    ),
}


@pytest.mark.parametrize("language", FUNCTIONS)
def test_a_function_is_renamed_at_its_definition_and_then_at_its_calls(language: str) -> None:
    text = FUNCTIONS[language]
    stories = [story for story in told(rename, language, text) if renamed(story)[0] == "fetch_rows"]
    assert stories
    for story in stories:
        new = renamed(story)[1]
        assert story.states()[-1] == re.sub(r"\bfetch_rows\b", new, text)
        places = [change.start for change in story.changes]
        assert text[: places[0]].rsplit(maxsplit=1)[-1] in ("def", "fn")
        assert places[1:] == sorted(places[1:])
        assert new.isidentifier()
        assert "_" in new.strip("_") or new.islower()
        assert re.search(rf"\b{new}\b", text) is None


ADDED = {
    "python": (
        "use(scan(1))\n\n\ndef scan(a: int):\n    return a\n\n\nscan(\n    2,\n)\n",
        (
            r"use\(scan\(1, (?P<one>.+)\)\)\n\n\ndef scan\(a: int, (?P<name>\w+): (?:\w+)(?: = .+)?\):\n"
            r"    return a\n\n\n"
            r"scan\(\n    2,(?:\n    (?P<two>.+),)?\n\)\n"
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


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("python", "def load(path):\n    return open(path)\n\n\nload(path=2)\n", "path"),
        ("rust", 'fn load(path: u8) {\n    println!("{path}", path);\n}\n', "path"),
        ("python", "def first(value):\n    return [value for value in value]\n\n\nfirst\n", "first"),
        ("python", "from a import load_all\n\nload_all()\n", "load_all"),
        ("python", "from pathlib import PurePath\n\nprint(PurePath())\n", "PurePath"),
    ],
)
def test_a_name_that_has_other_places_or_other_meanings_is_left_alone(language: str, text: str, name: str) -> None:
    assert all(renamed(story)[0] != name for story in told(rename, language, text))


@pytest.mark.parametrize(
    ("maker", "language", "text"),
    [
        (rename, "python", "print(1)\n"),
        # Handed around, spread, and without a call: nobody can follow.
        (parameter_added, "python", "def scan(a):\n    return a\n\n\nscan(1)\nmap(scan, [1])\n"),
        (parameter_added, "typescript", "function scan(a) {}\nscan(...rest);\n"),
        (parameter_added, "go", "package a\n\nfunc scan(a int) {\n}\n"),
        (parameter_removed, "go", "package a\n\nfunc scan(a int) {\n}\n"),
        (repeated_edit, "typescript", "export const one = 1;\nexport const two = 2;\n"),
    ],
)
def test_where_nothing_can_be_told_there_is_no_story(maker: Maker, language: str, text: str) -> None:
    assert told(maker, language, text) == []
