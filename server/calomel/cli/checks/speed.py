"""Whether this machine is quick enough for the model that editors ask."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from calomel.cli.checks.finding import Finding, ok, warn
from calomel.suggest.completer import Completer, CompleteRequest, CompleterError
from calomel.workspace.settings import Settings

if TYPE_CHECKING:
    from calomel.suggest.completer import ModelInfo

MIB: Final = 1024 * 1024
# Opening a larger model only to see how quick it is takes minutes and memory.
_LARGEST_BYTES: Final = 128 * MIB
# What editors wait for text at the cursor.
LATE_SECONDS: Final = 1.5
_PATIENCE: Final = 60.0
_ANSWER_TOKENS: Final = 64
# About as many characters as a token has.
_TOKEN_CHARACTERS: Final = 3


@dataclass(frozen=True, slots=True)
class Pace:
    """How long an answer takes, in seconds.

    Attributes:
        fresh: at a place that the model has not read before.
        next: at the next keystroke there.
        tokens: of context.
    """

    fresh: float
    next: float
    tokens: int


def check_speed(settings: Settings, measure: Callable[[Settings], Pace | None] | None = None) -> Finding:
    """Ask the model twice, as an editor would, and look at what else the processors do."""
    processors = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    others = f"load {load:.1f} on {processors} processors"
    try:
        pace = (measure or measured)(settings)
    except (CompleterError, OSError, ValueError, RuntimeError) as error:
        return warn("speed", f"not measured: {error}", "mend what is wrong above first")
    if pace is None:
        return ok("speed", f"not measured: the model is large; calomel bench speed does it; {others}")
    told = (
        f"{pace.next * 1000:.0f} ms for the next keystroke, {pace.fresh * 1000:.0f} ms at a new place with "
        f"{pace.tokens} tokens of context; {others}"
    )
    if pace.next < LATE_SECONDS and pace.fresh < 2 * LATE_SECONDS:
        return ok("speed", told)
    busy = "end what else keeps the processors busy, " if load > processors else ""
    return warn("speed", f"too slow: {told}", f"{busy}set suggest.context_tokens = 512, or choose a smaller model")


def measured(settings: Settings, clock: Callable[[], float] = time.perf_counter) -> Pace | None:
    """The pace of the model of these settings; None for one that is too large to be opened for this."""
    if settings.server.url is not None:
        from calomel.suggest.launch import connect

        return asyncio.run(_measured(lambda: connect(settings.server), settings, clock))
    from calomel.weights import nano_path

    folder: Path = settings.server.model or nano_path()
    if sum(each.stat().st_size for each in folder.glob("*.safetensors")) > _LARGEST_BYTES:
        return None

    async def opened() -> Completer:
        from calomel.suggest.in_process import open_completer

        return open_completer(folder, settings.server.device)

    return asyncio.run(_measured(opened, settings, clock))


async def _measured(
    connect: Callable[[], Awaitable[Completer]], settings: Settings, clock: Callable[[], float]
) -> Pace:
    completer = await connect()
    try:
        async with asyncio.timeout(_PATIENCE):
            info = await completer.info()
            # The first answer of a process pays for what only it has to do.
            await completer.complete(_question("warm", info, settings))
            text = "".join(f"def double_{number}(value):\n    return {number} * value\n\n\n" for number in range(600))
            text = text[: _context(info, settings) * _TOKEN_CHARACTERS] + "\n\n\ndef "
            seconds = []
            for asked in (text, text + "t"):
                began = clock()
                await completer.complete(_question(asked, info, settings))
                seconds.append(clock() - began)
    except TimeoutError:
        return Pace(_PATIENCE, _PATIENCE, 0)
    finally:
        await completer.aclose()
    return Pace(seconds[0], seconds[1], _context(info, settings))


def _context(info: ModelInfo, settings: Settings) -> int:
    return min(settings.suggest.context_tokens or info.default_context, info.max_context)


def _question(text: str, info: ModelInfo, settings: Settings) -> CompleteRequest:
    from calomel.prompts.parts import PromptParts

    return CompleteRequest(
        "fill",
        PromptParts(prefix=text, suffix="\n"),
        max_tokens=_ANSWER_TOKENS,
        stop=("\n",),
        max_context=_context(info, settings),
    )
