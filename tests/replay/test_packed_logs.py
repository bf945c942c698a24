from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.bench.stories_made import line, rename, write_stories
from tests.replay.test_writing_log import FILE

from calomel.replay.events import LogError
from calomel.replay.logs import read_logs


def packed(path: Path, *rows: Any) -> Path:
    path.write_bytes(zstandard.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def test_a_packed_file_of_stories_is_a_log_for_each(tmp_path: Path) -> None:
    logs = read_logs(write_stories(tmp_path / "stories.jsonl.zst", rename(), line()))
    assert [log.metadata["kind"] for log in logs] == ["rename", "line_completed"]


def test_a_packed_corpus_is_files_that_are_written_anew(tmp_path: Path) -> None:
    logs = read_logs(packed(tmp_path / "corpus.jsonl.zst", {"path": "a/one.py", "text": FILE, "language": "python"}))
    assert [log.name.split("-")[0] for log in logs] == ["writing"]


@pytest.mark.parametrize("content", [b"no zstandard", zstandard.compress(b"{torn\n"), zstandard.compress(b"\xff\n")])
def test_what_is_packed_otherwise_is_said_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.jsonl.zst"
    path.write_bytes(content)
    with pytest.raises(LogError, match=r"bad\.jsonl\.zst is damaged"):
        read_logs(path)


def test_a_packed_file_that_is_not_there_is_said_by_name(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"none\.jsonl\.zst"):
        read_logs(tmp_path / "none.jsonl.zst")


def test_a_packed_list_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"list\.jsonl\.zst"):
        read_logs(packed(tmp_path / "list.jsonl.zst", ["a"]))


def test_rows_that_are_neither_stories_nor_files_are_said_by_name(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"rows\.jsonl\.zst holds neither stories of edits nor files"):
        read_logs(packed(tmp_path / "rows.jsonl.zst", {"name": "a"}))


def test_without_zstandard_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "calomel.replay.stories", None)
    with pytest.raises(LogError, match=r"calomel\[bench\]"):
        read_logs(tmp_path / "any.jsonl.zst")
