from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from calomel.engine import Engine, Request, Transformer
from calomel.engine.resident import ResidentOptions, opening
from calomel.engine.resident.graphs import Graphs, Step, capture_on

Start = Callable[..., Engine]


class Recorder:
    """Records a step as a device does: runs it to warm up, then hands out what does the same."""

    def __init__(self) -> None:
        self.recorded: list[Step] = []
        self.replays = 0

    def __call__(self, step: Step) -> Step:
        step()
        self.recorded.append(step)

        def replay() -> None:
            self.replays += 1
            step()

        return replay


def answers(engine: Engine, requests: Sequence[Request]) -> list[tuple[int, ...]]:
    return [handle.result(120).ids for handle in engine.submit_all(requests)]


def test_a_step_is_recorded_when_its_shape_comes_again() -> None:
    done: list[str] = []
    recorder = Recorder()
    graphs = Graphs(recorder)

    for _ in range(4):
        graphs.prepared("shape", lambda: done.append("step"), lambda: done.append("idle"))()

    assert done == ["step", "idle", "step", "step", "step", "step"]
    assert (len(recorder.recorded), recorder.replays) == (1, 3)


def test_the_longest_unused_recording_goes_first() -> None:
    recorder = Recorder()
    graphs = Graphs(recorder, most=2)
    for key in "aabbaccab":
        graphs.prepared(key, lambda: None, lambda: None)()

    # b went when c came, and is recorded again
    assert len(recorder.recorded) == 4


def test_without_a_recording_steps_run_as_they_are_and_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(step: Step) -> Step:
        raise RuntimeError("operation not permitted when stream is capturing\nmore of it")

    done: list[int] = []
    graphs = Graphs(refuse)
    with caplog.at_level(logging.WARNING):
        for key in (1, 1, 1, 2, 2):
            graphs.prepared(key, lambda: done.append(1), lambda: None)()

    assert len(done) == 5
    assert [record.getMessage() for record in caplog.records] == [
        "steps are not captured as CUDA graphs, and run without: operation not permitted when stream is capturing"
    ]


def test_recorded_steps_give_the_same_answers(
    model: Transformer, start: Start, context: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(opening, "capture_on", lambda device: recorder)
    requests = [Request(context[:size], 30, (10,), policy="fixed:4") for size in (20, 61)]
    expected = answers(start(model, resident=False), requests)

    engine = start(model, resident=ResidentOptions(look=2, tokens=4096))

    for _ in range(3):
        assert answers(engine, requests) == expected
    assert recorder.replays > len(recorder.recorded) > 0


def test_a_cpu_has_no_graphs() -> None:
    assert capture_on(torch.device("cpu")) is None


@pytest.mark.gpu
def test_captured_steps_give_the_answers_of_those_that_the_host_launches(config: Any, context: tuple[int, ...]) -> None:
    torch.manual_seed(7)
    model = Transformer(config).requires_grad_(False)
    requests = [Request(context[:size], 60, (16,), policy="threshold:0.1") for size in (20, 40, 61)]
    found = []
    for options in (False, ResidentOptions(tokens=8192, graphs=False), ResidentOptions(tokens=8192)):
        with Engine(model, device="cuda", cache_tokens=4096, resident=options) as engine:
            found.append([answers(engine, requests) for _ in range(4)])
    worker: Any = engine._worker

    assert found[1] == found[0]
    assert found[2] == found[0]
    assert worker._resident._graphs._recorded
