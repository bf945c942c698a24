from __future__ import annotations

import asyncio
import time

import pytest

from calomel.replay.log_time import LogTime, run, settled


def test_sleepers_wake_in_order_and_nobody_waits_for_them() -> None:
    async def main() -> list[tuple[str, float]]:
        log_time = LogTime(flows=False)
        woken: list[tuple[str, float]] = []

        async def sleeper(name: str, *naps: float) -> None:
            for nap in naps:
                await log_time.sleep(nap)
                woken.append((name, log_time.now))

        tasks = [asyncio.ensure_future(sleeper("a", 3600.0)), asyncio.ensure_future(sleeper("b", 1.0, 2.0))]
        await log_time.run_to(3.0)
        assert woken == [("b", 1.0), ("b", 3.0)]
        await log_time.run_to(10_000.0)
        assert log_time.now == 10_000.0
        await asyncio.gather(*tasks)
        return woken

    began = time.monotonic()
    assert run(main())[-1] == ("a", 3600.0)
    assert time.monotonic() - began < 5.0


def test_time_stands_still_while_something_is_computed() -> None:
    async def main() -> float:
        log_time = LogTime(flows=False)

        async def work() -> float:
            await log_time.compute(asyncio.sleep(0.05))
            return log_time.now

        task = asyncio.ensure_future(work())
        await log_time.run_to(100.0)
        return await task

    assert run(main()) == 0.0


def test_measured_time_flows_with_the_computing_up_to_the_next_event() -> None:
    async def main() -> None:
        log_time = LogTime(flows=True)
        done: list[float] = []

        async def work(seconds: float) -> None:
            await log_time.compute(asyncio.sleep(seconds))
            done.append(log_time.now)

        quick = asyncio.ensure_future(work(0.05))
        await log_time.run_to(50.0)
        assert done == [pytest.approx(0.05, abs=0.04)]
        assert log_time.now == 50.0
        slow = asyncio.ensure_future(work(30.0))
        await log_time.run_to(50.02)
        assert log_time.now == pytest.approx(50.02)
        assert len(done) == 1
        slow.cancel()
        await asyncio.gather(quick, slow, return_exceptions=True)

    run(main())


def test_whoever_gave_up_wakes_nobody() -> None:
    async def main() -> None:
        log_time = LogTime(flows=False)
        task = asyncio.ensure_future(log_time.sleep(1.0))
        await settled()
        task.cancel()
        await log_time.run_to(2.0)
        assert task.cancelled()

    run(main())


def test_another_loop_cannot_be_waited_for() -> None:
    with pytest.raises(TypeError):
        asyncio.run(settled())
