"""Requests beside each other. Nothing here sleeps: what happens when is decided by hooks on the engine's thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from calomel.engine import (
    CanvasState,
    Engine,
    EngineStoppedError,
    Handle,
    Priority,
    Request,
    SamplingParams,
    Transformer,
)
from calomel.engine.decoder import StepReport
from calomel.engine.errors import CacheFullError, RequestCancelledError, RequestFailedError
from calomel.engine.job import Job

Start = Callable[..., Engine]


class Gate:
    """Holds the engine's thread behind every forward until the test lets it go on; then counts."""

    def __init__(self) -> None:
        self.reports: list[StepReport] = []
        self.before: dict[int, Callable[[], None]] = {}
        self._open = threading.Event()

    def __call__(self, report: StepReport) -> None:
        self._open.wait(60)
        self.reports.append(report)
        self.before.pop(len(self.reports), lambda: None)()

    def open(self) -> None:
        self._open.set()


@pytest.mark.parametrize("policy", ["threshold:0.4", "left_to_right", "entropy_bound:0.5", "prefix:0.3", "mixed"])
def test_sixteen_requests_at_once_give_the_tokens_of_one_after_the_other(
    model: Transformer, start: Start, context: tuple[int, ...], policy: str
) -> None:
    policies = ["threshold:0.4", "left_to_right", "fixed:3"] if policy == "mixed" else [policy]
    requests = [
        Request(
            context[: 20 + index] + (index,) * (index % 3),
            max_new_tokens=10 + index,
            canvas_lengths=((8,), (4, 8, 16))[index % 2],
            frozen={5: 33} if index % 5 == 0 else {},
            sampling=SamplingParams(temperature=0.7 * (index % 4 == 1), seed=index),
            policy=policies[index % len(policies)],
            priority=Priority(index % 3 == 2),
        )
        for index in range(16)
    ]
    alone = start(model, max_batch=1)
    expected = [alone.submit(request).result(60).ids for request in requests]

    engine = start(model, max_batch=8, prefill_chunk=32)
    handles = [engine.submit(request) for request in requests]

    assert [handle.result(60).ids for handle in handles] == expected


def test_requests_share_forwards(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    gate = Gate()
    engine = start(model, observe=gate)
    handles = [engine.submit(Request(context[index:], 8, (8,), policy="fixed:1")) for index in range(4)]
    gate.open()
    for handle in handles:
        handle.result(60)

    assert max(report.requests for report in gate.reports) >= 3


def test_prefill_runs_in_chunks_shared_by_all(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    gate = Gate()
    engine = start(model, observe=gate, prefill_chunk=10)
    handles = [engine.submit(Request(context[index:], 4, (4,))) for index in range(3)]
    gate.open()
    for handle in handles:
        handle.result(60)

    assert max(report.prefill_rows for report in gate.reports) == 10


def cancelled(handle: Handle) -> None:
    with pytest.raises(RequestCancelledError):
        handle.result(60)


def test_cancelling_frees_the_slot_within_one_step(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    gate = Gate()
    engine = start(model, observe=gate, max_batch=1)
    first = engine.submit(Request(context, 30, (30,), {29: 1}, policy="fixed:1", max_steps=99))
    second = engine.submit(Request(context, 1, (1,)))
    gate.before[5] = first.cancel
    gate.open()
    cancelled(first)
    second.result(60)

    # No forward of the first one behind the fifth; what is left is the second's.
    assert [report.rows for report in gate.reports[5:]] == [
        second.result().canvas_length + engine.config.diffusion.logit_shift
    ]


def test_cancelling_stops_a_prefill_within_one_chunk_and_keeps_its_pages(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    gate = Gate()
    engine = start(model, observe=gate, prefill_chunk=8, page_size=4)
    handle = engine.submit(Request(context, 4, (4,)))
    gate.before[3] = handle.cancel
    gate.open()
    cancelled(handle)
    again = engine.submit(Request(context, 4, (4,))).result(60)

    assert again.cached_tokens == 24


def test_a_waiting_request_is_cancelled_without_a_forward(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    gate = Gate()
    engine = start(model, observe=gate, max_batch=1)
    first = engine.submit(Request(context, 2, (2,)))
    waiting = engine.submit(Request(context, 30, (30,), policy="left_to_right"))
    waiting.cancel()
    gate.open()
    cancelled(waiting)
    first.result(60)

    assert len(gate.reports) <= 1 + 3


def test_an_interactive_request_overtakes_a_background_one(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    gate, order = Gate(), []
    engine = start(model, observe=gate, prefill_chunk=8)
    background = Request(context, 20, (20,), {19: 1}, policy="fixed:1", max_steps=99, priority=Priority.BACKGROUND)
    slow = engine.submit(background)
    fast: list[Handle] = []

    def interrupt() -> None:
        fast.append(engine.submit(Request(context[::-1], 6, (6,))))
        fast[0]._future.add_done_callback(lambda _: order.append(("fast", len(gate.reports))))

    gate.before[3] = interrupt  # within the background request's prefill
    slow._future.add_done_callback(lambda _: order.append(("slow", len(gate.reports))))
    gate.open()
    slow.result(60)

    assert [name for name, _ in order] == ["fast", "slow"]
    assert all(report.requests == 1 for report in gate.reports[3 : order[0][1]])


def test_a_full_cache_refuses_one_request_and_the_others_go_on(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    gate = Gate()
    engine = start(model, observe=gate, cache_tokens=64, page_size=4, prefill_chunk=64)
    held = engine.submit(Request(context, 20, (20,), {19: 1}, policy="fixed:1", max_steps=99))
    refused: list[Handle] = []
    small: list[Handle] = []

    def submit() -> None:
        refused.append(engine.submit(Request(context[::-1], 4, (4,))))
        small.append(engine.submit(Request(context[:30], 4, (4,))))

    gate.before[3] = submit
    gate.open()

    assert len(held.result(60).ids) == 20
    with pytest.raises(CacheFullError, match="all 16 pages"):
        refused[0].result(60)
    small[0].result(60)
    assert engine.submit(Request(context[::-1], 4, (4,))).result(60).finish_reason in {"stop", "length"}


def test_a_failure_in_one_request_ends_it_alone(
    model: Transformer, start: Start, context: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    right, extend = tuple(context), Job.extend

    def fail(self: Job[Any, Any, Any], *args: Any) -> None:
        if self.request.context != right:
            raise ZeroDivisionError("one request's own")
        extend(self, *args)

    monkeypatch.setattr(Job, "extend", fail)
    engine = start(model)
    handles = [engine.submit(Request(each, 6, (6,))) for each in (context, context[:40])]

    handles[0].result(60)
    with pytest.raises(RequestFailedError, match="one request's own") as caught:
        handles[1].result(60)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    engine.submit(Request(context, 6, (6,))).result(60)


def test_a_failing_thread_reaches_every_waiting_request(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    def fail(report: StepReport) -> None:
        raise MemoryError(report.rows)

    gate = Gate()
    gate.before[1] = lambda: fail(gate.reports[0])
    engine = start(model, observe=gate, max_batch=1)
    handles = [engine.submit(Request(context, 6, (6,))) for _ in range(3)]
    gate.open()

    for handle in handles:
        with pytest.raises(EngineStoppedError, match="MemoryError") as caught:
            handle.result(60)
        assert isinstance(caught.value.__cause__, MemoryError)
    with pytest.raises(EngineStoppedError, match="MemoryError"):
        engine.submit(Request(context, 6, (6,)))


def test_closing_ends_what_is_not_done(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    gate = Gate()
    engine = start(model, observe=gate)
    handle = engine.submit(Request(context, 30, (30,), policy="fixed:1"))
    gate.before[1] = engine._scheduler.close
    gate.open()

    with pytest.raises(EngineStoppedError, match="closed"):
        handle.result(60)
    engine.close()
    with pytest.raises(EngineStoppedError, match="closed"):
        engine.submit(Request(context, 6, (6,)))


def test_result_can_time_out_and_be_asked_again(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    gate = Gate()
    handle = start(model, observe=gate).submit(Request(context, 6, (6,)))
    with pytest.raises(TimeoutError):
        handle.result(0.0)
    gate.open()

    assert handle.result(60).forwards >= 1


async def test_a_coroutine_waits_and_watches(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    engine = start(model)
    request = Request(context, 12, (12,), policy="fixed:2", record_canvases=True)
    handle = engine.submit(request)
    states = [state async for state in handle.astates()]

    result = await handle.wait()

    assert len(states) == result.steps
    assert result.ids == engine.submit(request).result(60).ids
    assert [state async for state in handle.astates()] == states


async def test_a_state_is_seen_before_the_request_is_done(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    gate, seen = Gate(), threading.Event()

    def hold() -> None:
        assert seen.wait(60)

    gate.before[3] = hold
    gate.open()
    handle = start(model, observe=gate).submit(Request(context, 12, (12,), policy="fixed:1", record_canvases=True))
    async for _ in handle.astates():
        seen.set()

    assert handle.done


async def test_cancelling_the_waiting_task_cancels_the_request(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    gate = Gate()
    handle = start(model, observe=gate).submit(Request(context, 12, (12,), policy="fixed:1"))
    task = asyncio.create_task(handle.wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.open()

    cancelled(handle)
    assert handle.cancelled


async def test_the_event_loop_runs_while_the_engine_works(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    gate = Gate()
    handle = start(model, observe=gate).submit(Request(context, 6, (6,)))
    task = asyncio.create_task(handle.wait())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    gate.open()

    assert (await task).forwards >= 1


def test_two_engines_share_one_model(model: Transformer, start: Start, context: tuple[int, ...]) -> None:
    request = Request(context, 10, (10,), policy="threshold:0.4")
    handles = [start(model).submit(request) for _ in range(2)]

    assert handles[0].result(60).ids == handles[1].result(60).ids


def test_the_callers_thread_stays_out_of_inference_mode(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    start(model).submit(Request(context, 4, (4,))).result(60)

    probe: Tensor = torch.ones(2, requires_grad=True)
    assert not torch.is_inference_mode_enabled()
    assert (probe * 2).requires_grad


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


def test_contexts_that_are_laid_out_keep_to_their_room_whoever_asks(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    """What waits for room waits; a client that has none there is given what is kept for such."""
    gate, laid = Gate(), list[int]()

    def observe(report: StepReport) -> None:
        gate(report)
        laid.append(_laid_out(engine))

    need = len(context) + 20 + model.config.diffusion.max_canvas
    engine = start(model, observe=observe, cache_tokens=4096, spare_tokens=4 * need, max_batch=16)
    ask = Request(context, 20, (20,), {19: 1}, policy="fixed:1", max_steps=99, client="one")
    crowd = [engine.submit(replace(ask, context=(*context[1:], number))) for number in range(8)]
    started: list[tuple[int, int]] = []
    gate.before[6] = lambda: started.append(engine.occupancy)
    gate.before[7] = lambda: crowd.append(engine.submit(replace(ask, client="two")))
    gate.before[12] = lambda: started.append(engine.occupancy)
    gate.open()

    assert all(len(handle.result(60).ids) == 20 for handle in crowd)
    assert started == [(3, 5), (4, 5)]
    assert max(laid) <= 4 * need


def test_a_context_that_takes_all_the_room_holds_up_nobody_else(
    model: Transformer, start: Start, context: tuple[int, ...]
) -> None:
    gate, canvas = Gate(), model.config.diffusion.max_canvas
    need = 4 + 2 + canvas
    engine = start(model, observe=gate, cache_tokens=4096, spare_tokens=4 * need)
    answer = 4 * need - len(context) - canvas
    ask = Request(context, answer, (20,), {19: 1}, policy="fixed:1", max_steps=99, client="one")
    short = Request(context[:4], 2, (2,), policy="fixed:1", client="two")
    long, asked = engine.submit(ask), list[Handle]()
    gate.before[2] = lambda: asked.append(engine.submit(short))
    ended_first: list[bool] = []
    gate.before[12] = lambda: ended_first.append(asked[0].done)
    gate.open()

    assert long.result(60).ids
    assert ended_first == [True]


def _laid_out(engine: Engine) -> int:
    decoder: Any = engine.decoder
    spare = (buffer for _, buffer in decoder._spares._kept)
    return sum(buffer.capacity for buffer in (*spare, *(job.buffer for job in decoder._begun)))
