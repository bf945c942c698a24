"""A language-server client of one bench: starts the real program, speaks over its pipes, waits for answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

# An answer that takes longer is a hang, not a slow answer.
ANSWER_SECONDS = 120.0


class SessionError(RuntimeError):
    """The program ended, or answered with an error; the message says which."""


class LspSession:
    """One process and one connection. Requests may overlap; answers find their way back by id."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._count = 0
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str]) -> LspSession:
        """Start `command` with pipes; what it writes to stderr is dropped."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(env),
        )
        return cls(process)

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(self, method: str, params: object) -> Any:
        """Send a request and wait for its result. Raises SessionError for an error answer or a program that ended."""
        self._count += 1
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._count] = waiting
        self._send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        return await asyncio.wait_for(waiting, ANSWER_SECONDS)

    async def end(self) -> None:
        """Shut the program down as an editor does; kill it when it does not follow."""
        with contextlib.suppress(SessionError, TimeoutError, ConnectionError):
            await self.request("shutdown", None)
            self.notify("exit", None)
            await asyncio.wait_for(self._process.wait(), 10)
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    def _send(self, message: Mapping[str, object]) -> None:
        body = json.dumps(message).encode()
        if self._process.stdin is not None:
            self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _read(self) -> None:
        stream = self._process.stdout
        try:
            while stream is not None:
                headers = await stream.readuntil(b"\r\n\r\n")
                lengths = [line for line in headers.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                message = json.loads(await stream.readexactly(int(lengths[0].split(b":")[1])))
                self._receive(message)
        except (asyncio.IncompleteReadError, ConnectionError):
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(SessionError("the language server ended"))

    def _receive(self, message: Mapping[str, Any]) -> None:
        if "method" in message:
            if "id" in message:
                items = (message.get("params") or {}).get("items")
                result = [None] * len(items) if message["method"] == "workspace/configuration" and items else None
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})
            return
        waiting = self._waiting.pop(message["id"], None)
        if waiting is None or waiting.done():
            return
        if "error" in message:
            waiting.set_exception(SessionError(f"error {message['error'].get('code')}: {message['error']['message']}"))
        else:
            waiting.set_result(message.get("result"))
