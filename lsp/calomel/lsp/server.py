"""The language server: reads messages, keeps the session's life in order, and hands the rest to the session.

`initialize` is answered before anything heavy is imported: lsprotocol's types alone take longer to import than a
client should have to wait. What arrives meanwhile waits in the pipe.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from calomel.lsp import jsonrpc, parent
from calomel.lsp.capabilities import initialize_result
from calomel.lsp.client import read_client
from calomel.lsp.framing import Broken, Framer
from calomel.lsp.jsonrpc import ErrorCode, Malformed, Message, NotJsonError
from calomel.lsp.lifecycle import Lifecycle, State
from calomel.lsp.transport import Transport

if TYPE_CHECKING:
    from calomel.lsp.session import Session
    from calomel.suggest.completer import Completer
    from calomel.workspace.settings import ServerSettings

# What a backlog of messages may take before answers and timers get their turn.
TURN_SECONDS: Final = 0.004
# Nobody waits longer for an editor to close.
CLOSING_SECONDS: Final = 1.0

CompleterFactory = Callable[["ServerSettings"], Awaitable["Completer"]]


class Server:
    """One server for one client.

    Args:
        completer_factory: makes the model's completer from the settings; None for the shared engine server.
        clock: seconds that only grow.
        log: where the log goes; None for the user's state folder.
    """

    def __init__(
        self,
        completer_factory: CompleterFactory | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        log: Path | None = None,
    ) -> None:
        self._completer_factory = completer_factory
        self._clock = clock
        self._log = log
        self._lifecycle = Lifecycle()
        self._session: Session | None = None
        self._framer = Framer()
        self._chunks: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._ended = False
        self._exit_code: int | None = None

    def run(self, transport: Transport) -> int:
        """Serve until the client leaves; the exit status that the specification asks for."""
        return asyncio.run(self.serve(transport))

    async def serve(self, transport: Transport) -> int:
        """As `run`, inside of a running event loop."""
        self._transport = transport
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            # Not in threads, where tests run it.
            with contextlib.suppress(RuntimeError, ValueError):
                loop.add_signal_handler(number, self._end)
        transport.start(self._arrive)
        turn = time.perf_counter()
        while self._exit_code is None:
            frame = self._framer.next()
            if frame is None:
                if self._ended:
                    break
                await self._arrived.wait()
                self._take_chunks()
                turn = time.perf_counter()
                continue
            await self._frame(frame)
            if time.perf_counter() - turn > TURN_SECONDS:
                await asyncio.sleep(0)
                turn = time.perf_counter()
        await self._close()
        return self._lifecycle.exit_code if self._exit_code is None else self._exit_code

    def _arrive(self, data: bytes) -> None:
        if data:
            self._chunks.append(data)
        else:
            self._ended = True
        self._arrived.set()

    def _take_chunks(self) -> None:
        self._arrived.clear()
        while self._chunks:
            self._framer.feed(self._chunks.popleft())

    def _end(self) -> None:
        self._ended = True
        self._arrived.set()

    async def _frame(self, frame: bytes | Broken) -> None:
        began = time.perf_counter()
        if isinstance(frame, Broken):
            self._note(f"skipped {frame.reason}")
            return
        try:
            messages = list(jsonrpc.parse(frame))
        except NotJsonError:
            self._note("a message that is no JSON")
            self._framer.unread(frame)
            self._send(jsonrpc.error(None, ErrorCode.PARSE_ERROR, "The message is no JSON."))
            return
        for message in messages:
            await self._message(message, began)

    async def _message(self, message: Message | Malformed, began: float) -> None:
        verdict = message if isinstance(message, Malformed) else self._lifecycle.admit(message)
        if isinstance(verdict, Malformed):
            self._note(verdict.reason)
            self._send(jsonrpc.error(verdict.id, verdict.code, verdict.reason))
        elif verdict and not isinstance(message, Malformed):
            method = message.get("method")
            if method == "exit":
                self._exit_code = self._lifecycle.exit_code
            elif method == "initialize":
                self._initialize(message)
            elif method == "shutdown" and "id" in message:
                await self._shut_down(message)
            elif self._session is not None:
                self._session.receive(message)
                if method == "textDocument/didChange":
                    self._session.figures.note(time.perf_counter() - began)
                elif "id" in message:
                    # A question is about the text as it is now: let its handler begin before the next message.
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)

    def _initialize(self, message: Message) -> None:
        params = message.get("params")
        if not isinstance(params, dict) or not isinstance(params.get("capabilities"), dict):
            reason = "initialize takes an object with the client's capabilities."
            self._send(jsonrpc.error(message["id"], ErrorCode.INVALID_PARAMS, reason))
            return
        client = read_client(params)
        version = _version()
        self._send(jsonrpc.result(message["id"], initialize_result(client, version)))
        self._lifecycle.state = State.RUNNING
        if client.process_id is not None:
            loop = asyncio.get_running_loop()

            def gone() -> None:
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._end)

            parent.watch(client.process_id, gone)
        from calomel.lsp.log import log_path, open_log
        from calomel.lsp.session import Session

        log = self._log or log_path()
        open_log(log)
        self._session = Session(
            client, self._send, completer_factory=self._completer_factory, clock=self._clock, log=log, version=version
        )

    async def _shut_down(self, message: Message) -> None:
        self._lifecycle.state = State.SHUT_DOWN
        if self._session is not None:
            await self._session.stop()
        self._send(jsonrpc.result(message["id"], None))

    async def _close(self) -> None:
        if self._session is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._session.aclose()

    def _send(self, message: Message) -> None:
        if not self._transport.write(jsonrpc.encode(message)):
            self._end()

    def _note(self, what: str) -> None:
        """To the log, or before there is one, to stderr."""
        if self._session is not None:
            self._session.note(what)
        else:
            print(f"calomel lsp: {what}", file=sys.stderr)  # noqa: T201 - never stdout


def create_server(completer_factory: CompleterFactory | None = None, **options: Any) -> Server:
    """A server that is ready to serve one client; `options` are `Server`'s."""
    return Server(completer_factory, **options)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("calomel")
    except PackageNotFoundError:
        return "0"
