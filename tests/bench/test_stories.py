from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.stories_made import BILL, line, rename, write_stories

from calomel.report.heldout import BenchDataError
from calomel.report.stories import Change, composed, read_stories


def test_stories_are_read_as_they_were_written(tmp_path: Path) -> None:
    story, other = read_stories(write_stories(tmp_path / "s.zst", rename(), line()))
    assert (story.kind, story.language, story.path, story.text) == ("rename", "python", "shop/bill.py", BILL)
    assert story.after(len(story.changes)) == BILL.replace("total", "amount")
    assert other.after(1).count("print") == 1
    assert story.id != other.id
    assert story.id == read_stories(tmp_path / "s.zst")[0].id


def test_a_file_that_is_absent_or_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchDataError, match="does not exist"):
        read_stories(tmp_path / "none.zst")
    (tmp_path / "bad.zst").write_bytes(b"no")
    with pytest.raises(BenchDataError, match=r"bad\.zst is damaged"):
        read_stories(tmp_path / "bad.zst")
    row = {**line(), "changes": [[0, 10_000, ""]]}
    with pytest.raises(BenchDataError, match="outside of its text"):
        read_stories(write_stories(tmp_path / "far.zst", row))


def test_changes_of_one_place_become_one() -> None:
    #  abcdef -> aXYbcdef -> aXbcdef -> aXdef
    changes = [Change(1, 1, "XY"), Change(2, 3, ""), Change(2, 4, "")]
    assert composed(6, changes) == (Change(1, 3, "X"),)


def test_changes_apart_stay_apart_in_the_order_of_places() -> None:
    #  "one two three": the last word first.
    changes = [Change(8, 13, "3"), Change(0, 3, "first")]
    assert composed(13, changes) == (Change(0, 3, "first"), Change(8, 13, "3"))


@given(st.data())
def test_composed_changes_lead_to_the_same_text(data: st.DataObject) -> None:
    before = text = data.draw(st.text("abc\n", max_size=20))
    changes = []
    for _ in range(data.draw(st.integers(0, 5))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        changes.append(Change(start, end, data.draw(st.text("xyz", max_size=3))))
        text = changes[-1].apply(text)
    found = composed(len(before), changes)
    result = before
    for change in reversed(found):
        result = change.apply(result)
    assert result == text
    assert all(one.end < other.start for one, other in pairwise(found))
