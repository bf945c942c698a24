"""The text that pieces of a snippet make of the original."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from calomel.suggest.apply.pieces import Piece
from calomel.suggest.apply.source import Source, columns
from calomel.suggest.line_ends import line_end_of

_TAB: Final = 4
_ENDS: Final = re.compile(r"[\r\n]+$")


def splice(original: Source, snippet: Source, pieces: Iterable[Piece]) -> str | None:
    """The merged text; None when two pieces want the same lines. Line ends are those of the original."""
    text = "".join(original.lines)
    end = line_end_of(text)
    tabs = any(line.startswith("\t") for line in original.lines)
    merged: list[str] = []
    at = 0
    for piece in sorted(pieces, key=lambda piece: (piece.start, piece.first)):
        if piece.start < at:
            return None
        merged += original.lines[at : piece.start]
        _keep_apart(merged, piece.apart_before, end)
        if merged and not merged[-1].endswith(("\n", "\r")):
            merged[-1] += end
        for line in range(piece.first, piece.last):
            bare = _ENDS.sub("", snippet.lines[line])
            merged.append((_shifted(bare, piece.shift, tabs=tabs) if bare.strip() else bare) + end)
        at = piece.end
        if piece.apart_after and at < len(original.lines) and not original.blank(at):
            merged += [end] * piece.apart_after
    merged += original.lines[at:]
    result = "".join(merged)
    if text and not text.endswith(("\n", "\r")):
        return result.removesuffix(end)
    return result


def _keep_apart(merged: list[str], wanted: int, end: str) -> None:
    if not wanted or not any(line.strip() for line in merged):
        return
    if not merged[-1].endswith(("\n", "\r")):
        merged[-1] += end
    blank = 0
    while blank < len(merged) and not merged[-1 - blank].strip():
        blank += 1
    merged += [end] * (wanted - blank)


def _shifted(line: str, shift: int, *, tabs: bool) -> str:
    if not shift:
        return line
    body = line.lstrip(" \t")
    width = max(0, columns(line) + shift)
    if tabs:
        return "\t" * (width // _TAB) + " " * (width % _TAB) + body
    return " " * width + body
