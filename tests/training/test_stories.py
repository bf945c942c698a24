"""What every story of every maker promises, on whole files; stories on disk, and the parts of files they are about."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from calomel.prompts.parts import Edit
from calomel.training.corpus.shards import CorpusError
from calomel.training.edits.story import Story, crop, read_stories, sequential, write_stories


def test_changes_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlaps"):
        sequential([Edit(0, 3, "a"), Edit(2, 4, "b")])
    with pytest.raises(ValueError, match="not inside"):
        Edit(2, 9, "").apply("short")


LINES = "".join(f"line {number}\n" for number in range(100))


def story(text: str, *changes: Edit) -> Story:
    return Story("rename", "python", "a/b.py", text, changes)


def test_stories_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    told = [
        story("größe = 1\n", Edit(0, 5, "länge\n")),
        story("a\r\nb\u2028c\n", Edit(0, 0, ""), Edit(1, 2, "x")),
    ]
    write_stories(tmp_path / "edits.jsonl.zst", told)
    assert list(read_stories(tmp_path / "edits.jsonl.zst")) == told
    assert [path.name for path in tmp_path.iterdir()] == ["edits.jsonl.zst"]


def test_stories_that_are_not_there_are_asked_for_by_their_command(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="calomel edits"):
        list(read_stories(tmp_path / "none.jsonl.zst"))


def test_a_crop_is_whole_lines_anywhere_around_the_changes_and_makes_the_same(tmp_path: Path) -> None:
    at = LINES.index("line 50")
    whole = story(LINES, Edit(at, at + 4, "LINE"), Edit(at, at, "more\nand more\n"), Edit(at + 30, at + 31, ""))
    places = set()
    for seed in range(20):
        cropped = crop(whole, random.Random(seed), 200)
        assert cropped is not None
        assert 150 <= len(cropped.text) <= 200
        head, _, tail = LINES.partition(cropped.text)
        assert head == "" or head.endswith("\n")
        assert [head + state + tail for state in cropped.states()] == list(whole.states())
        places.add(cropped.changes[0].start)
    assert min(places) < 40
    assert max(places) > 120
    assert crop(whole, random.Random(0)) == whole
    far = story(LINES, Edit(0, 1, "x"), Edit(len(LINES) - 5, len(LINES), ""))
    assert crop(far, random.Random(0), 300) is None
