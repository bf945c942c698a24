from __future__ import annotations

from collections import Counter

import pytest
from tests.bench.measure import count

from calomel.bench.holes import (
    INSIDE_INDENT,
    INSIDE_LINE,
    INSIDE_TOKEN,
    KINDS,
    REST_OF_LINE,
    SEVERAL_LINES,
    make_holes,
)
from calomel.report.heldout import HeldoutFile, Hole

Files = tuple[HeldoutFile, ...]


def holes(files: Files, kind: str | None = None, seed: int = 1, per_kind: int = 40) -> list[Hole]:
    made = make_holes(files, count, per_kind=per_kind, seed=seed)
    return [hole for hole in made if kind in {None, hole.row}]


def test_the_same_seed_cuts_the_same_holes(files: Files) -> None:
    assert holes(files) == holes(files)
    assert holes(files) != holes(files, seed=2)


def test_prefix_answer_and_suffix_are_the_file(files: Files) -> None:
    texts = {file.path: file.text for file in files}
    assert all(hole.prefix + hole.answer + hole.suffix == texts[hole.path or ""] for hole in holes(files))


def test_every_kind_and_language_gets_its_share(files: Files) -> None:
    counts = Counter((hole.row, hole.language) for hole in holes(files))
    assert counts == {(kind, language): 20 for kind in KINDS for language in ("go", "python")}


def test_the_beginning_of_a_run_holds_all_kinds_and_languages(files: Files) -> None:
    beginning = holes(files)[: 2 * len(KINDS)]
    assert len({(hole.row, hole.language) for hole in beginning}) == len(beginning)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_shows_something_and_is_short(files: Files, kind: str) -> None:
    most = 96 if kind == SEVERAL_LINES else 24
    assert all(hole.answer.strip() and count(hole.answer) <= most for hole in holes(files, kind))


def test_rest_of_line_starts_behind_something_and_ends_with_the_line(files: Files) -> None:
    for hole in holes(files, REST_OF_LINE):
        assert hole.prefix.rsplit("\n", 1)[-1].strip()
        assert "\n" not in hole.answer
        assert hole.suffix.startswith("\n")


def test_some_cursors_stand_inside_words(files: Files) -> None:
    inside = [hole for hole in holes(files, REST_OF_LINE) if hole.prefix[-1].isalnum() and hole.answer[0].isalnum()]
    assert 0 < len(inside) < len(holes(files, REST_OF_LINE))


def test_inside_line_leaves_visible_text_on_both_sides(files: Files) -> None:
    for hole in holes(files, INSIDE_LINE):
        assert hole.prefix.rsplit("\n", 1)[-1].strip()
        assert hole.suffix.split("\n", 1)[0].strip()


def test_inside_token_is_inside_one_identifier(files: Files) -> None:
    for hole in holes(files, INSIDE_TOKEN):
        assert (hole.prefix[-1] + hole.answer + hole.suffix[0]).isidentifier()


def test_inside_indent_starts_in_the_indentation(files: Files) -> None:
    for hole in holes(files, INSIDE_INDENT):
        assert not hole.prefix.rsplit("\n", 1)[-1].strip()
        assert hole.answer[0] in " \t"
        assert hole.suffix.startswith("\n")


def test_several_lines_are_two_to_four_and_begin_in_both_ways(files: Files) -> None:
    several = holes(files, SEVERAL_LINES)
    assert {1 <= hole.answer.count("\n") <= 3 for hole in several} == {True}
    assert {hole.prefix.endswith("\n") or not hole.prefix for hole in several} == {True, False}
    assert all(hole.suffix.startswith("\n") for hole in several)


def test_lines_that_nobody_typed_are_left_alone() -> None:
    text = "x = 1\n" + "y = " + "+".join(["value"] * 100) + "\nz = 3\n"
    made = make_holes((HeldoutFile("p", "a.py", "python", text),), count, per_kind=30, seed=1)
    assert made
    assert not [hole for hole in made if "value" in hole.answer]
