"""Cuts a stream of bytes into the bodies of messages, and finds its way back after a broken one.

The base protocol: header lines that end in CRLF, an empty line, then as many bytes as `Content-Length` says. Header
names are compared without regard to case, as in HTTP; LF alone is accepted as a line end; other headers are ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Ten times the largest file that any editor sends as one text.
MAX_BODY_BYTES: Final = 256 * 1024 * 1024
# No header line comes near this; what has no line end for so long is no header.
MAX_HEADER_BYTES: Final = 16 * 1024

_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,12})[ \t]*\r?\n", re.IGNORECASE)
_NAME = b"content-length"
# The same, cut off anywhere: what a body may end in whose length was a little too large.
_CUT_LENGTH = re.compile(
    rb"(?:content-length[ \t]*(?::[ \t]*\d*[ \t]*\r?)?|"
    + b"|".join(_NAME[:size] for size in range(len(_NAME) - 1, 0, -1))
    + rb")\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Broken:
    """Bytes that are no message. `reason` is for the log and never quotes them."""

    reason: str


Frame = bytes | Broken


class Framer:
    """Feed it what the transport delivers; it gives back what is complete.

    A header without a usable length, or junk between messages, yields one `Broken`, and reading goes on at the next
    `Content-Length` line. When a body turns out to be no JSON, `unread` looks for a message that the wrong length
    swallowed.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None  # of the body that the current headers announce
        self._in_headers = False
        self._reading_body = False
        self._reported = False  # one report for one stretch of junk

    def feed(self, data: bytes) -> None:
        """Take over the next bytes of the stream."""
        self._buffer += data

    def next(self) -> Frame | None:
        """The next body or break; None when more bytes are needed."""
        while True:
            if self._reading_body:
                return self._body()
            end = self._buffer.find(b"\n")
            if end < 0:
                return self._long_line()
            line = bytes(self._buffer[: end + 1])
            del self._buffer[: end + 1]
            broken = self._header(line)
            if broken is not None:
                return broken

    def unread(self, body: bytes) -> None:
        """Give back a body that was no JSON: a message that begins inside of it is read again.

        A length that is too large swallows the next message's beginning; JSON itself never contains such a line,
        because line ends inside of its strings are escaped.
        """
        found = _LENGTH.search(body) or _CUT_LENGTH.search(body)
        if found:
            self._buffer[:0] = body[found.start() :]

    def _body(self) -> Frame | None:
        length = self._length or 0
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        self._reading_body = False
        self._length = None
        self._reported = False
        return body

    def _header(self, line: bytes) -> Broken | None:
        if not line.strip():
            # An empty line between messages harms nobody.
            return self._end_of_headers() if self._in_headers else None
        found = _LENGTH.search(line)
        if not (found or _is_header(line)):
            return self._junk("a line that is no header")
        self._in_headers = True
        if found:
            self._length = int(found[1])
            # A header at the end of a stretch of junk is a new beginning.
            return self._junk("bytes between messages") if found.start() else None
        if line[: len(_NAME)].lower() == _NAME:
            self._length = None
        return None

    def _end_of_headers(self) -> Broken | None:
        self._in_headers = False
        if self._length is None:
            return self._junk("a header without a usable Content-Length")
        if self._length > MAX_BODY_BYTES:
            self._length = None
            return self._junk("a message of more than 256 MiB")
        self._reading_body = True
        return None

    def _long_line(self) -> Broken | None:
        if len(self._buffer) <= MAX_HEADER_BYTES:
            return None
        # Keep what may be the beginning of a header.
        del self._buffer[: -len(_NAME) - 16]
        self._in_headers = False
        self._length = None
        return self._junk("a line without an end where a header was expected")

    def _junk(self, reason: str) -> Broken | None:
        if self._reported:
            return None
        self._reported = True
        return Broken(reason)


def _is_header(line: bytes) -> bool:
    name, colon, _ = line.partition(b":")
    return bool(colon) and bool(re.fullmatch(rb"[A-Za-z][A-Za-z0-9-]*[ \t]*", name))
