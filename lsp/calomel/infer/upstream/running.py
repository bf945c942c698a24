"""Servers with models that run on this machine, at their usual ports."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from calomel.infer.upstream.exchange import Exchange, Target, UpstreamError

# The default ports.
USUAL_PORTS: Final = (("llama.cpp", 8080), ("Ollama", 11434), ("LM Studio", 1234), ("vLLM", 8000))
# If several programs speak the same format, the port tells which one it is.
TITLES: Final = {"llama.cpp": "llama.cpp", "ollama": "Ollama", "vllm": "vLLM"}
_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answered.

    Attributes:
        title: what it is, for people.
        models: by its own names; empty if it does not tell.
    """

    title: str
    url: str
    models: tuple[str, ...]


async def running(ports: Sequence[tuple[str, int]] | None = None) -> list[Running]:
    """Those of this machine that answer within seconds, in the order of the ports (None: the usual ones)."""
    servers = await asyncio.gather(*(_at(title, port) for title, port in (USUAL_PORTS if ports is None else ports)))
    return [each for each in servers if each is not None]


async def _at(usual: str, port: int) -> Running | None:
    """The server at a port; None if it is none, or another program."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            (await asyncio.open_connection("127.0.0.1", port))[1].close()
        return await _heard(usual, port)
    return None


async def _heard(usual: str, port: int) -> Running | None:
    url = f"http://127.0.0.1:{port}"
    exchange = Exchange(Target(url), remember=False)
    # Importing takes longer than finding the port closed, and longer than an answer where the machine is busy.
    adapters = await asyncio.to_thread(import_module, "calomel.infer.upstream.adapters")
    await exchange.open()
    try:
        async with asyncio.timeout(_SECONDS):
            adapter = await adapters.adapter_of(exchange)
            return Running(TITLES.get(adapter.name, usual), url, tuple(await adapter.names()))
    except (UpstreamError, TimeoutError):
        return None
    finally:
        await exchange.aclose()
