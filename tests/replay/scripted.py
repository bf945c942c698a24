"""A model that answers from a script, and logs typed by hand, for tests of the replay."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest, ModelInfo
from calomel.prompts.parts import Edit
from calomel.replay.events import Changed, Event, LogKind, Opened, ReplayLog, apply_edits
from calomel.replay.log_time import run
from calomel.replay.opportunity import LogResult, Opportunity, ReplayOptions, Shown
from calomel.replay.player import Player
from calomel.selectivity.sample import Reaction

INFO = ModelInfo("scripted", "0", ("fill",), 4096, 2048, None, "0", source="small")


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
    address: str | None = None

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


_TEXTS = {"before": "x = ", "after": "x = 1", "expected": "x = 1", "source": "calomel", "outcome": "accepted"}
_FIGURES = {"accepted_characters": 0, "saved_characters": 0, "kept": None, "visible_seconds": 1.0}
_SHOWN = Shown(**{"edits": (), "confidence": 0.5, "signals": {}, **_TEXTS, **_FIGURES})  # type: ignore[arg-type]
_ASKED = Opportunity("log", 0, 0.0, "src/main.py", "python", "fill", None, None, shown=False)


def shown(outcome: Reaction = "accepted", confidence: float | None = 0.5, *, saved: int = 0, **changes: Any) -> Shown:
    """A suggestion of `x = 1`; `saved` characters of it were accepted."""
    made = replace(_SHOWN, outcome=outcome, confidence=confidence, saved_characters=saved, **changes)
    return replace(made, accepted_characters=saved, edits=(Edit(4, 4, made.after.removeprefix(made.before)),))


def opportunity(
    entry: int, candidate: Shown | None = None, *, computed: int = 0, cached: int = 0, **changes: Any
) -> Opportunity:
    """One at the second `entry`."""
    values = {"time": float(entry), "computed_tokens": computed, "cached_tokens": cached, **changes}
    visible = candidate is not None and values.get("silence") is None
    return replace(_ASKED, entry=entry, candidate=candidate, shown=visible, **values)


def result(
    opportunities: list[Opportunity],
    recorded: list[Opportunity] | None = None,
    *,
    minutes: float = 1.0,
    typed: int = 100,
    log: str = "log",
) -> LogResult:
    """Of a log in which somebody typed for so many minutes."""
    return LogResult(log, "recording", minutes * 60, typed, opportunities, recorded or [], active_minutes=minutes)


Entry = dict[str, Any]


def shared(name: str) -> Path:
    """A file of the public data; skips the test when it is not there."""
    data = Path(os.environ.get("CALOMEL_DATA", Path(__file__).parents[3] / "shared" / "data"))
    path = data / name
    if not path.exists():
        pytest.skip(f"{path} is not there; set CALOMEL_DATA to the folder of public data")
    return path


def texts(events: list[Event] | Any) -> dict[str, str]:
    """The text of each document after the events."""
    found: dict[str, str] = {}
    for event in events:
        if isinstance(event, Opened):
            found[event.document] = event.text
        elif isinstance(event, Changed):
            found[event.document] = apply_edits(found[event.document], event.edits)
    return found


def name_of(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()[:24]


class Recorder:
    """A recording in the making."""

    def __init__(self) -> None:
        self.time = 1_700_000_000_000
        self.entries: list[Entry] = [
            {"kind": "header", "documentType": "workspaceRecording@1.0", "repoRootUri": "file:///w", "time": self.time}
        ]
        self.requests = 0

    def add(self, kind: str, **values: Any) -> int:
        self.time += 100
        self.entries.append({"kind": kind, "time": self.time, **values})
        return len(self.entries) - 1

    def document(self, number: int, path: str, text: str) -> None:
        self.add("documentEncountered", id=number, relativePath=path)
        self.add("setContent", id=number, content=text, v=1)
        self.add("storeContent", id=number, contentId=name_of(text), v=1)

    def change(self, number: int, version: int, *edits: list[Any]) -> int:
        return self.add("changed", id=number, edit=list(edits), v=version)

    def reason(self, number: int, version: int, source: str) -> None:
        self.add(
            "documentEvent", id=number, data={"sourceId": "TextModel.setChangeReason", "source": source, "v": version}
        )

    def offer(self, number: int, version: int, where: str, text: str, **values: Any) -> None:
        self.requests += 1
        fetch = {"sourceId": "InlineCompletions.fetch", "requestId": self.requests}
        self.add(
            "documentEvent", id=number, data={**fetch, "kind": "start", "context": {"triggerKind": 0}, "v": version}
        )
        result = [{"range": where, "text": text, "isInlineEdit": False, "source": "tester"}]
        self.add("event", data={**fetch, "kind": "end", "durationMs": 5, "result": result, **values})
