"""A model behind HTTP: the server that the user configured, or the one that the user's editor windows share."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from calomel.infer.completer import REFUSED, CompleteAnswer, CompleteRequest, CompleterError, ModelInfo
from calomel.infer.door import Door, OpenDoor
from calomel.infer.runtime_file import socket_in
from calomel.infer.wire import COMPLETE_PATH, INFO_PATH, FieldError, decode, decode_info, encode

if TYPE_CHECKING:
    from httpx import AsyncClient, HTTPError, Response


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine alone: a loopback address, or `localhost`."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def problem_of(url: str, setting: str, example: str, allow_http: Sequence[str], table: str) -> str | None:
    """What is wrong with an address, the value of a setting, to which prompts would be sent; None for nothing.

    `allow_http`, a setting in `table`, has the hosts of other machines that may be sent to without encryption.
    """
    try:
        parts = urlsplit(url)
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole or any(character.isspace() for character in url):
        return f"{setting} is not an address such as {example}"
    host = parts.hostname or ""
    if parts.scheme == "https" or is_loopback(host) or any(_is_in(host, each) for each in allow_http):
        return None
    line = f"allow_http = [{json.dumps(host, ensure_ascii=False)}] under [{table}] in your own calomel.toml"
    return (
        f"{setting} would send your code unencrypted to another machine: use https, or a tunnel (ssh -L), "
        f"or write {line} if you trust everybody on that network"
    )


def _is_in(host: str, listed: str) -> bool:
    """Whether a host is the one that is listed, by its name or address, or in the network that is listed."""
    if host.lower() == listed.lower():
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(listed, strict=False)
    except ValueError:
        return False


CONNECT_SECONDS: Final = 2.0
# An engine that is silent for this long hangs; a cold context of 32K takes half of it on two slow cores.
ANSWER_SECONDS: Final = 60.0
_IDLE_CONNECTIONS: Final = 4
# The address of whatever listens on a Unix socket.
_OVER_SOCKET: Final = "http://localhost"
_CREDENTIALS: Final = re.compile(r"//[^@/]*@")


def shown(url: str) -> str:
    """An address for people: without the name and the password before its `@`."""
    return _CREDENTIALS.sub("//", url)


def unanswered(url: str) -> str:
    """That nothing answers at an address."""
    return f"no server answers at {shown(url)}"


def to_answer(url: str, start: str) -> str:
    """What to do about it: to `start` the server is possible on this machine alone."""
    here = socket_in(url) is not None or is_loopback(urlsplit(url).hostname or "")
    return start if here else "check the network and the address"


_HOST_AND_PORT: Final = re.compile(r"(localhost|[\w.-]+:\d{1,5}|\[[0-9a-fA-F:.]+\]:\d{1,5})(/[^\s]*)?")


def with_scheme(address: str) -> str:
    """The address with `http://` before it if it is only a host with its port."""
    return f"http://{address}" if _HOST_AND_PORT.fullmatch(address) else address


# Codes of the server's errors.
_CODES: Final = {"model_loading": "loading", "engine_overloaded": "overloaded"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens.

    Attributes:
        url: `http://host:port`, without a path, or `unix:` and the path of a socket.
        token: that it requires; None if it needs none.
        own: this user's editors started it, so text may reach it as it is.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    own: bool = field(default=False, compare=False)


class HttpCompleter:
    """The model of one server. Requests are never retried: the next keystroke makes a better one.

    Args:
        endpoint: of the server.
        session: name under which the server keeps this client's contexts together; may be empty.
        ended: why the server ended; None if it did not, or is not known.
        door: by which requests leave, unless the server is our own; None for one that knows no files.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        session: str = "",
        ended: Callable[[], Awaitable[str | None]] | None = None,
        door: Door | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._door = OpenDoor() if endpoint.own else door or Door()
        self._ended = ended
        self._headers = {"content-type": "application/json"}
        if endpoint.token is not None:
            self._headers["authorization"] = f"Bearer {endpoint.token}"
        if session:
            self._headers["x-session-id"] = session
        self._client: AsyncClient | None = None

    @property
    def address(self) -> str:
        """Where the server listens."""
        return self._endpoint.url

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Cancelling closes the connection. Raises CompleterError."""
        sent = await self._door.send(request)
        try:
            body = encode(replace(sent.request, file=None))
        except FieldError as error:
            raise CompleterError("refused", str(error)) from None
        try:
            return sent.read(decode(await self._send("POST", COMPLETE_PATH, body), CompleteAnswer))
        except FieldError as error:
            raise CompleterError("failed", f"cannot read the server's answer: {error}") from None

    async def info(self) -> ModelInfo:
        """What the model can do. Raises CompleterError, `loading` while it is not loaded."""
        try:
            return decode_info(await self._send("GET", INFO_PATH))
        except FieldError as error:
            field = error.field or "its answer"
            raise CompleterError(
                "refused",
                f"the server and your editor use different versions of Calomel ({field}): upgrade the older one, then "
                "restart",
            ) from None
        except CompleterError as error:
            # It may have ended while its model was loaded.
            lost = self._ended is not None and error.code in {"unreachable", "failed"}
            why = await self._ended() if self._ended is not None and lost else None
            if why is not None:
                raise CompleterError("failed", why) from None
            raise

    async def open(self) -> AsyncClient:
        """What asks: opened at the first question, or before it by whoever counts the time of an answer."""
        if self._client is None:
            url, token = self._endpoint.url, self._endpoint.token
            self._client = await asyncio.to_thread(open_client, url, _IDLE_CONNECTIONS, token=token)
        return self._client

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        status, content = await self._request(method, path, body)
        if 200 <= status < 300:  # noqa: PLR2004 (RFC 9110)
            return content
        raise _refusal(status, content)

    async def _request(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """The status and the body of a response, which comes within ANSWER_SECONDS, all of it."""
        client = await self.open()
        import httpx  # imported already, with the client

        url = http_address(self._endpoint.url) + path
        timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        request = client.build_request(method, url, content=body, headers=self._headers, timeout=timeout)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                response = await client.send(request, stream=True)
                try:
                    return response.status_code, await whole_body(response)
                finally:
                    await response.aclose()
        except httpx.ConnectTimeout:
            raise CompleterError("timeout", unanswered(self._endpoint.url)) from None
        except (httpx.TimeoutException, TimeoutError):
            raise CompleterError("timeout", "the model's server did not answer in time") from None
        except httpx.HTTPError as error:
            # Refused, reset, or closed during the answer.
            raise _gone(error, self._endpoint, first=path == INFO_PATH) from None


def http_address(url: str) -> str:
    """The address for HTTP: that of a Unix socket names this machine."""
    return url if socket_in(url) is None else _OVER_SOCKET


# Far more than the longest answer. What is longer would keep the event loop busy when it is read.
MOST_BYTES: Final = 3 * 512 * 1024
_MOST_CHUNKS: Final = 65_536
# Chunks that are already here are taken in turns.
_TURN: Final = 64


async def chunks(response: Response, most: int) -> AsyncGenerator[bytes]:
    """The body of a streamed response as it was sent.

    Raises what httpx raises, and RemoteProtocolError for more than `most` bytes, for very many chunks, and for an
    encoding, which was not asked for: a kilobyte may unfold into gigabytes before anybody can count them.
    """
    import httpx  # imported already, with the client

    if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise httpx.RemoteProtocolError("encoded")
    taken = count = 0
    async for chunk in response.aiter_raw():
        taken, count = taken + len(chunk), count + 1
        if taken > most or count > _MOST_CHUNKS:
            raise httpx.RemoteProtocolError("too long")
        if count % _TURN == 0:
            await asyncio.sleep(0)
        yield chunk


async def whole_body(response: Response, most: int = MOST_BYTES) -> bytes:
    """All of a streamed response. Raises as `chunks` does."""
    async with aclosing(chunks(response, most)) as parts:
        return b"".join([chunk async for chunk in parts])


def open_client(
    url: str,
    idle: int,
    headers: Mapping[str, str] | None = None,
    *,
    token: str | None = None,
    remember: bool = True,
) -> AsyncClient:
    """What asks the server at `url`, keeping so many idle connections. Takes 80 ms at first: call it in a thread.

    `token` and `remember` are the guard's (`calomel.infer.transport`).
    """
    import ssl

    import httpx

    from calomel.infer.transport import Guard, GuardedTransport

    _find_sniffio_once()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=idle)
    # The system's certificates, or those in SSL_CERT_FILE. No proxy from the environment: prompts go to no one else.
    trusted = ssl.create_default_context()
    headers = {**(headers or {}), "accept-encoding": "identity"}
    guard = Guard(url, token, remember=remember)
    transport = GuardedTransport(guard, limits=limits, trusted=trusted, socket=socket_in(url))
    return httpx.AsyncClient(headers=headers, transport=transport, trust_env=False, follow_redirects=False)


def tls_problem(error: BaseException | None) -> str | None:
    """Why a connection could not be encrypted, as what a sentence says of the server; None for another error."""
    import ssl

    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"has no trusted certificate ({error.verify_message}): set SSL_CERT_FILE to its certificate authority"
            )
        if isinstance(error, ssl.SSLError):
            return f"does not support TLS, or its version ({error.reason or 'no TLS'}): on this machine, use http://"
        error = error.__cause__ or error.__context__
    return None


def _find_sniffio_once() -> None:
    """Remember that `sniffio` is not installed, if it is not.

    httpcore tries to import it four times per question, and Python searches its whole path each time: a quarter of a
    question's cost on the client's side.
    """
    if "sniffio" not in sys.modules and find_spec("sniffio") is None:
        # This is how Python is told that a module does not exist.
        sys.modules["sniffio"] = None  # type: ignore[assignment]


def _gone(error: HTTPError, endpoint: Endpoint, *, first: bool) -> CompleterError:
    import httpx

    place = shown(endpoint.url)
    problem = tls_problem(error)
    if problem is not None:
        return CompleterError("refused", f"the server at {place} {problem}")
    if isinstance(error, httpx.ConnectError):
        return CompleterError("unreachable", unanswered(endpoint.url))
    # Our server may break off an answer, but never starts with anything but HTTP.
    if first and isinstance(error, httpx.ProtocolError):
        return CompleterError("unreachable", f"the program at {place} is not Calomel")
    return CompleterError("unreachable", f"the model's server stopped ({type(error).__name__})")


def _refusal(status: int, content: bytes) -> CompleterError:
    """The server's error as a CompleterError; only its code and message are used."""
    try:
        error = json.loads(content)["error"]
        code, message = str(error.get("code")), str(error.get("message"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        code, message = "", f"the server answered with status {status}"
    if status in {401, 403}:
        return CompleterError("refused", REFUSED)
    if status == 404:  # noqa: PLR2004 (RFC 9110)
        return CompleterError("refused", "this server is not Calomel, or is an older version")
    if status < 500:  # noqa: PLR2004 (RFC 9110)
        return CompleterError("refused", message)
    return CompleterError(_CODES.get(code, "failed"), message)
