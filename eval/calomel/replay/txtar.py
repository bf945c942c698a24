"""Splits a txtar archive: a comment, then files that each begin with a line `-- name --` (the format of Go's tools)."""

from __future__ import annotations

import re
from typing import Final

_MARK: Final = re.compile(r"^-- (.+) --[ \t]*\r?$\n?", re.MULTILINE)


def split(archive: str) -> tuple[str, dict[str, str]]:
    """The comment, and the files by name, texts as they stand; of two files with one name the last one counts."""
    marks = list(_MARK.finditer(archive))
    if not marks:
        return archive, {}
    ends = [mark.start() for mark in marks[1:]] + [len(archive)]
    return archive[: marks[0].start()], {
        mark[1].strip(): archive[mark.end() : end] for mark, end in zip(marks, ends, strict=True)
    }
