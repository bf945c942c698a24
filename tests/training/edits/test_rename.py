"""A rename reaches every place that means the same, and no other."""

from __future__ import annotations

import re

import pytest
from tests.training.edits.told import inserted, told

from calomel.training.edits.rename import rename
from calomel.training.edits.story import Story


def renamed(story: Story) -> tuple[str, str]:
    """The old name and the new one."""
    first = story.changes[0]
    return story.text[first.start : first.end], first.text


FUNCTIONS = {
    "python": "def fetch_rows(a):\n    return a\n\n\nb = fetch_rows(1)\nc = fetch_rows(fetch_rows(b))\n",
    "typescript": "g(fetchRows(1));\n\nfunction fetchRows(a: number) {\n  return a;\n}\n\nfetchRows(2);\n",
    "javascript": "g(fetchRows(1));\n\nfunction fetchRows(a) {\n  return a;\n}\n\nfetchRows(2);\n",
    "go": "package a\n\nvar b = fetchRows(1)\n\nfunc fetchRows(a int) int {\n\treturn a\n}\n\nvar c = fetchRows(b)\n",
    "rust": (
        'fn main() {\n    println!("{}", fetch_rows(1));\n}\n\nfn fetch_rows(a: u8) -> u8 {\n    a\n}\n\n'
        "fn other() -> u8 {\n    fetch_rows(2)\n}\n"
    ),
}


@pytest.mark.parametrize("language", FUNCTIONS)
def test_a_function_is_renamed_at_its_definition_and_then_at_its_calls(language: str) -> None:
    text = FUNCTIONS[language]
    old = "fetch_rows" if language in ("python", "rust") else "fetchRows"
    stories = [story for story in told(rename, language, text) if renamed(story)[0] == old]
    assert stories
    for story in stories:
        new = renamed(story)[1]
        assert story.states()[-1] == re.sub(rf"\b{old}\b", new, text)
        places = [change.start for change in story.changes]
        assert text[: places[0]].rsplit(maxsplit=1)[-1] in ("def", "function", "func", "fn")
        assert places[1:] == sorted(places[1:])
        assert new.isidentifier()
        assert ("_" in new.strip("_")) or language not in ("python", "rust") or new.islower()
        assert re.search(rf"\b{new}\b", text) is None


LOCALS = {
    "python": (
        ("def f(buffer):\n    n = len(buffer)\n    return buffer[:n], g.buffer, h(buffer=buffer)\n"),
        "buffer",
        4,
    ),
    "typescript": ("function f(buffer: T) {\n  g(buffer, a.buffer);\n  return { buffer };\n}\n", "buffer", 3),
    "javascript": ("function f(buffer) {\n  g(buffer, a.buffer);\n  return { buffer };\n}\n", "buffer", 3),
    "go": (
        "package a\n\nfunc f(buffer []byte) T {\n\tg(buffer, a.buffer)\n\treturn T{buffer: buffer}\n}\n",
        "buffer",
        3,
    ),
    "rust": (
        (
            'fn f(buffer: &[u8]) -> T {\n    g(buffer, a.buffer);\n    println!("{}", buffer.len());\n'
            "    T { buffer }\n}\n"
        ),
        "buffer",
        4,
    ),
}


@pytest.mark.parametrize("language", LOCALS)
def test_a_parameter_is_renamed_where_the_name_is_its_own(language: str) -> None:
    text, old, places = LOCALS[language]
    stories = [story for story in told(rename, language, text) if renamed(story)[0] == old]
    assert stories
    for story in stories:
        new, end = renamed(story)[1], story.states()[-1]
        assert len(story.changes) == places
        assert len(re.findall(r"\b(?:a|g)\.buffer\b", end)) == 1
        assert len(re.findall(rf"\b{new}\b", end)) == places
        if "{ buffer }" in text:
            assert f"buffer: {new}" in end


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "def load(path):\n    return open(path)\n\n\nload(path=2)\n"),
        ("rust", 'fn load(path: u8) {\n    println!("{path}", path);\n}\n'),
    ],
)
def test_a_local_name_that_stands_where_none_is_looked_for_is_left_alone(language: str, text: str) -> None:
    assert all(renamed(story)[0] != "path" for story in told(rename, language, text))


def test_what_a_field_of_another_file_is_called_stays() -> None:
    text = "from a import load_all\n\nload_all()\n"
    assert told(rename, "python", text) == []


def test_a_type_is_renamed_with_its_uses() -> None:
    text = (
        "struct RowReader {\n    a: u8,\n}\n\nimpl RowReader {\n    fn a(&self) -> Option<RowReader> {\n"
        "        None\n    }\n}\n"
    )
    stories = [story for story in told(rename, "rust", text) if renamed(story)[0] == "RowReader"]
    assert stories
    for story in stories:
        assert story.states()[-1] == text.replace("RowReader", renamed(story)[1])


def test_a_name_with_two_meanings_is_left_alone() -> None:
    text = "def first(value):\n    return [value for value in value]\n\n\nfirst\n"
    assert all(renamed(story)[0] != "first" for story in told(rename, "python", text))


def test_new_names_vary() -> None:
    names = {name for story in told(rename, "python", FUNCTIONS["python"], 80) for name in inserted(story)}
    assert len(names) > 8


def test_a_file_without_names_has_no_story() -> None:
    assert told(rename, "python", "print(1)\n") == []


def test_a_definition_behind_a_use_comes_first() -> None:
    text = "def first():\n    return calculate(1)\n\n\ndef calculate(n):\n    return n\n"
    stories = [
        story for story in told(rename, "python", text) if story.text[story.changes[0].start :].startswith("calculate")
    ]
    assert stories
    for story in stories:
        assert story.changes[0].start == text.index("calculate(n)")


def test_imported_names_are_given_by_others() -> None:
    assert told(rename, "python", "from pathlib import PurePath\n\nprint(PurePath())\n") == []
