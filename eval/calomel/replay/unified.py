"""Reads unified diffs and applies them to texts, by what stands there where the line numbers are of another file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from calomel.replay.events import Edit

_MARK: Final = "[CURSOR_POSITION]"
_KINDS: Final = ("", " ", "-", "+")
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(slots=True)
class DiffHunk:
    """One hunk of a diff.

    Attributes:
        path: of the file after it, as the diff names it, without `a/` or `b/`.
        line: of the file before it, from 1, where the hunk begins.
        lines: kind (`" "`, `"-"` or `"+"`) and text without its line end.
    """

    path: str
    line: int
    lines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def old(self) -> list[str]:
        """Lines before."""
        return [text for kind, text in self.lines if kind != "+"]

    @property
    def new(self) -> list[str]:
        """Lines after."""
        return [text for kind, text in self.lines if kind != "-"]


def hunks_of(diff: str) -> Iterator[DiffHunk]:
    """The hunks of a diff of one or several files, in order; an empty line is a line of context that lost its space.

    Lines with a cursor mark belong to no file.
    """
    path, hunk = "", None
    for line in diff.splitlines():
        start = _HUNK.match(line)
        if hunk is not None and (start or line.startswith("--- ")):
            yield hunk
            hunk = None
        if start:
            hunk = DiffHunk(path, int(start[1]))
        elif hunk is None:
            path = _path(line) or path if line.startswith(("--- ", "+++ ")) else path
        elif _MARK not in line and line[:1] in _KINDS:
            hunk.lines.append((line[:1] or " ", line[1:]))
    if hunk is not None:
        yield hunk


def edit_of(text: str, hunk: DiffHunk, *, backwards: bool = False) -> Edit | None:
    """The edit that a hunk makes in a text: where its lines stand, nearest to its line number.

    Args:
        text: before the hunk (after it when `backwards`).
        hunk: of a diff.
        backwards: take the hunk back.

    Returns:
        None when its lines stand nowhere in the text.
    """
    lines = text.split("\n")
    bare = [line.removesuffix("\r") for line in lines]
    crlf = lines[0].endswith("\r")
    for kept in _with_less_context(hunk.lines):
        old = [line for kind, line in kept if kind != ("-" if backwards else "+")]
        new = [line for kind, line in kept if kind != ("+" if backwards else "-")]
        found = _find(bare, old, hunk.line - 1, sure=len(kept) == len(hunk.lines))
        if found is not None:
            return _edit(lines, found, old, new, crlf=crlf)
    return None


def _with_less_context(lines: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """A hunk with all of its context, then with less and less at its ends: an excerpt may end within it."""
    kinds = "".join(kind for kind, _ in lines)
    head, tail = len(kinds) - len(kinds.lstrip(" ")), len(kinds) - len(kinds.rstrip(" "))
    seen: set[tuple[int, int]] = set()
    for cut in range(max(head, tail) + 1):
        # First at one end alone: mostly only one of them lies outside.
        for ends in ((0, cut), (cut, 0), (cut, cut)):
            clipped = (min(ends[0], head), min(ends[1], tail))
            if clipped not in seen and sum(clipped) < len(lines):
                seen.add(clipped)
                yield lines[clipped[0] : len(lines) - clipped[1]]


def _find(lines: Sequence[str], wanted: Sequence[str], near: int, *, sure: bool) -> int | None:
    """Where lines stand, nearest to `near`; when not all of the hunk is looked for (not `sure`), only in one place."""
    if not wanted:
        return min(max(near, 0), len(lines)) if sure else None
    places = [
        at
        for at in range(len(lines) - len(wanted) + 1)
        if lines[at] == wanted[0] and list(lines[at : at + len(wanted)]) == list(wanted)
    ]
    if not sure and len(places) > 1:
        return None
    return min(places, key=lambda at: (abs(at - near), at), default=None)


def _edit(lines: Sequence[str], at: int, old: Sequence[str], new: Sequence[str], *, crlf: bool) -> Edit:
    """The lines that differ between `old`, which stand at `at`, and `new`."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    first, last = at + head, at + len(old) - tail
    end = "\r\n" if crlf else "\n"
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    size = starts[-1] - 1
    added = "".join(line + end for line in new[head : len(new) - tail])
    if last < len(lines):
        return Edit(starts[first], starts[last], added)
    # The last line has no line end: the one in front of what changes goes or comes instead.
    added = "".join(end + line for line in new[head : len(new) - tail])
    if first == 0:
        return Edit(0, size, added.removeprefix(end))
    return Edit(starts[first] - 1 if first <= len(lines) else size, size, added)


def _path(line: str) -> str:
    name = line[4:].split("\t", 1)[0].strip().strip('"')
    return "" if name == "/dev/null" else re.sub(r"^[ab]/", "", name)
