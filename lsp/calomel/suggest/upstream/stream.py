"""The body of an answer: bounded in size, whole or as a stream of events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import httpx

from calomel.engine.request import Request
from calomel.suggest.upstream.errors import UpstreamError

_BASE_BYTES: Final = 1 << 20
# An event of vLLM is some 500 bytes; names of tokens can be long.
_TOKEN_BYTES: Final = 4096
# Of a context that comes back as ids.
_CONTEXT_BYTES: Final = 16
_DONE: Final = b"[DONE]"


def most_bytes(request: Request) -> int:
    """How large the answer to `request` may be."""
    return _BASE_BYTES + _TOKEN_BYTES * request.max_new_tokens + _CONTEXT_BYTES * len(request.context)


async def chunks(response: httpx.Response, most: int) -> AsyncGenerator[bytes]:
    """The body as it comes. Raises UpstreamError when it is larger than `most`, or packed: a small one can be huge."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise UpstreamError("the upstream sent a packed answer, which was not asked for")
    seen = 0
    async for chunk in response.aiter_raw():
        seen += len(chunk)
        if seen > most:
            raise UpstreamError("the upstream's answer is larger than any answer to this question could be")
        yield chunk


async def whole(response: httpx.Response, most: int) -> Any:
    """The body as JSON. Raises as `chunks`, and for what is no JSON."""
    return parsed(b"".join([chunk async for chunk in chunks(response, most)]))


async def events(response: httpx.Response, most: int) -> AsyncGenerator[list[Any]]:
    """Server-sent events as JSON, those together that came together. Ends at `[DONE]`. Raises as `whole`."""
    rest = b""
    async with aclosing(chunks(response, most)) as parts:
        async for chunk in parts:
            *lines, rest = (rest + chunk).split(b"\n")
            found: list[Any] = []
            for line in lines:
                data = line.strip()
                if not data.startswith(b"data:"):
                    continue  # comments keep a connection alive
                said = data.removeprefix(b"data:").strip()
                if said == _DONE:
                    yield found
                    return
                found.append(parsed(said))
            if found:
                yield found


def parsed(data: bytes) -> Any:
    """JSON. Raises UpstreamError."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise UpstreamError("what the upstream answered is no JSON") from None
