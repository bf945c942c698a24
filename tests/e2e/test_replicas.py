"""A real server with replicas on Ray Serve: one is killed while clients wait, and nothing of Ray is open to others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import httpx
import psutil
import pytest

from calomel.bench.load import Crowd, Place, ask, crowd, make_places
from calomel.bench.served import Served, served
from calomel.report.heldout import read_heldout

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(
        find_spec("ray") is None, reason="Ray Serve is not installed: install Calomel's extra `cluster`"
    ),
]
# Ray's processes and the replicas start side by side, on whatever else the machine does.
START_SECONDS = 600.0
# For another replica to come up.
MOST_SECONDS = 180.0
LOOPBACK = {"127.0.0.1", "::ffff:127.0.0.1"}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(
        threads=1, arguments=("--replicas", "2", "--cache-tokens", "32768"), ready_seconds=START_SECONDS
    ) as found:
        yield found


def family_of(server: Served) -> list[psutil.Process]:
    """Its process, those that it has started, and those of these."""
    found = psutil.Process(server.pid)
    return [found, *found.children(recursive=True)]


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; nothing when it has ended meanwhile."""
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def replicas_of(server: Served) -> set[int]:
    """The processes of its replicas."""
    return {each.pid for each in family_of(server) if "".join(words_of(each)).startswith("ray::ServeReplica")}


def test_no_port_of_ray_is_open_to_other_machines(server: Served) -> None:
    listening: list[str] = []
    for process in family_of(server):
        with contextlib.suppress(psutil.Error):
            sockets = process.net_connections("tcp")
            listening += [each.laddr.ip for each in sockets if each.status == psutil.CONN_LISTEN]
    assert len(listening) > 5
    assert set(listening) <= LOOPBACK


def test_files_of_ray_are_in_a_folder_of_the_user_alone(server: Served) -> None:
    folders = {
        Path(argument.partition("=")[2]).parent
        for process in family_of(server)
        for argument in words_of(process)
        if argument.startswith("--temp-dir=")
    }
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700]


async def ready(server: Served) -> int:
    """How many replicas the server says are ready."""
    async with server.client() as client:
        found: int = (await client.get("/health")).json()["replicas"]["ready"]
        return found


async def under_load(server: Served, places: Sequence[Place]) -> tuple[Crowd, float | None]:
    """What clients saw while a replica was killed, and after how many seconds another was ready."""
    await crowd(server, places, 0.0)
    working = asyncio.create_task(crowd(server, places, 30.0))
    await asyncio.sleep(4.0)
    before = replicas_of(server)
    os.kill(max(before), signal.SIGKILL)
    killed = time.monotonic()
    whole = None
    while whole is None and time.monotonic() - killed < MOST_SECONDS:
        await asyncio.sleep(0.5)
        if replicas_of(server) - before and await ready(server) == len(before):
            whole = time.monotonic() - killed
    return await working, whole


async def texts_of(server: Served, place: Place, count: int) -> list[str]:
    async with server.client() as client:
        return [(await ask(client, place.request(keys))).text for keys in range(1, count + 1)]


def test_a_replica_that_is_killed_under_load_costs_time_and_no_answer(server: Served) -> None:
    found, whole = asyncio.run(under_load(server, make_places(16, 256, read_heldout(), seed=1)))
    assert whole is not None
    assert (found.errors, found.rejected) == (0, 0)
    with served(threads=1) as single:
        # Others, one after the other: what shared a forward can have other last digits, and contexts stay encoded.
        for place in make_places(4, 256, read_heldout(), seed=2):
            assert asyncio.run(texts_of(server, place, 4)) == asyncio.run(texts_of(single, place, 4))


def test_nothing_stays_behind_when_the_server_ends() -> None:
    with served(arguments=("--replicas", "1", "--cache-tokens", "4096"), ready_seconds=START_SECONDS) as found:
        started = family_of(found)
        assert len(started) > 5
    _, left = psutil.wait_procs(started, 20)
    assert [each for each in left if each.status() != psutil.STATUS_ZOMBIE] == []
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((httpx.URL(found.url).host, httpx.URL(found.url).port or 0), 1)
