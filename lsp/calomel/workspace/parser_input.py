"""What a parser reads from: one object and one buffer for all texts, since py-tree-sitter never lets go of either.

py-tree-sitter 0.26 keeps a reference to every callable that a parser was given, and to every piece that it returned:
with a new one for each parse, a day of typing keeps thousands of copies of the file.
"""

from __future__ import annotations

import threading
from typing import Final

from tree_sitter import Point

# Bytes at a time. What is kept is a view of the buffer for each length that a last piece may have.
_PIECE: Final = 1 << 14


class ParserInput(threading.local):
    """Hands out the text piece by piece; every thread has a buffer of its own."""

    def __init__(self) -> None:
        self._data = b""
        self._buffer = memoryview(bytearray(_PIECE))
        self._views: dict[int, memoryview] = {_PIECE: self._buffer}

    def take(self, data: bytes) -> None:
        """Read from `data` from now on; nothing lets go of what was read before."""
        self._data = data

    def __call__(self, at: int, _point: Point) -> memoryview:
        """The bytes from `at` on, valid until the next call."""
        size = max(0, min(_PIECE, len(self._data) - at))
        view = self._views.get(size)
        if view is None:
            view = self._views[size] = self._buffer[:size]
        view[:] = self._data[at : at + size]
        return view
