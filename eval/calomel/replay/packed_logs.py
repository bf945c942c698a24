"""Packed files of many logs: stories of edits, or files of a corpus, which are written anew."""

from __future__ import annotations

from pathlib import Path

from calomel.replay.events import LogError, ReplayLog
from calomel.replay.writing_log import read_writing_logs


def read_packed_logs(path: Path) -> list[ReplayLog]:
    """What the first line is, all are. Raises LogError."""
    try:
        from calomel.bench.heldout import BenchDataError
        from calomel.bench.packed import packed_rows
        from calomel.replay.story_log import read_story_logs
    except ModuleNotFoundError as error:
        message = f"{path} is packed with zstandard, which is not installed: pip install 'calomel[bench]'."
        raise LogError(message) from error
    try:
        first = next(packed_rows(path), {})
        found = read_story_logs(path) if "changes" in first else read_writing_logs(packed_rows(path), str(path))
    except BenchDataError as error:
        raise LogError(str(error)) from error
    if not found:
        raise LogError(f"{path} holds nothing that can be played: no story, and no file with blocks to write.")
    return found
