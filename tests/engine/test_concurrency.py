"""Requests beside each other. Nothing here sleeps: what happens when is decided by hooks on the engine's thread."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.conftest import Context, Start, random
from torch import Tensor

from calomel.engine import CanvasState, Engine, EngineStoppedError, Handle, ModelConfig, Priority, Request, Transformer
from calomel.engine.decoder import StepReport
from calomel.engine.errors import ContextTooLongError, RequestCancelledError, RequestFailedError


class Gate:
    """Holds the engine's thread behind every forward until the test lets it go on; then counts."""

    def __init__(self) -> None:
        self.reports: list[StepReport] = []
        self.before: dict[int, Callable[[], None]] = {}
        self._open = threading.Event()
        self.open = self._open.set

    def __call__(self, report: StepReport) -> None:
        self._open.wait(60)
        self.reports.append(report)
        self.before.pop(len(self.reports), lambda: None)()


Gated = Callable[..., Engine]


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def gated(model: Any, start: Start, gate: Gate) -> Gated:
    """Start an engine that waits for `gate`."""
    return lambda **options: start(model, observe=gate, **options)


def slowly(context: Context, size: int, **more: Any) -> Request:
    """An answer of `size` tokens, one in each step."""
    return Request(context, size, size, min_new_tokens=size, policy="fixed:1", max_steps=99, **more)


def cancelled(handle: Handle) -> None:
    with pytest.raises(RequestCancelledError):
        handle.result(60)


def test_requests_share_forwards_and_the_chunks_of_their_prefill(gated: Gated, gate: Gate, context: Context) -> None:
    engine = gated(prefill_chunk=10)
    handles = [engine.submit(slowly(context[index:], 8)) for index in range(4)]
    gate.open()
    for handle in handles:
        handle.result(60)

    assert max(report.requests for report in gate.reports) >= 3
    assert max(report.prefill_rows for report in gate.reports) == 10


def test_cancelling_frees_the_slot_within_one_step(gated: Gated, gate: Gate, context: Context) -> None:
    engine = gated(max_batch=1)
    first, second = engine.submit(slowly(context, 30)), engine.submit(Request(context, 1, 1))
    gate.before[5] = first.cancel
    gate.open()
    cancelled(first)
    second.result(60)

    # No forward of the first one behind the fifth; what is left is the second's.
    assert [report.rows for report in gate.reports[5:]] == [1 + engine.config.diffusion.logit_shift]


def test_cancelling_stops_a_prefill_within_one_chunk_and_keeps_its_pages(
    gated: Gated, gate: Gate, context: Context
) -> None:
    engine = gated(prefill_chunk=8, page_size=4)
    handle = engine.submit(Request(context, 4, 4))
    gate.before[3] = handle.cancel
    gate.open()
    cancelled(handle)

    assert engine.submit(Request(context, 4, 4)).result(60).cached_tokens == 24


def test_a_waiting_request_is_cancelled_without_a_forward(gated: Gated, gate: Gate, context: Context) -> None:
    engine = gated(max_batch=1)
    first, waiting = engine.submit(Request(context, 2, 2)), engine.submit(slowly(context, 30))
    waiting.cancel()
    gate.open()
    cancelled(waiting)
    first.result(60)

    assert len(gate.reports) <= 1 + 3


def test_a_request_that_could_never_fit_is_refused_at_once(gated: Gated, gate: Gate, context: Context) -> None:
    engine = gated(cache_tokens=160, page_size=4, prefill_chunk=64)
    gate.open()
    ask = Request(context, 4, 4)

    with pytest.raises(ContextTooLongError, match="room for 160"):
        engine.submit(replace(ask, context=context * 3))
    assert engine.submit(ask).result(60).finish_reason in {"stop", "length"}


def test_work_in_the_background_takes_no_room_from_an_answer(gated: Gated, gate: Gate, context: Context) -> None:
    engine = gated(cache_tokens=320, page_size=4)
    first, later = engine.submit(slowly(context, 40)), list[Handle]()
    behind = slowly(context[::-1], 40, priority=Priority.BACKGROUND, client="another")
    gate.before[2] = lambda: later.append(engine.submit(behind))
    gate.open()

    assert len(first.result(60).ids) == 40
    assert len(later[0].result(60).ids) == 40


def test_a_failing_thread_reaches_every_waiting_request(
    gated: Gated, gate: Gate, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = gated(max_batch=1)
    handles = [engine.submit(Request(context, 6, 6)) for _ in range(3)]
    monkeypatch.setattr(engine.decoder, "fits", fail)
    gate.open()

    for handle in handles[1:]:
        with pytest.raises(EngineStoppedError, match="MemoryError") as caught:
            handle.result(60)
        assert isinstance(caught.value.__cause__, MemoryError)
    with pytest.raises(EngineStoppedError, match="MemoryError"):
        engine.submit(Request(context, 6, 6))


def fail(*_: Any) -> Any:
    raise MemoryError


class Faulty(Transformer):
    """Its forward runs out of memory where it reads the token `bad`."""

    bad = 93

    def forward(self, ids: Tensor, *rest: Any) -> Tensor:
        if self.bad in ids.tolist():
            raise torch.OutOfMemoryError("out of memory")
        return super().forward(ids, *rest)


def without_numbers(config: ModelConfig) -> Transformer:
    """What reads `Faulty.bad` is no number, nor what comes after it."""
    model = random(Transformer(replace(config, tie_word_embeddings=False)))
    model.embed_tokens.weight[Faulty.bad] = math.nan
    return model


@pytest.mark.parametrize("said", ["out of memory", "not finite numbers"])
def test_a_failing_forward_ends_its_own_request_alone(
    config: ModelConfig, start: Start, gate: Gate, context: Context, said: str
) -> None:
    model = without_numbers(config) if said == "not finite numbers" else random(Faulty(config))
    engine = start(model, observe=gate)
    asked = [slowly(context, 8), slowly(context[5:], 8), slowly((*context[:20], Faulty.bad), 8)]
    handles = [engine.submit(each) for each in asked]
    gate.open()

    with pytest.raises(RequestFailedError, match=said):
        handles[2].result(60)
    found = [handle.result(60).ids for handle in handles[:2]]
    assert found == [start(model).submit(each).result(60).ids for each in asked[:2]]
    assert engine.submit(slowly(context[::-1], 8)).result(60).ids


def test_an_engine_leaves_the_threads_of_others_alone(start: Start, model: Any, context: Context) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        start(model, threads=1).submit(slowly(context, 4)).result(60)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_closing_ends_what_is_not_done(gated: Gated, gate: Gate, context: Context) -> None:
    engine = gated()
    handle = engine.submit(slowly(context, 30))
    with pytest.raises(TimeoutError):
        handle.result(0.0)
    gate.before[1] = engine._scheduler.close
    gate.open()

    with pytest.raises(EngineStoppedError, match="closed"):
        handle.result(60)
    engine.close()
    with pytest.raises(EngineStoppedError, match="closed"):
        engine.submit(Request(context, 6, 6))


async def test_a_coroutine_waits_and_sees_each_state_before_the_request_is_done(
    gated: Gated, gate: Gate, context: Context
) -> None:
    engine, seen = gated(), threading.Event()
    gate.before[3] = lambda: None if seen.wait(60) else pytest.fail("no state was seen")
    gate.open()
    handle = engine.submit(Request(context, 12, 12, policy="fixed:1", record_canvases=True))
    states = []
    async for state in handle.astates():
        seen.set()
        states.append(state)

    assert len(states) == (await handle.wait()).steps
    assert [state async for state in handle.astates()] == states == list(handle.states())


async def test_cancelling_the_waiting_task_cancels_the_request(gated: Gated, gate: Gate, context: Context) -> None:
    handle = gated().submit(slowly(context, 12))
    task = asyncio.create_task(handle.wait())
    for _ in range(5):  # the event loop runs while the engine works
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.open()

    cancelled(handle)
    assert handle.cancelled


def test_of_very_many_canvas_states_the_last_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calomel.engine.handle._KEPT_POSITIONS", 10)
    handle = Handle()
    states = [CanvasState(step, (1, 2, 3, 4), (True,) * 4) for step in range(5)]
    watching = handle.states()
    handle.push(states[0])
    first = next(watching)

    for state in states[1:]:
        handle.push(state)
    handle.settle(RequestCancelledError("over"))

    assert [first, *watching] == [states[0], states[3], states[4]]
    assert list(handle.states()) == states[3:]


@pytest.mark.parametrize("page", [5, 64])
def test_requests_keep_to_the_room_of_the_cache_whoever_asks(
    model: Any, start: Start, gate: Gate, context: Context, page: int
) -> None:
    """What waits for room waits; a client that has none there is given what is kept for such."""
    need = len(context) + 20 + model.config.diffusion.max_canvas
    need += -need % page
    engine = start(model, observe=gate, cache_tokens=4 * need, page_size=page, max_batch=16)
    ask = slowly(context, 20, client="one")
    crowd = [engine.submit(replace(ask, context=(*context[1:], number))) for number in range(8)]
    started: list[tuple[int, int]] = []
    gate.before[6] = lambda: started.append(engine.occupancy)
    gate.before[7] = lambda: crowd.append(engine.submit(replace(ask, client="two")))
    gate.before[12] = lambda: started.append(engine.occupancy)
    gate.open()

    assert all(len(handle.result(60).ids) == 20 for handle in crowd)
    assert started == [(3, 5), (4, 5)]


def test_a_context_that_takes_all_the_room_holds_up_nobody_else(gated: Gated, gate: Gate, context: Context) -> None:
    need = 4 + 2 + 64
    engine = gated(cache_tokens=5 * need, page_size=5)
    ask = replace(slowly(context, 20, client="one"), max_new_tokens=4 * need - len(context) - 64)
    long, asked, ended_first = engine.submit(ask), list[Handle](), list[bool]()
    gate.before[2] = lambda: asked.append(engine.submit(slowly(context[:4], 2, client="two")))
    gate.before[12] = lambda: ended_first.append(asked[0].done)
    gate.open()

    assert long.result(60).ids
    assert ended_first == [True]
