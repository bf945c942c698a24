"""How text leaves this process: HTTP over TCP or a Unix socket, to whoever has shown that it is who the user meant."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from calomel.infer import listener
from calomel.infer.completer import REFUSED, CompleterError
from calomel.infer.proof import Challenge, NotProvenError
from calomel.infer.runtime_file import RuntimeFileError, check_folder
from calomel.storage import is_own

# A server that loads its model answers within this time.
_PROOF_SECONDS: Final = 5.0
_CHUNK: Final = 16_384
_TCP: Final = "connection.connect_tcp.complete"
_CONNECTED: Final = frozenset({_TCP, "connection.connect_unix_socket.complete"})


class Guard:
    """Looks at each new connection before anything is sent on it.

    Args:
        url: of the server.
        token: that a server of Calomel must know; None for other servers, whose user must be the one that was meant.
        remember: note a service's account for later.
    """

    def __init__(self, url: str, token: str | None = None, *, remember: bool = True) -> None:
        self._parts = urlsplit(url)
        self._token = token
        self._remember = remember

    async def __call__(self, event: str, info: dict[str, Any]) -> None:
        """Httpcore's extension `trace`. Raises CompleterError, and httpcore's errors of a connection."""
        # An encrypted server has shown a certificate.
        if event not in _CONNECTED or self._parts.scheme == "https":
            return
        stream = info["return_value"]
        try:
            if self._token is not None:
                await self._prove(stream, self._token)
            elif event == _TCP:
                await self._look(stream)
            else:
                await asyncio.to_thread(_check_own, Path(self._parts.path))
        except BaseException:
            with suppress(Exception):
                await stream.aclose()
            raise

    async def _look(self, stream: Any) -> None:
        ends = stream.get_extra_info("server_addr"), stream.get_extra_info("client_addr")
        if None in ends:
            return
        server, client = ((end[0], end[1]) for end in ends)
        found = await asyncio.to_thread(listener.stranger, server, client, remember=self._remember)
        if found is not None:
            raise CompleterError("unreachable", f"{found.message}: nothing was sent; {found.advice}", found)

    async def _prove(self, stream: Any, token: str) -> None:
        challenge = Challenge(token, self._parts.netloc.rpartition("@")[2] or "localhost")
        await stream.write(challenge.request, timeout=_PROOF_SECONDS)
        try:
            while not challenge.proven(await stream.read(_CHUNK, timeout=_PROOF_SECONDS)):
                pass
        except NotProvenError as error:
            raise unproven(error, self._parts.netloc.rpartition("@")[2] or self._parts.path) from None


def _check_own(socket: Path) -> None:
    """A socket of ours may be gone with its folder, and another user's be there now. Raises CompleterError."""
    try:
        check_folder(socket.parent)
        if is_own(socket.lstat()):
            return
    except (OSError, RuntimeFileError):
        pass
    raise CompleterError("unreachable", f"{socket} is not a socket of yours: nothing was sent to it")


def unproven(error: NotProvenError, place: str) -> CompleterError:
    """What a failed proof means for the user."""
    if error.status in {401, 403}:
        return CompleterError("refused", REFUSED)
    if error.status == 404:  # noqa: PLR2004 (RFC 9110)
        return CompleterError("refused", f"the server at {place} needs no token, or is an older version of Calomel")
    if error.status >= 429:  # noqa: PLR2004 (RFC 6585)
        return CompleterError("unreachable", f"the server at {place} answered with status {error.status}")
    if error.status == 200:  # noqa: PLR2004 (RFC 9110)
        return CompleterError("unreachable", f"the program at {place} does not know the token: nothing was sent to it")
    return CompleterError("unreachable", f"the program at {place} is not Calomel: nothing was sent to it")


class GuardedTransport(httpx.AsyncHTTPTransport):
    """A pool of connections, each of which the guard has seen; `socket` is the path of a Unix socket."""

    def __init__(self, guard: Guard, *, limits: httpx.Limits, trusted: ssl.SSLContext, socket: str | None) -> None:
        super().__init__(verify=trusted, limits=limits, trust_env=False, uds=socket)
        self._guard = guard

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        request.extensions["trace"] = self._guard
        return await super().handle_async_request(request)
