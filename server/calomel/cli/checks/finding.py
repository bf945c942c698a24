"""One line of the doctor's report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and what to do about it."""

    level: Level
    subject: str
    found: str
    advice: str = ""


def ok(subject: str, found: str) -> Finding:
    """All is well."""
    return Finding(Level.OK, subject, found)


def warn(subject: str, found: str, advice: str) -> Finding:
    """It works, but not as it should."""
    return Finding(Level.WARN, subject, found, advice)


def fail(subject: str, found: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(Level.FAIL, subject, found, advice)
