"""The beginning of a session, and the frame around all of it: bytes to messages, and which of them when.

This module and what it imports are small on purpose: `initialize` is answered before anything heavy is imported, since
lsprotocol's types alone take longer to import than a client should have to wait. What arrives meanwhile waits in the
pipe.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Any, Final

from calomel.lsp.client import Client, initialize_result, read_client

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


VERSION: Final = "2.0"


class ErrorCode(IntEnum):
    """JSON-RPC's codes and those that the protocol adds (specification 3.18, "ErrorCodes", "LSPErrorCodes")."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    SERVER_NOT_INITIALIZED = -32002
    REQUEST_CANCELLED = -32800


Id = int | str
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Malformed:
    """What is no message: the answer to send."""

    code: ErrorCode
    reason: str
    id: Id | None = None


class NotJsonError(ValueError):
    """The body is no JSON text in UTF-8."""


def parse_messages(body: bytes) -> Iterator[Message | Malformed]:
    """The messages of a body, one or a batch, each checked for the shape that JSON-RPC asks for.

    The language server protocol knows no batches; the messages of one are handled, and answered, one by one.

    Raises NotJsonError.
    """
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotJsonError(type(error).__name__) from None
    if not isinstance(value, list):
        yield _checked(value)
    elif not value:
        yield Malformed(ErrorCode.INVALID_REQUEST, "an empty batch")
    else:
        for item in value:
            yield _checked(item)


def result_message(message_id: Id, value: Any) -> Message:
    """An answer."""
    return {"jsonrpc": VERSION, "id": message_id, "result": value}


def error_message(message_id: Id | None, code: int, reason: str) -> Message:
    """An answer that something is wrong. `reason` never quotes the user's text."""
    return {"jsonrpc": VERSION, "id": message_id, "error": {"code": int(code), "message": reason}}


def notification(method: str, params: Any) -> Message:
    """A message that wants no answer."""
    return {"jsonrpc": VERSION, "method": method, "params": params}


def encode_message(message: Mapping[str, Any]) -> bytes:
    """Headers and body. ASCII, so that a lone surrogate in a text can not break the stream."""
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def is_id(value: object) -> bool:
    """Whether a request may carry it: an integer or a string."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def _checked(value: object) -> Message | Malformed:
    if not isinstance(value, dict):
        return Malformed(ErrorCode.INVALID_REQUEST, "A message is a JSON object.")
    message_id = value.get("id")
    known = message_id if is_id(message_id) else None
    problem = _problem(value)
    return Malformed(ErrorCode.INVALID_REQUEST, problem, known) if problem else value


def _problem(message: Message) -> str | None:
    if message.get("jsonrpc") != VERSION:
        return 'A message says "jsonrpc": "2.0".'
    if "method" in message:
        if not isinstance(message["method"], str):
            return "A method is a string."
        if "id" in message and not is_id(message["id"]):
            return "The id of a request is an integer or a string."
        return None
    if "result" not in message and "error" not in message:
        return "A message has a method, a result or an error."
    return None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)  # NaN and the infinities are no JSON


class State(Enum):
    """Where the session stands."""

    NEW = auto()
    RUNNING = auto()
    SHUT_DOWN = auto()


class Lifecycle:
    """Judges each message by the session's state (specification 3.18, "Server lifecycle")."""

    def __init__(self) -> None:
        self.state = State.NEW

    def admit(self, message: Message) -> Malformed | bool:
        """Whether to handle the message: yes, no without a word, or no with this answer."""
        method, asks = message.get("method"), "id" in message
        begins = method == "initialize"
        if method == "exit" or (self.state is State.RUNNING and not begins) or (self.state is State.NEW and begins):
            # As a notification, `initialize` begins nothing.
            return asks or not begins
        if not asks or method is None:
            # Answers to our own requests may still come after a shutdown; nobody waits for them.
            return False
        if self.state is State.NEW:
            return Malformed(ErrorCode.SERVER_NOT_INITIALIZED, "The first request is initialize.", message["id"])
        happened = "initialized already" if self.state is State.RUNNING else "shut down"
        return Malformed(ErrorCode.INVALID_REQUEST, f"The session was {happened}.", message["id"])

    @property
    def exit_code(self) -> int:
        """0 after a shutdown, 1 without."""
        return 0 if self.state is State.SHUT_DOWN else 1


INVALID: Final = "initialize takes an object with the client's capabilities."


class Door:
    """Lets messages in one by one; what may not come in is answered here.

    Args:
        write: sends bytes to the client; False when nobody reads any more.

    Attributes:
        client: who is there, once `initialize` was answered.
        exit_code: what to end with, once `exit` has come.
        gone: nobody reads any more.
        began: when reading the message began that was let in last, on `time.perf_counter`.
        note: takes a line for the log.
    """

    def __init__(self, write: Callable[[bytes], bool]) -> None:
        self.client: Client | None = None
        self.exit_code: int | None = None
        self.gone = False
        self.began = 0.0
        self.note: Callable[[str], None] = _to_stderr
        self._write = write
        self._lifecycle = Lifecycle()
        self._framer = Framer()
        self._parsed: deque[Message | Malformed] = deque()

    def feed(self, data: bytes) -> None:
        """Take over the next bytes of the stream."""
        self._framer.feed(data)

    def next(self) -> Message | None:
        """The next message for the session, `initialize` among them, which is answered already; None: feed more."""
        while self.exit_code is None:
            if not self._parsed and not self._read():
                return None
            while self._parsed:
                message = self._admitted(self._parsed.popleft())
                if message is not None:
                    return message
        return None

    def send(self, message: Message) -> None:
        """Send a message to the client."""
        if not self._write(encode_message(message)):
            self.gone = True

    def shut_down(self) -> None:
        """`shutdown` was asked for: from now on everything but `exit` is refused."""
        self._lifecycle.state = State.SHUT_DOWN

    @property
    def end_code(self) -> int:
        """What to end with when the stream ends: 0 after a shutdown, 1 without."""
        return self._lifecycle.exit_code if self.exit_code is None else self.exit_code

    def _read(self) -> bool:
        frame = self._framer.next()
        if frame is None:
            return False
        self.began = time.perf_counter()
        if isinstance(frame, Broken):
            self.note(f"skipped {frame.reason}")
            return True
        try:
            self._parsed.extend(parse_messages(frame))
        except NotJsonError:
            self.note("a message that is no JSON")
            self._framer.unread(frame)
            self.send(error_message(None, ErrorCode.PARSE_ERROR, "The message is no JSON."))
        return True

    def _admitted(self, message: Message | Malformed) -> Message | None:
        verdict = message if isinstance(message, Malformed) else self._lifecycle.admit(message)
        if isinstance(verdict, Malformed):
            self.note(verdict.reason)
            self.send(error_message(verdict.id, verdict.code, verdict.reason))
            return None
        if not verdict or isinstance(message, Malformed):
            return None
        method = message.get("method")
        if method == "exit":
            self.exit_code = self._lifecycle.exit_code
            return None
        return message if method != "initialize" or self._initialize(message) else None

    def _initialize(self, message: Message) -> bool:
        params = message.get("params")
        if not isinstance(params, dict) or not isinstance(params.get("capabilities"), dict):
            self.send(error_message(message["id"], ErrorCode.INVALID_PARAMS, INVALID))
            return False
        self.client = read_client(params)
        self.send(result_message(message["id"], initialize_result(self.client)))
        self._lifecycle.state = State.RUNNING
        return True


def _to_stderr(line: str) -> None:
    print(f"calomel lsp: {line}", file=sys.stderr)  # noqa: T201 - there is no log yet
