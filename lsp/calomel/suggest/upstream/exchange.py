"""One question to an upstream: sent, asked a second time where nothing was answered, and read to its end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx

from calomel.suggest.upstream.errors import UpstreamError
from calomel.suggest.upstream.target import Upstream

Sleep = Callable[[float], Awaitable[None]]

CONNECT_SECONDS: Final = 5.0
# Between two pieces of a stream, the waiting in the upstream's queue included.
SILENT_SECONDS: Final = 60.0
# Of an answer that comes in one piece: thousands of tokens of a large model.
WHOLE_SECONDS: Final = 600.0
COMPLETIONS: Final = "/v1/completions"
MODELS: Final = "/v1/models"
_CONNECTIONS: Final = 256
_KEPT: Final = 32
_BUSY: Final = frozenset({429, 502, 503})
_REFUSED: Final = frozenset({400, 422})
_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 10.0


class PromptRefusedError(UpstreamError):
    """Status 400 or 422: the upstream does not take the body."""


class Line:
    """The connections to one upstream. Used in one event loop.

    Args:
        upstream: where.
        transport: in the place of the network, for tests.
        sleep: waits before a second try.
    """

    def __init__(
        self, upstream: Upstream, transport: httpx.AsyncBaseTransport | None = None, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._upstream = upstream
        self._sleep = sleep
        headers = {"accept-encoding": "identity"}
        if upstream.token is not None:
            headers["authorization"] = f"Bearer {upstream.token}"
        self._client = httpx.AsyncClient(
            # Nothing of the environment: no proxy sees a prompt that nobody meant for it, and no .netrc is believed.
            trust_env=False,
            # Where prompts go is the user's to say, not the upstream's.
            follow_redirects=False,
            headers=headers,
            limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_KEPT),
            verify=system_certificates() if upstream.url.startswith("https:") else True,
            transport=transport,
        )

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def ask(self, path: str, body: Mapping[str, Any] | None, *, streams: bool) -> AsyncIterator[httpx.Response]:
        """The head of a successful answer, its body to be read.

        Asked once more when the connection fails before an answer has begun, or the upstream is too busy for one.

        Raises:
            PromptRefusedError, UpstreamError: there is none.
        """
        silent = SILENT_SECONDS if streams else WHOLE_SECONDS
        timeout = httpx.Timeout(silent, connect=CONNECT_SECONDS, pool=None)
        method = "GET" if body is None else "POST"
        request = self._client.build_request(method, self._upstream.url + path, json=body, timeout=timeout)
        response = await self._begun(request)
        try:
            yield response
        except httpx.TimeoutException:
            raise UpstreamError(
                f"the upstream at {self._upstream.host} fell silent in the middle of an answer"
            ) from None
        except httpx.HTTPError as error:
            raise UpstreamError(
                f"the upstream at {self._upstream.host} was gone in the middle of an answer ({type(error).__name__})"
            ) from None
        finally:
            await response.aclose()

    async def _begun(self, request: httpx.Request) -> httpx.Response:
        try:
            response = await self._sent(request)
            pause = pause_of(response)
            if pause is None:
                return await self._accepted(response)
            await response.aclose()
        except httpx.TimeoutException:
            raise self._late() from None
        except httpx.TransportError:
            pause = _PAUSE
        await self._sleep(pause)
        try:
            return await self._accepted(await self._sent(request))
        except httpx.TimeoutException:
            raise self._late() from None
        except httpx.HTTPError as error:
            raise UpstreamError(
                f"the upstream at {self._upstream.host} cannot be reached ({type(error).__name__}): is it running, and "
                "is the address right?"
            ) from None

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        return await self._client.send(request, stream=True)

    async def _accepted(self, response: httpx.Response) -> httpx.Response:
        status = response.status_code
        if status == httpx.codes.OK:
            return response
        await response.aclose()
        host = self._upstream.host
        if status in _REFUSED:
            raise PromptRefusedError(f"the upstream at {host} refused a question ({status}); its own log says why")
        if status in {401, 403}:
            raise UpstreamError(f"the upstream at {host} does not accept the token ({status}): see upstream_token_file")
        if response.is_redirect:
            raise UpstreamError(
                f"the upstream at {host} sends questions on to another address ({status}), which is not followed: set "
                "upstream to where it really is"
            )
        if status == httpx.codes.NOT_FOUND:
            raise UpstreamError(
                f"the upstream at {host} has no completions, or no model of this name (404): see upstream and "
                "upstream_model"
            )
        if status in _BUSY:
            raise UpstreamError(f"the upstream at {host} has too much to do, or is not up ({status})")
        raise UpstreamError(f"the upstream at {host} failed with status {status}; its own log says why")

    def _late(self) -> UpstreamError:
        return UpstreamError(f"the upstream at {self._upstream.host} did not answer in time")


def pause_of(response: httpx.Response) -> float | None:
    """Seconds after which to ask again; None where that is not wanted, or takes too long."""
    if response.status_code not in _BUSY or "retry-after" not in response.headers:
        return None
    try:
        seconds = float(response.headers["retry-after"])
    except ValueError:  # a date: that is long
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= _LONGEST_PAUSE else None


def system_certificates() -> Any:
    """Whom this machine trusts, a company's own authority included."""
    import ssl

    return ssl.create_default_context()
