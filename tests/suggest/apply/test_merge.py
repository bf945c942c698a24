"""Cases are in files: title and path, the original, the update, and what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from calomel.suggest.apply.merge import merge

FOLDER = Path(__file__).parent / "cases"


class Case(NamedTuple):
    title: str
    path: str
    original: str
    update: str
    verdict: str
    expected: str


def cases() -> list[Case]:
    found = []
    for file in sorted(FOLDER.glob("*.txt")):
        for part in file.read_text(encoding="utf-8").split("#### ")[1:]:
            head, *sections = part.split("==== ")
            title, _, path = head.strip().partition(" | ")
            (_, original), (_, update), (verdict, expected) = (each.split("\n", 1) for each in sections)
            found.append(Case(title, path, original, update, verdict, expected))
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.title)
def test_a_snippet_is_merged(case: Case) -> None:
    merged = merge(case.original, case.update)
    if case.verdict == "merged":
        assert (merged.text, merged.warning) == (case.expected, None)
        return
    assert merged.text == case.original
    assert merged.warning is not None
    assert len(merged.ambiguous) == (int(case.expected) if case.verdict == "undecided" else 0)


ORIGINAL = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
UPDATE = "# ... existing code ...\ndef two():\n    return 22\n"
MERGED = "def one():\n    return 1\n\n\ndef two():\n    return 22\n"


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_are_those_of_the_file(end: str) -> None:
    assert merge(ORIGINAL.replace("\n", end), UPDATE).text == MERGED.replace("\n", end)
    assert merge(ORIGINAL, UPDATE.replace("\n", end)).text == MERGED


def test_a_file_without_a_last_line_end_stays_without() -> None:
    assert merge(ORIGINAL.rstrip("\n"), UPDATE).text == MERGED.rstrip("\n")
    assert merge(ORIGINAL, UPDATE.rstrip("\n")).text == MERGED


def test_a_byte_order_mark_stays() -> None:
    assert merge("\ufeff" + ORIGINAL, UPDATE).text == "\ufeff" + MERGED


def test_an_empty_file_becomes_the_snippet() -> None:
    assert merge("", "x = 1\n").text == "x = 1\n"


def test_markers_alone_change_nothing() -> None:
    merged = merge(ORIGINAL, "# ... existing code ...\n")
    assert (merged.text, merged.warning) == (ORIGINAL, None)


@pytest.mark.parametrize(
    ("original", "update", "says"),
    [
        pytest.param(ORIGINAL, "\n", "could not be placed", id="nothing"),
        pytest.param("x = 1\n" * 40_000, "# ...\ny = 2\n" * 500, "too long", id="more than can be compared"),
        pytest.param("x = 1\n" * 60_000, "# ...\nx = 2\n", "too long", id="lines"),
        pytest.param("xoxb-" * 30_000, "# ...\nx = 2\n", "too long", id="characters of a line"),
    ],
)
def test_what_is_refused_says_why(original: str, update: str, says: str) -> None:
    merged = merge(original, update)
    assert merged.text == original
    assert says in str(merged.warning)
