"""The header of a GGUF file, read only to see that whoever reads it after us is not led astray.

The library believes every count in it, and so reads for hours what a few bytes announce. Format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import BinaryIO, Final

from calomel.storage import open_regular

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_STRING, _ARRAY = 8, 9
# Bytes of the types of values: of numbers, 1 to 8; of a flag, 1.
_BYTES: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
# Many times what published models have: some 50 fields, 500 tensors, 260,000 tokens, a chat template of 30 KB.
_MOST_FIELDS: Final = 10_000
_MOST_TENSORS: Final = 100_000
_MOST_ITEMS: Final = 4_000_000
_MOST_STRING: Final = 16 * 1024 * 1024
_MOST_HEADER: Final = 512 * 1024 * 1024
_MOST_DIMENSIONS: Final = 4
_ALIGNMENT: Final = "general.alignment"
_MOST_ALIGNMENT: Final = 65_536


class HeaderError(ValueError):
    """The header cannot be true; the message says why."""


def check_header(path: Path) -> None:
    """Raise HeaderError, or OSError, for a header that counts more than there is, or could be."""
    with open_regular(path) as file:
        header = _Header(file)
        magic, version, tensors, fields = struct.unpack("<4sIQQ", header.take(24))
        if magic != _MAGIC or version not in _VERSIONS:
            raise HeaderError("it is not a GGUF file of version 2 or 3")
        _most("fields", fields, _MOST_FIELDS)
        _most("tensors", tensors, _MOST_TENSORS)
        for _ in range(fields):
            name = header.string()
            value = header.value(header.number(4))
            if name == _ALIGNMENT.encode() and not (
                isinstance(value, int) and 0 < value <= _MOST_ALIGNMENT and value.bit_count() == 1
            ):
                raise HeaderError(f"{_ALIGNMENT} is not a power of two")
        for _ in range(tensors):
            header.string()
            dimensions = header.number(4)
            _most("dimensions of a tensor", dimensions, _MOST_DIMENSIONS)
            sizes = struct.unpack(f"<{dimensions}Q", header.take(8 * dimensions))
            # A number takes two bits or more.
            _most("numbers in a tensor", math.prod(sizes), 4 * header.size)
            header.take(4)
            _most("bytes before a tensor", header.number(8), header.size)


class _Header:
    """Reads a header from its start."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = file.seek(0, 2)
        file.seek(0)

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if self._file.tell() + count > min(self.size, _MOST_HEADER):
            raise HeaderError("it ends within its header")
        return self._file.read(count)

    def number(self, count: int) -> int:
        """The next number of so many bytes, without a sign."""
        return int.from_bytes(self.take(count), "little")

    def string(self) -> bytes:
        """The next string."""
        length = self.number(8)
        _most("bytes of a string", length, _MOST_STRING)
        return self.take(length)

    def value(self, kind: int) -> int | None:
        """The next value, if it is a number."""
        if kind == _STRING:
            self.string()
        elif kind == _ARRAY:
            self._items(self.number(4), self.number(8))
        elif kind in _BYTES:
            return self.number(_BYTES[kind])
        else:
            raise HeaderError(f"it has a value of type {kind}")
        return None

    def _items(self, kind: int, count: int) -> None:
        _most("items of a list", count, _MOST_ITEMS)
        if kind == _STRING:
            for _ in range(count):
                self.string()
        elif kind in _BYTES:
            self.take(_BYTES[kind] * count)
        else:
            raise HeaderError(f"it has a list of type {kind}")


def _most(what: str, count: int, most: int) -> None:
    if count > most:
        raise HeaderError(f"it counts {count} {what}")
