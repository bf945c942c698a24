"""Replays of several logs, here, in processes and over a cluster, and of the public logs."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from tests.replay.scripted import Scripted, log_of, typed

from calomel.infer.completer import CompleteAnswer, CompleteRequest
from calomel.prompts.parts import Edit
from calomel.replay.events import Changed, ReplayLog
from calomel.replay.opportunity import Latency, LogResult, ReplayOptions
from calomel.replay.runs import replay_logs

OPTIONS = ReplayOptions(latency=0.05)
SCRIPT: dict[str, str | tuple[str, float]] = {"x = ": "compute(1)", "y = ": ("other", 0.1)}


def open_scripted(_: ReplayOptions) -> Scripted:
    return Scripted(SCRIPT)


def logs(count: int = 3) -> list[ReplayLog]:
    return [
        log_of(*typed("xyz"[at % 3] + " = ", 0, 1.0), *typed("compute(1)", 4, 5.0 + at, entry=5), name=f"log-{at}")
        for at in range(count)
    ]


class Interrupted(Scripted):
    """Its user loses patience at the third question."""

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        if len(self.requests) == 2:
            raise KeyboardInterrupt
        return await super().complete(request)


@pytest.mark.parametrize("latency", [0.05, "measured"])
def test_an_interrupted_run_goes_on_where_it_stopped(
    tmp_path: Path, latency: Latency, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ReplayOptions(latency=latency)
    first = log_of(Changed(1, 1.0, "a.py", (Edit(0, 0, "x = "),)), name="first")
    pauses = [Changed(at, at * 20.0, "a.py", (Edit(4 * at, 4 * at, "y = "),)) for at in range(4)]
    second = log_of(*pauses, name="second")
    model = Interrupted(SCRIPT)

    def open_model(_: ReplayOptions) -> Scripted:
        return model

    with pytest.raises(KeyboardInterrupt):
        replay_logs([first, second], options, open_model=open_model, folder=tmp_path)
    assert len(model.requests) == 2
    again = Scripted(SCRIPT)
    model = again  # type: ignore[assignment]
    results = replay_logs([first, second], options, open_model=open_model, folder=tmp_path)
    # The first log is done.
    assert len(again.requests) == len(pauses)
    if latency != "measured":
        assert results == replay_logs([first, second], options, open_model=open_scripted, folder=tmp_path / "other")
    assert list(tmp_path.glob("*.jsonl")) == []


def test_several_processes_give_what_one_gives_in_the_same_order(tmp_path: Path) -> None:
    told: list[tuple[int, int, int]] = []

    def news(*numbers: int) -> None:
        told.append((numbers[0], numbers[1], numbers[2]))

    alone = replay_logs(logs(), OPTIONS, open_model=open_scripted, folder=tmp_path, report=news)
    together = replay_logs(logs(), OPTIONS, jobs=2, open_model=open_scripted, folder=tmp_path)
    assert [result.log for result in together] == ["log-0", "log-1", "log-2"]
    assert msgspec.to_builtins(together) == msgspec.to_builtins(alone)
    assert msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(alone))), list[LogResult]) == alone
    assert alone[0].opportunities[0].shown
    assert (0, 15, 15) in told
    assert told[-1] == (2, 15, 15)
