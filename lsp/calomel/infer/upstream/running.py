"""Servers with models that run on this machine, at their usual ports."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from calomel.infer.remote import is_loopback
from calomel.infer.upstream.exchange import Exchange, Target, UpstreamError

OLLAMA_PORT: Final = 11434
# llama.cpp: its own, that of its `--fim-` options and editor plugins, and the one people take next. Others: their own.
USUAL_PORTS: Final = (
    ("llama.cpp", 8080),
    ("llama.cpp", 8012),
    ("llama.cpp", 8081),
    ("Ollama", OLLAMA_PORT),
    ("LM Studio", 1234),
    ("vLLM", 8000),
)
_HERE: Final = "127.0.0.1"
# If several programs speak the same format, the port tells which one it is.
TITLES: Final = {"llama.cpp": "llama.cpp", "ollama": "Ollama", "vllm": "vLLM"}
_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answered.

    Attributes:
        title: what it is, for people.
        models: by its own names; empty if it does not tell.
        loading: it answers once it has loaded its model.
    """

    title: str
    url: str
    models: tuple[str, ...]
    loading: bool = False


async def running(ports: Sequence[tuple[str, int]] | None = None) -> list[Running]:
    """Those of this machine that answer within seconds, in the order of the ports.

    `ports` are titles and ports; None: the usual ones, and where `OLLAMA_HOST` says that Ollama listens.
    """
    places = [(title, _HERE, port) for title, port in (USUAL_PORTS if ports is None else ports)]
    named = ollama_host(os.environ.get("OLLAMA_HOST", "")) if ports is None else None
    if named is not None and ("Ollama", *named) not in places:
        places.append(("Ollama", *named))
    servers = await asyncio.gather(*(_at(*place) for place in places))
    return [each for each in servers if each is not None]


def ollama_host(value: str) -> tuple[str, int] | None:
    """Host and port of this machine that a value of `OLLAMA_HOST` names, read as Ollama does; None for no such place.

    Without a port, it is 80 for `http://` and Ollama's own otherwise.
    """
    value = value.strip().strip("\"'")
    scheme, marked, rest = value.partition("://")
    rest = (rest if marked else value).partition("/")[0]
    usual = 80 if marked else OLLAMA_PORT
    if not value or (marked and scheme.lower() != "http"):
        return None
    # An IPv6 address may come without its brackets.
    with suppress(ValueError):
        rest = f"[{ip_address(rest)}]" if ":" in rest else rest
    try:
        place = urlsplit(f"//{rest}")
        host, port = place.hostname or "0.0.0.0", place.port or usual  # noqa: S104 (which means this machine, too)
    except ValueError:
        return None
    with suppress(ValueError):
        if ip_address(host).is_unspecified:
            return _HERE, port
    return (_HERE if host == "localhost" else host, port) if is_loopback(host) else None


async def _at(usual: str, host: str, port: int) -> Running | None:
    """The server at a port; None if it is none, or another program."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            (await asyncio.open_connection(host, port))[1].close()
        return await _heard(usual, f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    return None


async def _heard(usual: str, url: str) -> Running | None:
    exchange = Exchange(Target(url), remember=False)
    # Importing takes longer than finding the port closed, and longer than an answer where the machine is busy.
    adapters = await asyncio.to_thread(import_module, "calomel.infer.upstream.adapters")
    await exchange.open()
    try:
        async with asyncio.timeout(_SECONDS):
            adapter = await adapters.adapter_of(exchange)
            return Running(TITLES.get(adapter.name, usual), url, tuple(await adapter.names()))
    except TimeoutError:
        return None
    except UpstreamError as error:
        # Other programs may be out of service, too; llama.cpp says that it loads.
        is_loading = error.code == "loading" and "loading" in error.said
        return Running(TITLES["llama.cpp"], url, (), loading=True) if is_loading else None
    finally:
        await exchange.aclose()
