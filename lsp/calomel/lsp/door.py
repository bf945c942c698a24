"""The beginning of a session, and the frame around all of it: bytes to messages, and which of them when.

This module and what it imports are small on purpose: `initialize` is answered before anything heavy is imported, since
lsprotocol's types alone take longer to import than a client should have to wait. What arrives meanwhile waits in the
pipe.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from calomel.lsp import jsonrpc
from calomel.lsp.capabilities import initialize_result
from calomel.lsp.client import Client, read_client
from calomel.lsp.framing import Broken, Framer
from calomel.lsp.jsonrpc import ErrorCode, Malformed, Message, NotJsonError
from calomel.lsp.lifecycle import Lifecycle, State

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
        if not self._write(jsonrpc.encode(message)):
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
            self._parsed.extend(jsonrpc.parse(frame))
        except NotJsonError:
            self.note("a message that is no JSON")
            self._framer.unread(frame)
            self.send(jsonrpc.error(None, ErrorCode.PARSE_ERROR, "The message is no JSON."))
        return True

    def _admitted(self, message: Message | Malformed) -> Message | None:
        verdict = message if isinstance(message, Malformed) else self._lifecycle.admit(message)
        if isinstance(verdict, Malformed):
            self.note(verdict.reason)
            self.send(jsonrpc.error(verdict.id, verdict.code, verdict.reason))
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
            self.send(jsonrpc.error(message["id"], ErrorCode.INVALID_PARAMS, INVALID))
            return False
        self.client = read_client(params)
        self.send(jsonrpc.result(message["id"], initialize_result(self.client)))
        self._lifecycle.state = State.RUNNING
        return True


def _to_stderr(line: str) -> None:
    print(f"calomel lsp: {line}", file=sys.stderr)  # noqa: T201 - there is no log yet
