"""A replica is lost: what can be asked again is, and nothing is answered twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest
from tests.suggest.replicas.conftest import Open
from tests.suggest.replicas.here import HereLine, Place

from calomel.engine import DeadlineExceededError, Engine, EngineStoppedError, Request, SamplingParams
from calomel.engine.errors import RequestCancelledError
from calomel.suggest.filler import Filler
from calomel.suggest.in_process import open_filler
from calomel.suggest.replicas.engine import ReplicatedEngine
from calomel.suggest.replicas.errors import ReplicaLostError
from calomel.suggest.replicas.wire import Message

LONG = Request(context=tuple(range(20, 60)), max_new_tokens=24, policy="fixed:1", max_steps=64, min_new_tokens=24)
WATCHED = Request(**{**{name: getattr(LONG, name) for name in LONG.__slots__}, "record_canvases": True})


def with_fields(request: Request, **more: object) -> Request:
    return Request(**{**{name: getattr(request, name) for name in request.__slots__}, **more})


def engine_of(filler: Filler) -> ReplicatedEngine:
    assert isinstance(filler.engine, ReplicatedEngine)
    return filler.engine


class Killer:
    """Kills the place that says something, a number of times; the messages are not passed on."""

    def __init__(
        self, line: HereLine, *, times: int = 1, behind: int = 0, kinds: Sequence[str] = ("state", "result")
    ) -> None:
        self.line = line
        self.left = times
        self.behind = behind
        self.kinds = kinds
        line.before = self

    def __call__(self, place: Place, messages: Sequence[Message]) -> None:
        if not any(kind in self.kinds for _, kind, _ in messages):
            return
        self.behind -= 1
        if self.left and self.behind < 0:
            self.left -= 1
            self.line.kill(place)


def test_a_request_is_asked_again_where_its_replica_is_lost(replicated: Open, single: Filler) -> None:
    filler, line = replicated(3)
    Killer(line, times=2)
    request = with_fields(LONG, max_new_tokens=12, min_new_tokens=12)
    assert filler.engine.submit(request).result(20).ids == single.engine.submit(request).result().ids
    losses = engine_of(filler).losses
    assert (losses.replicas, losses.retried, losses.lost, losses.doubled) == (2, 2, 0, 0)


def test_a_request_that_ends_every_replica_is_given_up(replicated: Open) -> None:
    filler, line = replicated(3)
    Killer(line, times=3)
    with pytest.raises(ReplicaLostError):
        filler.engine.submit(with_fields(LONG, max_new_tokens=4, min_new_tokens=4)).result(20)
    losses = engine_of(filler).losses
    assert (losses.retried, losses.lost) == (2, 1)


def test_a_watched_answer_goes_on_where_it_was_when_it_will_be_the_same(replicated: Open, single: Filler) -> None:
    filler, line = replicated()
    Killer(line, behind=2)
    handle = filler.engine.submit(WATCHED)
    states = list(handle.states())
    expected = single.engine.submit(WATCHED)
    assert states == list(expected.states())
    assert handle.result().ids == expected.result().ids
    assert engine_of(filler).losses.retried == 1


def test_a_watched_answer_by_chance_is_not_asked_again(replicated: Open) -> None:
    filler, line = replicated()
    Killer(line, behind=2)
    handle = filler.engine.submit(with_fields(WATCHED, sampling=SamplingParams(temperature=1.0)))
    assert list(handle.states())
    with pytest.raises(ReplicaLostError):
        handle.result(20)
    assert (engine_of(filler).losses.retried, engine_of(filler).losses.lost) == (0, 1)


def test_a_watched_answer_by_chance_of_which_nothing_was_shown_is_asked_again(replicated: Open) -> None:
    filler, line = replicated()
    Killer(line)
    handle = filler.engine.submit(with_fields(WATCHED, sampling=SamplingParams(temperature=1.0)))
    assert handle.result(20).ids
    assert engine_of(filler).losses.retried == 1


def test_of_requests_that_were_sent_together_only_the_unanswered_are_asked_again(replicated: Open) -> None:
    filler, line = replicated()
    short = with_fields(LONG, max_new_tokens=2, min_new_tokens=2, session="s")
    Killer(line, behind=1, kinds=("result",))
    first, second = filler.engine.submit_all([short, with_fields(LONG, session="s")])
    assert len(first.result(20).ids) == 2
    assert len(second.result(20).ids) == 24
    (rest,) = (place.sent for place in line.places)
    assert [len(group) for group in rest] == [1]
    assert engine_of(filler).losses.doubled == 0


async def test_many_requests_outlive_a_replica_each_answered_once(replicated: Open, single: Filler) -> None:
    filler, line = replicated()
    Killer(line, behind=3)
    wanted = [
        with_fields(LONG, context=tuple(range(20, 40 + at)), max_new_tokens=4, min_new_tokens=4, session=f"s{at}")
        for at in range(16)
    ]
    handles = [filler.engine.submit(each) for each in wanted]
    found = await asyncio.gather(*(handle.wait() for handle in handles))
    expected = [single.engine.submit(each).result() for each in wanted]
    assert [each.ids for each in found] == [each.ids for each in expected]
    losses = engine_of(filler).losses
    assert losses.retried >= 1
    assert (losses.lost, losses.doubled) == (0, 0)


async def test_who_cancels_frees_the_replica(replicated: Open) -> None:
    filler, line = replicated()
    handle = filler.engine.submit(with_fields(WATCHED, session="s"))
    async for _ in handle.astates():
        break
    handle.cancel()
    with pytest.raises(RequestCancelledError):
        await handle.wait()
    while any(place.under_way for place in line.places):  # noqa: ASYNC110  (nobody tells)
        await asyncio.sleep(0.001)
    while any(place.replica.about()["running"] for place in line.places):  # noqa: ASYNC110  (nobody tells)
        await asyncio.sleep(0.001)
    assert engine_of(filler).occupancy == (0, 0)


async def test_of_requests_that_were_sent_together_one_can_be_dropped(replicated: Open) -> None:
    filler, line = replicated()
    stays, goes = filler.engine.submit_all([with_fields(LONG, session="s"), with_fields(WATCHED, session="s")])
    async for _ in goes.astates():
        break
    goes.cancel()
    assert len((await stays.wait()).ids) == 24
    with pytest.raises(RequestCancelledError):
        await goes.wait()
    assert [place.dropped for place in line.places if place.dropped] == [[1]]


def test_a_deadline_is_kept_by_the_replica(replicated: Open) -> None:
    filler, _ = replicated()
    result = filler.engine.submit(with_fields(LONG, deadline=time.monotonic() + 0.02)).result(20)
    assert result.finish_reason == "deadline"


def test_a_deadline_is_kept_where_no_replica_is_up(replicated: Open) -> None:
    filler, line = replicated(1)
    line.kill(line.places[0])
    with pytest.raises(DeadlineExceededError):
        filler.engine.submit(with_fields(LONG, deadline=time.monotonic() - 0.9)).result(20)


def test_without_any_replica_requests_wait_for_one_that_starts(replicated: Open, engines: list[Filler]) -> None:
    filler, line = replicated(1)
    line.kill(line.places[0])
    handle = filler.engine.submit(with_fields(LONG, max_new_tokens=2, min_new_tokens=2))
    with pytest.raises(TimeoutError):
        handle.result(0.05)
    line.start(engines[1])
    assert len(handle.result(20).ids) == 2


def test_without_any_replica_for_long_requests_are_refused(replicated: Open) -> None:
    filler, line = replicated(1, down_seconds=0.0)
    engine = engine_of(filler)
    while not engine.watch.up:
        pass
    line.kill(line.places[0])
    handle = filler.engine.submit(LONG)
    engine._call(engine.watch.suspect)
    with pytest.raises(ReplicaLostError, match="no replica"):
        handle.result(20)
    assert engine.losses.lost == 1


def test_a_replica_whose_engine_stops_leaves_and_its_requests_go_elsewhere(replicated: Open) -> None:
    broken = open_filler(threads=1)
    filler, line = replicated(2)
    place = line.place("s")
    place.replica._filler = broken
    assert isinstance(broken.engine, Engine)
    broken.close()
    assert (
        len(filler.engine.submit(with_fields(LONG, max_new_tokens=2, min_new_tokens=2, session="s")).result(20).ids)
        == 2
    )
    assert place not in line.places


def test_requests_of_a_session_go_to_one_replica_and_only_those_of_a_lost_one_move(replicated: Open) -> None:
    filler, line = replicated(3)
    short = with_fields(LONG, max_new_tokens=1, min_new_tokens=1)
    sessions = [f"workspace {at}" for at in range(8)]

    def asked() -> dict[str, str]:
        for session in sessions * 2:
            filler.engine.submit(with_fields(short, session=session)).result(20)
        return {data["session"]: place.name for place in line.places for group in place.sent for data in group}

    before = asked()
    assert len(set(before.values())) == 3
    lost = line.places[0]
    line.kill(lost)
    after = asked()
    assert {session for session in sessions if before[session] != after[session]} == {
        session for session in sessions if before[session] == lost.name
    }


def test_a_session_keeps_its_cache_warm(replicated: Open) -> None:
    filler, _ = replicated(3)
    base = with_fields(LONG, max_new_tokens=1, min_new_tokens=1, session="warm")
    cached = []
    for at in range(4):
        result = filler.engine.submit(with_fields(base, context=tuple(range(100, 400 + at)))).result(20)
        cached.append(result.cached_tokens / (result.cached_tokens + result.computed_tokens))
    assert min(cached[1:]) > 0.9


async def test_who_is_up_and_who_was_started_anew_is_known(replicated: Open, engines: list[Filler]) -> None:
    filler, line = replicated(2)
    watch = engine_of(filler).watch
    while len(watch.up) < 2:  # noqa: ASYNC110  (nobody tells)
        await asyncio.sleep(0.001)
    assert (watch.wanted, watch.restarts) == (2, 0)
    line.kill(line.places[0])
    line.start(engines[2])
    engine = engine_of(filler)
    engine._call(watch.suspect)
    while watch.restarts == 0:  # noqa: ASYNC110  (nobody tells)
        await asyncio.sleep(0.001)
    assert ([look.id for look in watch.up], watch.restarts) == (["r2", "r3"], 1)


def test_a_closed_engine_ends_its_requests_and_its_replicas(replicated: Open) -> None:
    filler, line = replicated()
    handle = filler.engine.submit(LONG)
    filler.close()
    filler.close()
    with pytest.raises(EngineStoppedError):
        handle.result(20)
    with pytest.raises(EngineStoppedError):
        filler.engine.submit(LONG)
    assert line.closed
