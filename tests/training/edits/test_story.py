"""Stories on disk, and the parts of files that they are about."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from calomel.training.corpus.shards import CorpusError
from calomel.training.edits.story import Change, Story, crop, read_stories, write_stories

LINES = "".join(f"line {number}\n" for number in range(100))


def story(text: str, *changes: Change) -> Story:
    return Story("rename", "python", "a/b.py", text, changes)


def test_stories_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    told = [
        story("größe = 1\n", Change(0, 5, "länge\n")),
        story("a\r\nb\u2028c\n", Change(0, 0, ""), Change(1, 2, "x")),
    ]
    write_stories(tmp_path / "edits.jsonl.zst", told)
    assert list(read_stories(tmp_path / "edits.jsonl.zst")) == told
    assert [path.name for path in tmp_path.iterdir()] == ["edits.jsonl.zst"]


@pytest.mark.parametrize("seed", range(20))
def test_a_crop_is_whole_lines_and_makes_the_same_changes(seed: int) -> None:
    at = LINES.index("line 50")
    whole = story(LINES, Change(at, at + 4, "LINE"), Change(at, at, "more\nand more\n"), Change(at + 30, at + 31, ""))
    cropped = crop(whole, random.Random(seed), 200)
    assert cropped is not None
    assert 150 <= len(cropped.text) <= 200
    head, _, tail = LINES.partition(cropped.text)
    assert head == "" or head.endswith("\n")
    assert [head + state + tail for state in cropped.states()] == list(whole.states())


def test_a_small_text_is_not_cropped() -> None:
    whole = story(LINES, Change(3, 4, "x"))
    assert crop(whole, random.Random(0)) == whole


def test_changes_too_far_apart_are_no_story() -> None:
    assert crop(story(LINES, Change(0, 1, "x"), Change(len(LINES) - 5, len(LINES), "")), random.Random(0), 300) is None


def test_a_change_at_the_very_end_keeps_the_last_lines() -> None:
    cropped = crop(story(LINES, Change(len(LINES), len(LINES), "end\n")), random.Random(1), 100)
    assert cropped is not None
    assert cropped.states()[-1].endswith("line 99\nend\n")


def test_the_changed_lines_stand_anywhere_in_a_crop() -> None:
    at = LINES.index("line 50")
    whole = story(LINES, Change(at, at + 4, "LINE"))
    crops = [crop(whole, random.Random(seed), 300) for seed in range(30)]
    places = {cropped.changes[0].start for cropped in crops if cropped}
    assert min(places) < 60
    assert max(places) > 220


def test_stories_that_are_not_there_are_asked_for_by_their_command(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="calomel edits"):
        list(read_stories(tmp_path / "none.jsonl.zst"))
