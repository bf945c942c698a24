"""What changed between two texts, as hunks of whole lines: the diff stream that a model reads and is trained on."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

from calomel.prompts.parts import Hunk

# Beyond so many characters on either side it is a paste, a formatter or another branch, and only counted.
SIZE_LIMIT: Final = 6144
# difflib is quadratic at worst; larger regions are shown as one replacement.
_DIFF_LINES: Final = 200
# A line ends at LF, CRLF or CR, as in the specification; not where `str.splitlines` also would.
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def text_hunks(path: str, old: str, new: str, *, predicted: bool = False) -> tuple[Hunk, ...]:
    """The differences of two texts as hunks of whole lines.

    None for differences in blanks alone, nor for those that are too large to be one person's edit.
    """
    start, old_lines, new_lines = _changed_lines(old, new)
    if max(sum(map(len, old_lines)), sum(map(len, new_lines))) > SIZE_LIMIT:
        return ()
    if len(old_lines) + len(new_lines) > _DIFF_LINES:
        blocks = [(0, len(old_lines), 0, len(new_lines))]
    else:
        matcher = SequenceMatcher(None, old_lines, new_lines, autojunk=False)
        blocks = [(a, b, c, d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
    hunks = []
    for low, high, first, last in blocks:
        before, after = "".join(old_lines[low:high]), "".join(new_lines[first:last])
        if before.split() != after.split():
            hunks.append(Hunk(path, start + low, before, after, predicted))
    return tuple(hunks)


def _changed_lines(old: str, new: str) -> tuple[int, list[str], list[str]]:
    """The first line that differs, and the lines of both texts from there to the last that differs."""
    prefix = common_prefix(old, new)
    begin = max(old.rfind("\n", 0, prefix), old.rfind("\r", 0, prefix)) + 1
    # Between a CR and an LF there is no line to begin.
    if begin and old[begin - 1] == "\r" and "\n" in (old[begin : begin + 1], new[begin : begin + 1]):
        begin = max(old.rfind("\n", 0, begin - 1), old.rfind("\r", 0, begin - 1)) + 1
    suffix = common_prefix(old[begin:][::-1], new[begin:][::-1])
    # What both have in common behind the next line end is left out; a CR LF is kept whole.
    end = old.find("\n", len(old) - suffix) + 1
    rest = len(old) - end if end else 0
    old_lines = split_lines(old[begin : len(old) - rest])
    new_lines = split_lines(new[begin : len(new) - rest])
    while old_lines and new_lines and old_lines[-1] == new_lines[-1]:
        old_lines.pop()
        new_lines.pop()
    return len(split_lines(old[:begin])) - 1, old_lines, new_lines


def split_lines(text: str) -> list[str]:
    """Lines with their ends; the last one has none and may be empty, so there is always one."""
    lines = _LINE.findall(text)
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines


def common_prefix(one: str, other: str) -> int:
    """The length of the longest common beginning, by bisection over comparisons of slices."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
