"""A model that answers from a script, and logs typed by hand, for tests of the replay."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest, ModelInfo
from calomel.prompts.parts import Edit
from calomel.replay.events import Changed, Event, LogKind, Opened, ReplayLog
from calomel.replay.log_time import run
from calomel.replay.opportunity import LogResult, ReplayOptions
from calomel.replay.player import Player

INFO = ModelInfo("scripted", "0", ("fill",), 4096, 2048, None, "0")


@dataclass
class Scripted:
    """Answers a prefix that ends with a key of the script by its text, and everything else by silence.

    A text may come with a probability; 0.9 without. Beside it stand the `rivals`: texts, and who made them.
    """

    script: dict[str, str | tuple[str, float]]
    kinds: tuple[str, ...] = ("fill",)
    requests: list[CompleteRequest] = field(default_factory=list)
    busy: Callable[[], float] = lambda: 0.0
    hangs: bool = False
    rivals: tuple[tuple[str, str], ...] = ()

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        self.requests.append(request)
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(self.busy())
        ends = [end for end in self.script if request.parts.prefix.endswith(end)]
        found = self.script[max(ends, key=len)] if ends else ""
        text, probability = found if isinstance(found, tuple) else (found, 0.9)
        log_prob = math.log(probability)
        made = [Candidate(text, (log_prob,), (0.1,), log_prob)]
        if found:
            made += [Candidate(text, (log_prob,), (0.1,), log_prob, maker=maker) for text, maker in self.rivals]
        return CompleteAnswer(tuple(made), context_tokens=100, cached_tokens=60, model="scripted")

    async def info(self) -> ModelInfo:
        return INFO

    async def aclose(self) -> None:
        pass


def typed(text: str, at: int, start: float, gap: float = 0.1, entry: int = 1, document: str = "a.py") -> list[Event]:
    """One keystroke for each character."""
    return [
        Changed(entry + number, start + number * gap, document, (Edit(at + number, at + number, character),))
        for number, character in enumerate(text)
    ]


def log_of(*events: Event, text: str = "", kind: LogKind = "recording", name: str = "log") -> ReplayLog:
    """A log of one document, `a.py`, that begins with `text`."""
    return ReplayLog(name, kind, [Opened(0, 0.0, "a.py", "python", text), *events])


def replayed(log: ReplayLog, model: Scripted, options: ReplayOptions | None = None) -> LogResult:
    """The result of a replay, by default with answers after 50 ms."""
    return player_of(log, model, options)[1]


def player_of(log: ReplayLog, model: Scripted, options: ReplayOptions | None = None) -> tuple[Player, LogResult]:
    """A replay that was played, and its result."""

    async def play() -> tuple[Player, LogResult]:
        player = Player(log, model, INFO, options or ReplayOptions(latency=0.05))
        return player, await player.play()

    return run(play())


def moments(result: LogResult) -> Sequence[tuple[str | None, str | None]]:
    """Silence and outcome of each opportunity."""
    return [(each.silence, None if each.candidate is None else each.candidate.outcome) for each in result.opportunities]
