"""Logs out of packed files: stories of edits that are typed, and files that are written anew."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import zstandard
from tests.bench.stories_made import BILL, line, rename, write_stories

from calomel.replay.events import Changed, Focused, LogError, Opened, ReplayLog, apply_edits
from calomel.replay.logs import read_logs
from calomel.replay.stories import writing_log


def test_without_zstandard_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "calomel.replay.stories", None)
    with pytest.raises(LogError, match=r"extra bench"):
        read_logs(tmp_path / "any.jsonl.zst")


BLOCK = '''def measure_{0}(values, weight):
    """The weighted measure number {0}."""
    total = 0.0
    for value in values:
        if value is None:
            continue
        total += value * weight + {0}
    return total


'''
FILE = "import math\n\n\n" + "".join(BLOCK.format(number) for number in range(30))


def written(text: str = FILE, path: str = "shop/measures.py", package: str = "") -> ReplayLog:
    log = writing_log(path, text, package)
    assert log is not None
    return log


@pytest.mark.parametrize("text", ["", "x = 1\n", "x = 1\n" * 200, FILE.replace("\n", "\r\n"), BLOCK.format(1)])
def test_a_file_with_nothing_to_write_is_left_out(text: str) -> None:
    assert writing_log("a.py", text) is None


def test_a_corpus_is_a_log_for_each_file_that_has_enough(tmp_path: Path) -> None:
    rows = (
        {"path": "a/one.py", "text": FILE, "package": "a"},
        {"path": "a/tiny.py", "text": "x\n", "package": "a"},
        {"path": "b/two.py", "text": FILE},
    )
    logs = read_logs(write_stories(tmp_path / "corpus.jsonl.zst", *rows))
    assert [log.metadata["group"] for log in logs] == ["a", "b"]
    assert logs[0].events == written(path="a/one.py").events


def states(log: ReplayLog) -> list[str]:
    """Of the document, after each change."""
    found: list[str] = []
    for event in log.events:
        if isinstance(event, Opened):
            found.append(event.text)
        elif isinstance(event, Changed):
            found.append(apply_edits(found[-1], event.edits))
    return found


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no zstandard", "is damaged"),
        (zstandard.compress(b"{torn\n"), "is damaged"),
        (zstandard.compress(b'{"name": "a"}\n'), "holds neither stories of edits nor files"),
        (zstandard.compress(b'{"kind": "rename"}\n'), ""),
        (zstandard.compress(b'{"path": "a/one.py", "text": "x"}\n{"path": "a"}\n'), ".*'text' is missing"),
        (None, ""),
    ],
)
def test_what_is_packed_otherwise_is_said_by_name(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "bad.jsonl.zst"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LogError, match=rf"bad\.jsonl\.zst.* ?{why}"):
        read_logs(path)


def test_a_story_is_typed_to_its_end_the_same_each_time(tmp_path: Path) -> None:
    path = write_stories(tmp_path / "s.jsonl.zst", rename(), line(), rename(BILL.replace("\n", "\r\n")))
    logs = read_logs(path)
    renamed, added, windows = logs
    assert states(renamed)[0] == BILL
    assert states(renamed)[-1] == BILL.replace("total", "amount")
    assert states(added)[-1] == BILL.replace("    return", "    print(total)\n    return")
    assert states(windows)[-1] == BILL.replace("total", "amount").replace("\n", "\r\n")
    assert renamed.checks.end_content_right is True
    assert not renamed.problems
    opened, focused, *_ = renamed.events
    assert isinstance(opened, Opened)
    assert isinstance(focused, Focused)
    assert (opened.language_id, opened.document) == ("python", "shop/bill.py")
    # What is of one package stays together.
    assert (renamed.kind, renamed.metadata) == ("story", {"group": "shop", "kind": "rename"})
    assert [log.events for log in read_logs(path)] == [log.events for log in logs]
    assert len({log.name for log in logs}) == 3
    for log in logs:
        times = [event.time for event in log.events]
        assert times == sorted(times)
        assert times[-1] > 3


@pytest.mark.parametrize("text", [FILE, FILE.replace("total", "größe_😀").replace("    ", "\t"), FILE.rstrip()])
def test_at_the_end_the_file_is_what_it_was(text: str) -> None:
    log = written(text)
    assert states(log)[-1] == (text if text.endswith("\n") else f"{text}\n")
    assert log.checks.end_content_right is True
    assert len(states(log)[0]) < len(text)
    opened = log.events[0]
    assert isinstance(opened, Opened)
    assert (opened.document, opened.language_id) == ("shop/measures.py", "python")
    assert log.metadata == {"group": "shop"}
    assert written(text).events == log.events
    assert written(text, package="shop-1.0").metadata == {"group": "shop-1.0"}
    times = [event.time for event in log.events]
    assert times == sorted(times)
    assert times[-1] > 0.1 * len(times)
