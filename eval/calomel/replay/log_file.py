"""The text of a log's file, packed or not, as much of it as there is; and JSON that may end in the middle."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calomel.replay.events import LogError

# Far above any recording; a wrong file must not fill the memory.
MAX_BYTES: Final = 512 * 1024 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"
_WINDOW_BITS: Final = 31  # zlib: gzip framing, largest window
_BLANK: Final = re.compile(r"[\s\ufeff]*")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class LogText:
    """What a file holds.

    Attributes:
        text: of it.
        cut: a packed file ended too early, or is damaged from there on.
        encoded_wrong: some bytes are no UTF-8; each stands as U+FFFD.
    """

    text: str
    cut: bool = False
    encoded_wrong: bool = False


def read_text(path: Path) -> LogText:
    """The text of a file, unpacked when it is gzip. Raises LogError when it cannot be read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise LogError(f"{path} has more than {MAX_BYTES:,} bytes; no log is as large as that.")
        data = path.read_bytes()
    except OSError as error:
        raise LogError(f"{path} cannot be read: {error.strerror or type(error).__name__}.") from error
    cut = False
    if data.startswith(_GZIP_MAGIC):
        data, cut = _unpacked(path, data)
    try:
        return LogText(data.decode("utf-8-sig"), cut)
    except UnicodeDecodeError as error:
        # The last character of a cut text may be half there, which is no other damage.
        if cut and error.end >= len(data) and error.start >= len(data) - 3:
            return LogText(data[: error.start].decode("utf-8-sig"), cut)
        return LogText(data.decode("utf-8-sig", "replace"), cut, encoded_wrong=True)


def _unpacked(path: Path, data: bytes) -> tuple[bytes, bool]:
    unpacker = zlib.decompressobj(_WINDOW_BITS)
    pieces: list[bytes] = []
    size = 0
    try:
        # In pieces, so that what stands before a damaged place is kept.
        for at in range(0, len(data), 1 << 14):
            pieces.append(unpacker.decompress(data[at : at + (1 << 14)], MAX_BYTES - size + 1))
            size += len(pieces[-1])
            if size > MAX_BYTES:
                raise LogError(f"{path} holds more than {MAX_BYTES:,} bytes; no log is as large as that.")
    except zlib.error:
        return b"".join(pieces), True
    return b"".join(pieces), not unpacker.eof


@dataclass(slots=True)
class PartialObject:
    """An object of JSON that may end in the middle.

    Attributes:
        values: those that are whole; of the list named `items`, its whole elements.
        problem: what is wrong with the text, None when nothing is.
    """

    values: dict[str, Any]
    problem: str | None = None


def parse_object(text: str, items: str) -> PartialObject | None:
    """An object whose list `items` may be cut short; None when the text does not begin like an object.

    Only what stands before the first wrong place is read: after it, nothing in the text says where one is.
    """
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return _parse_partly(text, items)
    return PartialObject(whole) if isinstance(whole, dict) else None


def _parse_partly(text: str, items: str) -> PartialObject | None:
    at = _skip(text, 0)
    if not text.startswith("{", at):
        return None
    found = PartialObject({})
    at = _skip(text, at + 1)
    try:
        while not text.startswith("}", at):
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at)
            at = _skip(text, at + 1) if text.startswith(":", at) else len(text)
            if name == items and text.startswith("[", at):
                elements: list[Any] = []
                found.values[name] = elements
                for element, end in _elements(text, at + 1):
                    elements.append(element)
                    at = end
                at = _end_of_list(text, at)
            else:
                found.values[name], at = _DECODER.raw_decode(text, at)
            at = _skip(text, at)
            at = _skip(text, at + 1) if text.startswith(",", at) else at
    except (ValueError, RecursionError):
        pass
    else:
        found.problem = "there is text after its end"
        return found
    found.problem = "the file ends in the middle" if _cut(text, at) else f"the text is no JSON from character {at} on"
    return found


def _elements(text: str, at: int) -> Iterator[tuple[Any, int]]:
    """The elements of a list from behind its bracket on, each with the place behind it and its comma."""
    at = _skip(text, at)
    while not text.startswith("]", at):
        try:
            element, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        at = _skip(text, at)
        comma = text.startswith(",", at)
        at = _skip(text, at + 1) if comma else at
        yield element, at
        if not comma:
            return


def _end_of_list(text: str, at: int) -> int:
    at = _skip(text, at)
    if text.startswith("[", at):
        at = _skip(text, at + 1)
    if not text.startswith("]", at):
        raise ValueError("list without an end")
    return at + 1


def _cut(text: str, at: int) -> bool:
    """Whether the text from `at` on is what a value looks like whose end is missing: no value, and no wrong one."""
    try:
        _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        rest = text[error.pos :]
        return not rest.strip() or error.msg.startswith("Unterminated") or len(rest) <= _LONGEST_LITERAL
    except RecursionError:
        return False
    return True


# `false`, half of `\ud83d`: the longest that may be left when a text is cut.
_LONGEST_LITERAL: Final = 6


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
