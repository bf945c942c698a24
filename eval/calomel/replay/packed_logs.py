"""Packed files of many logs: stories of edits, or files of a corpus, which are written anew."""

from __future__ import annotations

import json
from pathlib import Path

import zstandard

from calomel.replay.events import LogError, ReplayLog
from calomel.replay.story_log import read_story_logs
from calomel.replay.writing_log import read_writing_logs

_FIRST_LINE = 1 << 24


def read_packed_logs(path: Path) -> list[ReplayLog]:
    """What the first line is, all are. Raises LogError."""
    try:
        with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as plain:
            first = json.loads(plain.read(_FIRST_LINE).split(b"\n", 1)[0])
    except (OSError, zstandard.ZstdError, ValueError) as error:
        raise LogError(f"{path} is no packed file of logs: {error}") from error
    return read_story_logs(path) if "changes" in first else read_writing_logs(path)
