"""The part of `calomel doctor` about upstream servers: the configured one, or those running on this machine."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Sequence

from calomel.cli.checks import Finding, fail, ok, warn
from calomel.infer.completer import CompleterError
from calomel.infer.upstream.running import USUAL_PORTS, Running, running
from calomel.prompts.fim_tokens import format_named
from calomel.server.errors import StartError
from calomel.server.settings import ServerSettings


def check_upstream(settings: ServerSettings, ports: Sequence[tuple[str, int]] = USUAL_PORTS) -> Iterator[Finding]:
    """Whether the named server answers, and where its confidences come from; else what runs at the default ports."""
    if settings.upstream is None:
        yield from map(_found, asyncio.run(running(ports)))
        return
    from calomel.server.run import upstream_of  # imports the whole server

    try:
        upstream = upstream_of(settings)
        if upstream is not None:
            upstream.look()
            yield ok("upstream", upstream.note)
    except StartError as error:
        yield fail("upstream", str(error), "correct that setting")
    except CompleterError as error:
        if error.code == "refused":
            yield fail("upstream", str(error), "calomel serve does not start without it")
        else:
            yield warn("upstream", str(error), "calomel serve continues once it is there")


def _found(server: Running) -> Finding:
    """A server of this machine, and the command that uses it."""
    names = server.models
    named = f" --upstream-model {shlex.quote(_likely(names))}" if len(names) > 1 else ""
    editors = f'in the settings of your editors: upstream = "{server.url}" below [server]'
    advice = f"calomel serve --upstream {server.url}{named}; {editors}"
    return Finding("ok", "upstream", f"{server.title} runs at {server.url}", advice)


def _likely(names: Sequence[str]) -> str:
    """The model that fills holes, judging by the names."""
    known = [name for name in names if format_named(name)]
    return next((name for name in known if "code" in name.lower()), (known or names)[0])
