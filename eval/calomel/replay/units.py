"""Edits in UTF-16 units, as JavaScript counts, turned into edits in code points."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.replay.events import Edit, apply_edits

_LAST_OF_ONE_UNIT = "\uffff"


def wide(text: str) -> bool:
    """Whether some character of the text takes two units."""
    return not text.isascii() and max(text, default="") > _LAST_OF_ONE_UNIT


def joined(text: str) -> str:
    """The same text with each pair of surrogates made one character, as a file would hold it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def code_point_edits(text: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The same edits in code points; one that cuts a character of two units in half replaces the whole character.

    Args:
        text: before the edits.
        edits: in UTF-16 units, sorted, not overlapping.

    Raises:
        ValueError: an edit lies outside of the text, or they are out of order or overlap.
    """
    if not wide(text):
        apply_edits(text, edits)
        return tuple(edits)
    units = text.encode("utf-16-le", "surrogatepass")
    found: list[Edit] = []
    last = 0
    for edit in edits:
        if not last <= edit.start <= edit.end <= len(units) // 2:
            raise ValueError(f"range {edit.start}-{edit.end} does not fit a text of {len(units) // 2} UTF-16 units")
        last = edit.end
        start, end, new = edit.start, edit.end, edit.text
        if _inside_pair(units, start):
            start, new = start - 1, _unit(units, start - 1) + new
        if _inside_pair(units, end):
            end, new = end + 1, new + _unit(units, end)
        found.append(Edit(_length(units[: 2 * start]), _length(units[: 2 * end]), joined(new)))
    apply_edits(text, found)
    return tuple(found)


def code_point_offset(text: str, offset: int) -> int:
    """A place in UTF-16 units as a place in code points. Raises ValueError outside of the text."""
    if not wide(text):
        if not 0 <= offset <= len(text):
            raise ValueError(f"offset {offset} lies outside of a text of {len(text)} characters")
        return offset
    units = text.encode("utf-16-le", "surrogatepass")
    if not 0 <= 2 * offset <= len(units):
        raise ValueError(f"offset {offset} lies outside of a text of {len(units) // 2} UTF-16 units")
    return _length(units[: 2 * (offset - _inside_pair(units, offset))])


def _unit(units: bytes, at: int) -> str:
    return units[2 * at : 2 * at + 2].decode("utf-16-le", "surrogatepass")


def _inside_pair(units: bytes, at: int) -> bool:
    if not 0 < 2 * at < len(units):
        return False
    return "\ud800" <= _unit(units, at - 1) <= "\udbff" and "\udc00" <= _unit(units, at) <= "\udfff"


def _length(units: bytes) -> int:
    return len(units.decode("utf-16-le", "surrogatepass"))
