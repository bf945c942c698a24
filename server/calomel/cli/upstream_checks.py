"""The part of `calomel doctor` about upstream servers: the configured one, or those running on this machine."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from calomel.cli.checks import Finding, fail, ok, warn
from calomel.prompts.fim_tokens import format_named
from calomel.server.errors import StartError
from calomel.server.settings import ServerSettings
from calomel.suggest.completer import CompleterError

# The default ports.
USUAL_PORTS: Final = (("llama.cpp", 8080), ("Ollama", 11434), ("LM Studio", 1234), ("vLLM", 8000))
# If several programs speak the same format, the port tells which one it is.
_NAMES: Final = {"llama.cpp": "llama.cpp", "ollama": "Ollama", "vllm": "vLLM"}
_SECONDS: Final = 5.0


def check_upstream(settings: ServerSettings, ports: Sequence[tuple[str, int]] = USUAL_PORTS) -> Iterator[Finding]:
    """Whether the named server answers, and where its confidences come from; else what runs at the default ports."""
    if settings.upstream is None:
        yield from asyncio.run(_running(ports))
        return
    from calomel.server.run import upstream_of  # imports the whole server

    try:
        upstream = upstream_of(settings)
        if upstream is not None:
            upstream.look()
            yield ok("upstream", upstream.said)
    except StartError as error:
        yield fail("upstream", str(error), "mend that setting")
    except CompleterError as error:
        if error.code == "refused":
            yield fail("upstream", str(error), "without that calomel serve does not start")
        else:
            yield warn("upstream", str(error), "calomel serve goes on when it is there")


async def _running(ports: Sequence[tuple[str, int]]) -> list[Finding]:
    found = await asyncio.gather(*(_at(name, port) for name, port in ports))
    return [each for each in found if each is not None]


async def _at(usual: str, port: int) -> Finding | None:
    """The server at a port of this machine, and the command that uses it; None if it is none or another program."""
    with suppress(OSError):
        (await asyncio.open_connection("127.0.0.1", port))[1].close()
        return await _heard(usual, port)
    return None


async def _heard(usual: str, port: int) -> Finding | None:
    # Importing these takes longer than finding the port closed.
    from calomel.suggest.upstream.adapters import adapter_of
    from calomel.suggest.upstream.exchange import Exchange, Target

    url = f"http://127.0.0.1:{port}"
    exchange = Exchange(Target(url))
    try:
        async with asyncio.timeout(_SECONDS):
            adapter = await adapter_of(exchange)
            names = await adapter.names()
    except (CompleterError, TimeoutError):
        return None
    finally:
        await exchange.aclose()
    named = f" --upstream-model {shlex.quote(_likely(names))}" if len(names) > 1 else ""
    found = f"{_NAMES.get(adapter.name, usual)} runs at {url}"
    editors = f'for editors: upstream = "{url}" below [server] in your settings'
    return Finding("ok", "upstream", found, f"calomel serve --upstream {url}{named}; {editors}")


def _likely(names: Sequence[str]) -> str:
    """The model that fills holes, judging by the names."""
    known = [name for name in names if format_named(name)]
    return next((name for name in known if "code" in name.lower()), (known or names)[0])
