"""The bytes of a connection, the framing of its messages, and which of them are admitted.

This module and its imports are small on purpose: `initialize` is answered before anything heavy is imported, since
lsprotocol's types alone take longer to import than a client should have to wait. What arrives meanwhile waits in the
pipe.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal

from calomel.lsp.client import Client, initialize_result, read_client
from calomel.storage import WINDOWS, process_of

# Ten times the largest file that any editor sends as one text.
MAX_BODY_BYTES: Final = 256 * 1024 * 1024
_MOST_HEAD_BYTES: Final = 16 * 1024

# Headers up to the empty line after them, one of them a length; empty lines between messages do no harm.
_HEAD: Final = re.compile(
    rb"(?:\r?\n)*(?:[a-z-]+[ \t]*:[^\n]*\n)*?content-length[ \t]*:[ \t]*(\d{1,12})[ \t]*\r?\n(?:[^\r\n]+\r?\n)*\r?\n",
    re.IGNORECASE,
)
_END_OF_HEAD: Final = re.compile(rb"[^\r\n]\r?\n\r?\n")


class Framer:
    """Takes what the transport delivers and returns complete message bodies."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None  # of the body being received

    def feed(self, data: bytes) -> None:
        """Append the next bytes of the stream."""
        self._buffer += data

    def next(self) -> bytes | None:
        """The next body; None when more bytes are needed. Raises ValueError, which quotes nothing, for a bad header."""
        if self._length is None:
            match = _HEAD.match(self._buffer)
            if match is None:
                if len(self._buffer) > _MOST_HEAD_BYTES or _END_OF_HEAD.search(self._buffer):
                    raise ValueError("bytes where a header was expected")
                return None
            self._length = int(match[1])
            del self._buffer[: match.end()]
            if self._length > MAX_BODY_BYTES:
                raise ValueError("a message of more than 256 MiB")
        if len(self._buffer) < self._length:
            return None
        body = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        self._length = None
        return body


VERSION: Final = "2.0"

# Error codes of JSON-RPC and of the protocol (specification 3.18, "ErrorCodes").
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
SERVER_NOT_INITIALIZED: Final = -32002

Message = dict[str, Any]


class Connection:
    """Admits messages one by one; those not admitted are answered here.

    The language server protocol has no batches; the messages of one are handled and answered one by one.

    Args:
        write: sends bytes to the client; False when nobody reads any more.

    Attributes:
        client: set once `initialize` was answered.
        ended: `exit` has come, nobody reads any more, or the input is not messages.
        feed: takes the next bytes of the stream.
        note: takes a line for the log.
    """

    def __init__(self, write: Callable[[bytes], bool]) -> None:
        self.client: Client | None = None
        self.ended = False
        self.note: Callable[[str], None] = _to_stderr
        self._state: Literal["new", "running", "shut down"] = "new"
        self._write = write
        self._framer = Framer()
        self.feed = self._framer.feed
        self._parsed: deque[Any] = deque()

    def next(self) -> Message | None:
        """The next message for the session, including `initialize`, which is already answered; None: feed more."""
        while not self.ended and (self._parsed or self._read()):
            while self._parsed and not self.ended:
                message: Message = self._parsed.popleft()
                if self._admits(message):
                    return message
        return None

    def write(self, body: bytes) -> None:
        """Send a message to the client."""
        if not self._write(b"Content-Length: %d\r\n\r\n" % len(body) + body):
            self.ended = True

    def close(self) -> None:
        """Nothing is left to write."""

    def shut_down(self) -> None:
        """`shutdown` was requested: from now on everything but `exit` is refused."""
        self._state = "shut down"

    @property
    def end_code(self) -> int:
        """The exit code: 0 after a shutdown, 1 without."""
        return 0 if self._state == "shut down" else 1

    def _read(self) -> bool:
        """Whether there was another frame."""
        try:
            frame = self._framer.next()
        except ValueError as error:
            # The start of the next message is unknown.
            self.note(f"cannot read the stream: {error}")
            self.ended = True
            return False
        if frame is None:
            return False
        try:
            value = json.loads(frame.decode("utf-8-sig"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            self._refuse(None, PARSE_ERROR, "The message is not valid JSON.")
        else:
            self._parsed.extend(value if isinstance(value, list) and value else [value])
        return True

    def _admits(self, message: Any) -> bool:
        """Whether the session gets it, by its form and the session's state (specification, "Server lifecycle")."""
        problem = _problem(message)
        if problem is not None:
            return self._refuse(message, INVALID_REQUEST, problem)
        method, asks = message.get("method"), "id" in message
        begins = method == "initialize"
        if method == "exit":
            self.ended = True
            return False
        if self._state == "running" and not begins:
            return True
        if not asks or method is None:
            # Notifications, and responses to our own requests, that nobody waits for any more.
            return False
        if self._state == "new" and begins:
            return self._initialize(message)
        code, reason = SERVER_NOT_INITIALIZED, "The first request must be initialize."
        if self._state != "new":
            happened = "initialized already" if self._state == "running" else "shut down"
            code, reason = INVALID_REQUEST, f"The session was {happened}."
        return self._refuse(message, code, reason)

    def _initialize(self, message: Message) -> bool:
        params = message.get("params")
        if not isinstance(params, dict) or not isinstance(params.get("capabilities"), dict):
            return self._refuse(message, INVALID_PARAMS, "initialize needs an object with the client's capabilities.")
        self.client = read_client(params)
        self._answer(message["id"], result=initialize_result(self.client))
        self._state = "running"
        return True

    def _refuse(self, message: Any, code: int, reason: str) -> Literal[False]:
        """Send an error response. `reason` never quotes the user's text."""
        message_id = message.get("id") if isinstance(message, dict) else None
        self.note(reason)
        self._answer(message_id if _is_id(message_id) else None, error={"code": code, "message": reason})
        return False

    def _answer(self, message_id: object, **answer: Any) -> None:
        self.write(json.dumps({"jsonrpc": VERSION, "id": message_id} | answer).encode("ascii"))


def _problem(message: Any) -> str | None:
    """Why this is not a valid JSON-RPC message; None if it is one."""
    if not isinstance(message, dict):
        return "A message must be a JSON object."
    if message.get("jsonrpc") != VERSION:
        return 'A message must contain "jsonrpc": "2.0".'
    if "method" not in message:
        return None if {"result", "error"} & message.keys() else "A message must have a method, a result or an error."
    if not isinstance(message["method"], str):
        return "A method must be a string."
    if "id" in message and not _is_id(message["id"]):
        return "The id of a request must be an integer or a string."
    return None


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _refuse_constant(constant: str) -> Any:
    raise ValueError(constant)  # NaN and the infinities are not JSON


def _to_stderr(line: str) -> None:
    print(f"calomel lsp: {line}", file=sys.stderr)  # noqa: T201 - there is no log yet


POLL_SECONDS: Final = 2.0


def watch_parent(process_id: int, gone: Callable[[], None]) -> None:
    """Call `gone` from another thread once the process has ended; a process that does not exist counts as ended."""
    threading.Thread(target=_wait_for_parent, args=(process_id, gone), name="calomel-parent", daemon=True).start()


def _wait_for_parent(process_id: int, gone: Callable[[], None]) -> None:
    pause = threading.Event()
    while process_of(process_id) is not None:
        pause.wait(POLL_SECONDS)
    gone()


CHUNK_BYTES: Final = 1 << 16
# If a client sends faster than its messages are handled, the rest waits in the pipe, not in memory.
MAX_PENDING_BYTES: Final = 64 * 1024 * 1024


class Transport:
    """Reads in its own thread, so that no pool, slow handler or unusual kind of pipe can block it.

    Args:
        read: blocks until there are bytes; empty at the end of the stream.
        write: blocks until all bytes are written.
    """

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], None]) -> None:
        self._receive = read
        self._write = write
        self._closed = False
        self._room = threading.Semaphore(MAX_PENDING_BYTES // CHUNK_BYTES)

    def read(self, size: int) -> bytes:
        """Wait for bytes; empty at the end of the stream. Not allowed after `start`."""
        try:
            return self._receive(size)
        except OSError:
            return b""

    def start(self, arrived: Callable[[bytes], None]) -> None:
        """Call `arrived` on the running event loop with each chunk, finally with an empty one.

        Nothing more is read while too many chunks are not `handled`.
        """
        import asyncio

        loop = asyncio.get_running_loop()

        def pump() -> None:
            data = b"."
            while data:
                data = self.read(CHUNK_BYTES)
                self._room.acquire()
                try:
                    loop.call_soon_threadsafe(arrived, data)
                except RuntimeError:
                    return  # the loop is closed: nobody listens any more

        threading.Thread(target=pump, name="calomel-read", daemon=True).start()

    def handled(self) -> None:
        """One chunk that arrived takes no memory any more."""
        self._room.release()

    def write(self, data: bytes) -> bool:
        """Send `data`; False when nobody reads any more."""
        if not self._closed:
            try:
                self._write(data)
            except (OSError, ValueError):
                self._closed = True
        return not self._closed


def claim_stdio() -> Transport:
    """Take standard input and output away from everything else in this process and its children.

    Everything printed goes to stderr; whatever reads standard input finds it empty. Call it before anything else can
    print.
    """
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a stderr
        os.dup2(nothing, 2)
        os.dup2(nothing, 1)
    os.close(nothing)
    sys.stdout = sys.stderr
    over = threading.Event()

    def read(size: int) -> bytes:
        data = os.read(reading, size)
        if not data:
            over.set()
        return data

    return Transport(read, lambda data: _write_all(writing, data, over))


# What every system takes at once (POSIX).
_LEAST_PIPE: Final = 512


def _write_all(descriptor: int, data: bytes, over: threading.Event) -> None:
    """Write `data`, which waits while nobody reads it; not after the input is `over`. Raises OSError."""
    view, most = memoryview(data), len(data) if WINDOWS else getattr(select, "PIPE_BUF", _LEAST_PIPE)
    while view:
        # Where a pipe is ready, it takes so many bytes at once.
        if not WINDOWS and not _is_ready(descriptor, over):
            raise BrokenPipeError
        view = view[os.write(descriptor, view[:most]) :]


def _is_ready(descriptor: int, over: threading.Event) -> bool:
    ended = False
    while not select.select([], [descriptor], [], POLL_SECONDS)[1]:
        if ended:
            return False
        ended = over.is_set()
    return True
