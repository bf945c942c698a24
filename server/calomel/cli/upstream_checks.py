"""The part of `calomel doctor` about servers that have models: the one that is named, or those that run here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from calomel.cli.checks import Finding, fail, ok, warn
from calomel.server.errors import StartError
from calomel.server.run import upstream_of
from calomel.server.settings import ServerSettings
from calomel.suggest.completer import CompleterError

# Where they listen unless they are told otherwise.
USUAL_PORTS: Final = (("llama.cpp", 8080), ("Ollama", 11434), ("LM Studio", 1234), ("vLLM", 8000))
# The maker of what speaks a format that others speak as well is told by its port.
_NAMES: Final = {"llama.cpp": "llama.cpp", "ollama": "Ollama", "vllm": "vLLM"}
_SECONDS: Final = 1.0


def check_upstream(settings: ServerSettings, ports: Sequence[tuple[str, int]] = USUAL_PORTS) -> Iterator[Finding]:
    """Whether the named server answers, and what its confidences come from; else what runs at the usual ports."""
    if settings.upstream is None:
        for name, url in asyncio.run(_running(ports)):
            yield Finding("ok", "upstream", f"{name} runs at {url}", f"calomel serve --upstream {url}")
        return
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


async def _running(ports: Sequence[tuple[str, int]]) -> list[tuple[str, str]]:
    found = await asyncio.gather(*(_at(name, port) for name, port in ports))
    return [each for each in found if each is not None]


async def _at(usual: str, port: int) -> tuple[str, str] | None:
    """What answers at a port of this machine; None for nothing, or for another program."""
    from calomel.suggest.upstream.adapters import detected
    from calomel.suggest.upstream.exchange import Exchange
    from calomel.suggest.upstream.target import Target

    url = f"http://127.0.0.1:{port}"
    exchange = Exchange(Target(url))
    try:
        async with asyncio.timeout(_SECONDS):
            return _NAMES.get(await detected(exchange), usual), url
    except (CompleterError, TimeoutError):
        return None
    finally:
        await exchange.aclose()
