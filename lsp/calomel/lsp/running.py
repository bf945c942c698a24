"""The event loop of a session: takes messages from the door in their order, until the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from calomel.lsp import jsonrpc, parent
from calomel.lsp.client import Client
from calomel.lsp.door import Door
from calomel.lsp.jsonrpc import Message
from calomel.lsp.log import log_path, open_log
from calomel.lsp.session import CompleterFactory, Session
from calomel.lsp.transport import Transport

# What a backlog of messages may take before answers and timers get their turn.
TURN_SECONDS: Final = 0.004
# Nobody waits longer for an editor to close.
CLOSING_SECONDS: Final = 1.0


class Running:
    """One session.

    Args:
        door: where messages come in; its client may be there already.
        completer_factory: makes the model's completer; None for the shared engine server.
        clock: seconds that only grow.
        log: where the log goes; None for the user's state folder.
    """

    def __init__(
        self, door: Door, completer_factory: CompleterFactory | None, clock: Callable[[], float], log: Path | None
    ) -> None:
        self._door = door
        self._completer_factory = completer_factory
        self._clock = clock
        self._log = log or log_path()
        self._session: Session | None = None
        self._chunks: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._ended = False

    async def serve(self, transport: Transport) -> int:
        """Serve until the client leaves; the exit status that the specification asks for."""
        self._end_at_signals()
        transport.start(self._arrive)
        if self._door.client is not None:
            self._begin(self._door.client)
        turn = time.perf_counter()
        while self._door.exit_code is None and not self._door.gone:
            message = self._door.next()
            if message is not None:
                turn = await _next_turn(turn)  # reading a message of a megabyte takes its time, too
                await self._handle(message)
                turn = await _next_turn(turn)
            elif self._door.exit_code is None:
                if self._ended and not self._chunks:
                    break
                await self._arrived.wait()
                self._arrived.clear()
                while self._chunks:
                    self._door.feed(self._chunks.popleft())
                turn = time.perf_counter()
        if self._session is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._session.aclose()
        return self._door.end_code

    def _end_at_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                # Not in threads, where tests run it.
                with contextlib.suppress(RuntimeError, ValueError):
                    loop.add_signal_handler(number, self._end)

    async def _handle(self, message: Message) -> None:
        method, session = message.get("method"), self._session
        if method == "initialize" and self._door.client is not None:
            self._begin(self._door.client)
        elif session is None:
            return
        elif method == "shutdown":
            self._door.shut_down()
            await session.stop()
            self._door.send(jsonrpc.result(message["id"], None))
        else:
            session.receive(message)
            if method == "textDocument/didChange":
                session.figures.note(time.perf_counter() - self._door.began)
            elif "id" in message:
                # A question is about the text as it is now: let its handler begin before the next message.
                await asyncio.sleep(0)
                await asyncio.sleep(0)

    def _begin(self, client: Client) -> None:
        open_log(self._log)
        self._session = Session(
            client, self._door.send, completer_factory=self._completer_factory, clock=self._clock, log=self._log
        )
        self._door.note = self._session.note
        if client.process_id is None:
            return
        loop = asyncio.get_running_loop()

        def gone() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._end)

        parent.watch(client.process_id, gone)

    def _arrive(self, data: bytes) -> None:
        if data:
            self._chunks.append(data)
        else:
            self._ended = True
        self._arrived.set()

    def _end(self) -> None:
        self._ended = True
        self._chunks.clear()
        self._arrived.set()


async def _next_turn(began: float) -> float:
    """Let others have theirs where this one has lasted long enough; when the one that goes on now began."""
    if time.perf_counter() - began <= TURN_SECONDS:
        return began
    await asyncio.sleep(0)
    return time.perf_counter()
