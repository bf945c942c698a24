from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.stories_made import BILL, line, rename, write_stories

from calomel.replay.events import Changed, Focused, LogError, Opened, ReplayLog, Selected, apply_edits
from calomel.replay.stories import package_of, read_packed_logs, story_log
from calomel.report.stories import read_stories


def texts(log: ReplayLog) -> list[str]:
    """Of the document, after each change."""
    found: list[str] = []
    for event in log.events:
        if isinstance(event, Opened):
            found.append(event.text)
        elif isinstance(event, Changed):
            found.append(apply_edits(found[-1], event.edits))
    return found


def test_a_story_is_typed_to_its_end(tmp_path: Path) -> None:
    renamed, added = read_packed_logs(write_stories(tmp_path / "s.jsonl.zst", rename(), line()))
    assert texts(renamed)[0] == BILL
    assert texts(renamed)[-1] == BILL.replace("total", "amount")
    assert texts(added)[-1] == BILL.replace("    return", "    print(total)\n    return")
    assert renamed.checks.end_content_right is True
    assert not renamed.problems
    opened, focused, *_ = renamed.events
    assert isinstance(opened, Opened)
    assert isinstance(focused, Focused)
    assert opened.language_id == "python"
    assert opened.document == "shop/bill.py"


def test_each_change_is_made_in_the_order_of_the_story(tmp_path: Path) -> None:
    (log,) = read_packed_logs(write_stories(tmp_path / "s.jsonl.zst", rename()))
    entries = [event.entry for event in log.events if isinstance(event, Changed)]
    assert entries == sorted(entries)
    assert set(entries) == {1, 2, 3, 4, 5}
    firsts = [next(text for text, entry in zip(texts(log)[1:], entries, strict=True) if entry == number)
              for number in range(1, 6)]  # fmt: skip
    assert [first.count("total") for first in firsts] == [4, 3, 2, 1, 0]


def test_the_cursor_goes_to_a_change_before_it_is_typed_key_by_key(tmp_path: Path) -> None:
    (log,) = read_packed_logs(write_stories(tmp_path / "s.jsonl.zst", line()))
    (selected,) = (event for event in log.events if isinstance(event, Selected))
    changes = [event for event in log.events if isinstance(event, Changed)]
    assert selected.offset == selected.anchor == changes[0].edits[0].start == BILL.index("    return")
    typed = "".join(edit.text for event in changes[1:] for edit in event.edits)
    assert typed == "print(total)"
    assert all(len(edit.text) == 1 for event in changes[1:] for edit in event.edits)
    assert all(event.cause == "typed" for event in changes)


def test_time_goes_on_and_is_the_same_each_time(tmp_path: Path) -> None:
    path = write_stories(tmp_path / "s.jsonl.zst", rename(), line())
    logs, again = read_packed_logs(path), read_packed_logs(path)
    assert [log.events for log in logs] == [log.events for log in again]
    for log in logs:
        times = [event.time for event in log.events]
        assert times == sorted(times)
        assert times[-1] > 3
    assert len({log.name for log in logs}) == 2


def test_stories_of_one_package_stay_together(tmp_path: Path) -> None:
    (log,) = read_packed_logs(write_stories(tmp_path / "s.jsonl.zst", rename()))
    assert (log.kind, log.metadata) == ("story", {"group": "shop", "kind": "rename"})


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("requests/api.py", "requests"),
        ("usr/share/gocode/src/github.com/owner/name/deep/a.go", "usr/share/gocode/src/github.com/owner/name"),
        ("registry/serde/src/lib.rs", "registry/serde"),
        ("src/main.c", "src/main.c"),
        ("tests/a.py", "tests/a.py"),
        ("setup.py", "setup.py"),
    ],
)
def test_a_path_tells_its_package(path: str, package: str) -> None:
    assert package_of(path) == package


def test_line_ends_of_windows_are_typed_too(tmp_path: Path) -> None:
    path = write_stories(tmp_path / "s.jsonl.zst", rename(BILL.replace("\n", "\r\n")))
    (story,) = read_stories(path)
    assert texts(story_log(story))[-1] == BILL.replace("total", "amount").replace("\n", "\r\n")


def test_what_is_no_story_is_said(tmp_path: Path) -> None:
    bad = write_stories(tmp_path / "bad.jsonl.zst", {"kind": "rename"})
    for path in (bad, tmp_path / "missing.jsonl.zst"):
        with pytest.raises(LogError, match=path.name):
            read_packed_logs(path)
