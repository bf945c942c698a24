"""Reads a log of any format; which one it is, its content tells."""

from __future__ import annotations

from pathlib import Path

from calomel.replay.events import LogError, ReplayLog


def read_log(path: Path) -> ReplayLog:
    """The events of a log. Raises LogError when nothing of it can be read."""
    raise LogError(f"{path}: no reader yet")
