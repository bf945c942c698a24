"""HTTP exchange with an upstream server: JSON, whole or streamed, within size limits.

Connections are kept between questions. One that is refused or breaks before any response is retried once; then the
caller gets an error, and the next question tries again. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from calomel.infer import remote
from calomel.infer.completer import CompleterError
from calomel.storage import SecretFileError, read_secret
from calomel.workspace.settings import OtherServer, UpstreamFormat

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

    from calomel.infer.listener import Listener


class UpstreamError(CompleterError):
    """The upstream server could not answer; the message is one sentence that says what to do, without the key.

    Attributes:
        status: of its response; 0 without one.
        said: its own message in lower case, to tell cases apart; never shown, since it may quote the prompt.
        gone: it is not reachable, or no longer; the next attempt may succeed.
        window: its reported context window in tokens, which the request exceeded.
    """

    def __init__(
        self,
        code: str,
        message: str,
        status: int = 0,
        said: str = "",
        *,
        gone: bool = False,
        window: int = 0,
        listener: Listener | None = None,
    ) -> None:
        super().__init__(code, message, listener)
        self.status = status
        self.said = said
        self.gone = gone
        self.window = window


@dataclass(frozen=True, slots=True)
class Target:
    """The upstream server.

    Attributes:
        url: without a final `/v1`, which the formats add themselves.
        format: the wire format; `auto` detects it.
        model: its name on the server; None for the only one.
        key: sent as `Authorization: Bearer`.
        fim: name of a format of `calomel.prompts.fim_tokens`; None to find it by the model's tokens or name.
        edit: name of a format of `calomel.prompts.next_edit`; None to find it by the model's name.
        key_names: where a user puts the key.
    """

    url: str
    format: UpstreamFormat = "auto"
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    fim: str | None = None
    edit: str | None = None
    key_names: str = "upstream_key_file or CALOMEL_UPSTREAM_KEY"

    @property
    def base(self) -> str:
        """The base URL, to which paths are added."""
        return self.url.rstrip("/").removesuffix("/v1")

    @property
    def hosted(self) -> bool:
        """Whether it is the hosted Mercury API."""
        return (urlsplit(self.url).hostname or "").endswith("inceptionlabs.ai")


def problem_of(url: str, allow_http: Sequence[str], table: str) -> str | None:
    """What is wrong with an upstream's address, as `remote.problem_of` says; None for nothing."""
    problem = remote.problem_of(url, "upstream", "http://127.0.0.1:8080", allow_http, table)
    parts = urlsplit(url) if problem is None else None
    if parts is not None and (parts.username or parts.password or parts.query or parts.fragment):
        return "upstream contains more than an address: put a key in upstream_key_file or CALOMEL_UPSTREAM_KEY"
    return problem


def target_of(url: str, settings: Any, key: str | None) -> Target:
    """The upstream that the `upstream_*` settings of an editor or of a server describe.

    Args:
        url: of the server.
        settings: `upstream_key_file` among them takes precedence over `key`.
        key: that the environment has.

    Raises CompleterError for a key that cannot be read or sent.
    """
    if settings.upstream_key_file is not None:
        try:
            key = read_secret(settings.upstream_key_file, "the key file").strip()
        except FileNotFoundError:
            message = f"the key file {settings.upstream_key_file} does not exist: create it with the key, chmod 600 it"
            raise CompleterError("refused", message) from None
        except SecretFileError as error:
            raise CompleterError("refused", str(error)) from None
    if key and not is_sendable(key):
        raise CompleterError("refused", "the upstream key may contain only printable ASCII characters without spaces")
    form, model = settings.upstream_format, settings.upstream_model
    target = Target(url, form, model, key or None, settings.upstream_fim, settings.upstream_edit)
    return replace(target, key_names="edit_upstream_key_file") if isinstance(settings, OtherServer) else target


def is_sendable(token: str) -> bool:
    """Whether a header can carry the token."""
    return token.isascii() and all(c.isprintable() and c != " " for c in token)


CONNECT_SECONDS: Final = 2.0
# Timeout between two pieces of an answer; a cold context of 32K takes half of it on two slow cores.
READ_SECONDS: Final = 60.0
# What needs no model, such as its name, is answered at once by any server that does not hang.
LOOK_SECONDS: Final = 5.0
# The first question may have to wait until the server has read gigabytes from a slow disk.
LOADING_SECONDS: Final = 300.0
_AGAIN_SECONDS: Final = 0.1
_CONNECTIONS: Final = 32
# Far more than the longest stream with all its log-probabilities, and than one of its events.
_MOST_STREAMED: Final = 8 * 1024 * 1024
_MOST_EVENT: Final = 1024 * 1024
# Lists and objects of one document, which take a microsecond each to read.
_MOST_VALUES: Final = 65_536
_MOST_ERROR_BYTES: Final = 64 * 1024
_UNAUTHORISED: Final = frozenset({401, 403})
_BUSY: Final = 429
_LOADING: Final = 503
# The wording of OpenAI, vLLM and `llama_cpp.server`; and llama.cpp's.
_WINDOW: Final = re.compile(
    r"maximum context length is (\d{3,9})\b|exceed_context_size_error.{0,500}\"n_ctx\": ?(\d{3,9})\b"
)


class Exchange:
    """Talks to one server. For one event loop at a time; call `aclose` before use in another one.

    Args:
        target: the server.
        remember: whose program it is on this machine, if that is the account of a service.
    """

    def __init__(self, target: Target, *, remember: bool = True) -> None:
        self.target = target
        self._remember = remember
        self._client: AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def get(self, path: str, patience: float | None = None) -> Any:
        """The JSON at `path`, within LOOK_SECONDS unless `patience` is given. Raises UpstreamError."""
        return await self._whole("GET", path, None, patience or LOOK_SECONDS)

    async def post(self, path: str, body: dict[str, Any], patience: float | None = None) -> Any:
        """The JSON that answers `body`, likewise. Raises UpstreamError."""
        return await self._whole("POST", path, body, patience or LOOK_SECONDS)

    async def events(self, path: str, body: dict[str, Any], patience: float = READ_SECONDS) -> AsyncGenerator[Any]:
        """The JSON documents of a streamed answer, as server-sent events or one per line; closing it frees the slot.

        Raises UpstreamError.
        """
        came = False
        for last in (False, True):
            try:
                async with aclosing(self._events(path, body, patience)) as items:
                    async for item in items:
                        came = True
                        yield item
            except UpstreamError as error:
                if came or last or not error.gone:
                    raise
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        self._opening = asyncio.Lock()
        if client is not None:
            await client.aclose()

    def broken(self) -> UpstreamError:
        """The error for an answer that breaks off."""
        message = f"{self._place} stopped in the middle of an answer: see its log, then try again"
        return UpstreamError("failed", message, gone=True)

    def nonsense(self) -> UpstreamError:
        """The error for an answer that does not follow its format."""
        message = f"{self._place} did not answer with {self.target.format} format: check upstream and upstream_format"
        return UpstreamError("failed", message)

    @property
    def _place(self) -> str:
        return f"the server at {self.target.base}"

    @property
    def _unanswered(self) -> str:
        base = self.target.base
        return f"{remote.unanswered(base)}: {remote.to_answer(base, 'start it, or correct upstream')}"

    async def _whole(self, method: str, path: str, body: dict[str, Any] | None, patience: float) -> Any:
        try:
            return self._read(await self._body(method, path, body, patience))
        except UpstreamError as error:
            if not error.gone:
                raise
        await asyncio.sleep(_AGAIN_SECONDS)
        return self._read(await self._body(method, path, body, patience))

    async def _body(self, method: str, path: str, body: dict[str, Any] | None, patience: float) -> bytes:
        try:
            # The library's own timeout begins anew with each piece.
            async with asyncio.timeout(patience), self._response(method, path, body, patience) as response:
                return await remote.whole_body(response)
        except TimeoutError:
            raise self._late() from None

    async def _events(self, path: str, body: dict[str, Any], patience: float) -> AsyncGenerator[Any]:
        async with self._response("POST", path, body, patience) as response, aclosing(_lines(response)) as lines:
            async for line in lines:
                data = line.strip()
                if data.startswith((b"data:", b"error:")):
                    data = data.partition(b":")[2].strip()
                elif not data.startswith(b"{"):
                    continue  # blank, a comment, or an event field of no interest
                if not data:
                    continue  # a proxy that keeps the connection open
                if data == b"[DONE]":
                    return
                items = self._read(data)
                if isinstance(items, dict) and items.get("error"):
                    raise self._refusal(_status(items), data)
                yield items

    def _read(self, data: bytes) -> Any:
        if data.count(b"[") + data.count(b"{") > _MOST_VALUES:
            raise self.nonsense()
        try:
            # Some servers write NaN, which is not JSON, for a missing log-probability.
            return json.loads(data)
        except (ValueError, RecursionError):
            raise self.nonsense() from None

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, body: dict[str, Any] | None, patience: float
    ) -> AsyncGenerator[Response]:
        """A response with a good status; errors while its body is read are mapped alike."""
        client = await self.open()
        import httpx  # imported already, with the client

        timeout = httpx.Timeout(patience, connect=CONNECT_SECONDS)
        request = client.build_request(method, remote.http_address(self.target.base) + path, json=body, timeout=timeout)
        try:
            response = await client.send(request, stream=True)
            try:
                if response.status_code != httpx.codes.OK:
                    raise self._refusal(response.status_code, await _beginning(response))
                yield response
            finally:
                await response.aclose()
        except CompleterError as error:
            if isinstance(error, UpstreamError):
                raise
            raise UpstreamError(error.code, str(error), listener=error.listener) from None
        except httpx.ConnectTimeout:
            raise UpstreamError("timeout", self._unanswered) from None
        except httpx.TimeoutException:
            raise self._late() from None
        except httpx.ConnectError as error:
            raise self._unreachable(error) from None
        except (httpx.HTTPError, httpx.InvalidURL):
            raise self.broken() from None

    def _late(self) -> UpstreamError:
        return UpstreamError("timeout", f"{self._place} did not answer in time: it may be overloaded")

    def _unreachable(self, error: Exception) -> UpstreamError:
        problem = remote.tls_problem(error)
        if problem is None:
            return UpstreamError("unreachable", self._unanswered, gone=True)
        return UpstreamError("refused", f"{self._place} {problem}")

    def _refusal(self, status: int, data: bytes) -> UpstreamError:
        """The error for a status; never repeats the body, which may quote the prompt."""
        text = data.decode("utf-8", "replace").lower()
        if status in _UNAUTHORISED:
            does = "requires a key" if self.target.key is None else "rejects the key"
            message = f"{self._place} {does}: set {self.target.key_names}"
            return UpstreamError("refused", message, status, text)
        if 300 <= status < 400:  # noqa: PLR2004 (RFC 9110)
            message = f"{self._place} redirects elsewhere, which Calomel does not follow: set upstream to that address"
            return UpstreamError("refused", message, status, text)
        if status == _BUSY:
            return UpstreamError("overloaded", f"{self._place} is overloaded: try again shortly", status, text)
        if status == _LOADING:
            message = f"{self._place} is not ready yet: wait until it has loaded its model"
            return UpstreamError("loading", message, status, text)
        window = _WINDOW.search(text)
        if window:
            room = window[1] or window[2]
            message = (
                f"{self._place} has room for {room} tokens: Calomel shortens the next prompt; to use more, "
                "enlarge the server's context"
            )
            return UpstreamError("failed", message, status, text, window=int(room))
        message = f"{self._place} answered with an error ({status or 'in its answer'}): see its log"
        return UpstreamError("failed", message, status, text)

    async def open(self) -> AsyncClient:
        """What sends: made at the first question, or before it by whoever counts the time of an answer."""
        async with self._opening:
            if self._client is None:
                key = self.target.key
                headers = {} if key is None else {"authorization": f"Bearer {key}"}
                # In a thread, so that others do not wait.
                base, remember = self.target.base, self._remember
                self._client = await asyncio.to_thread(
                    remote.open_client, base, _CONNECTIONS, headers, remember=remember
                )
            return self._client


async def _lines(response: Response) -> AsyncGenerator[bytes]:
    """Lines without their line ends. Raises as `remote.chunks` does, also for a line that is too long."""
    import httpx

    rest = bytearray()
    async with aclosing(remote.chunks(response, _MOST_STREAMED)) as parts:
        async for chunk in parts:
            *lines, last = chunk.split(b"\n")
            for line in lines:
                yield bytes(rest + line)
                rest.clear()
            rest += last
            if len(rest) > _MOST_EVENT:
                raise httpx.RemoteProtocolError("too long")
    if rest:
        yield bytes(rest)


async def _beginning(response: Response) -> bytes:
    """The start of an error's body, enough to tell cases apart; nothing of an encoded one."""
    import httpx

    body = bytearray()
    try:
        async with aclosing(remote.chunks(response, _MOST_ERROR_BYTES)) as parts:
            async for chunk in parts:
                body += chunk
    except httpx.RemoteProtocolError:
        pass  # the beginning is enough
    return bytes(body)


def _status(fields: dict[str, Any]) -> int:
    """The status code in an error inside a stream."""
    error = fields["error"]
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 100 <= code < 600 else 0  # noqa: PLR2004 (RFC 9110)
