"""A real server with replicas on Ray Serve: one is killed while clients wait, and nothing of Ray is open to others."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from calomel.bench.load import Crowd, Place, ask, crowd, make_places
from calomel.bench.served import Served, served
from calomel.report.heldout import read_heldout

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray Serve is not installed: install Calomel's extra cluster"),
]

LISTENS = "0A"
# Ray's processes and the replicas start side by side, on whatever else the machine does.
START_SECONDS = 600.0
# For another replica to come up.
MOST_SECONDS = 180.0
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(
        threads=1, arguments=("--replicas", "2", "--cache-tokens", "32768"), ready_seconds=START_SECONDS
    ) as found:
        yield found


def family_of(pid: int) -> set[int]:
    """The processes that it has started, and those of these."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, left = set[int](), [pid]
    while left:
        each = left.pop()
        found.add(each)
        left += parents.get(each, [])
    return found


def sockets_of(pids: set[int]) -> set[str]:
    found = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                target = str(link.readlink())
            except OSError:
                continue
            if target.startswith("socket:["):
                found.add(target[8:-1])
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system does not tell who listens where")
def test_no_port_of_ray_is_open_to_other_machines(server: Served) -> None:
    sockets = sockets_of(family_of(server.pid))
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and fields[9] in sockets:
                listening.append(fields[1].partition(":")[0])
    assert len(listening) > 5
    assert set(listening) <= LOOPBACK


def test_files_of_ray_are_in_a_folder_of_the_user_alone(server: Served) -> None:
    folders = {
        Path(argument.partition("=")[2]).parent
        for pid in family_of(server.pid)
        for argument in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        if argument.startswith("--temp-dir=")
    }
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700]


async def ready(server: Served) -> int:
    """How many replicas the server says are ready."""
    async with server.client() as client:
        found: int = (await client.get("/health")).json()["replicas"]["ready"]
        return found


def processes_of(server: Served) -> set[int]:
    """Those of its replicas."""
    family = {pid: Path(f"/proc/{pid}/cmdline") for pid in family_of(server.pid)}
    return {pid for pid, line in family.items() if line.exists() and line.read_text().startswith("ray::ServeReplica")}


async def under_load(server: Served, places: Sequence[Place]) -> tuple[Crowd, float | None]:
    """What clients saw while a replica was killed, and after how many seconds another was ready."""
    await crowd(server, places, 0.0)
    working = asyncio.create_task(crowd(server, places, 30.0))
    await asyncio.sleep(4.0)
    before = processes_of(server)
    os.kill(max(before), signal.SIGKILL)
    killed = time.monotonic()
    whole = None
    while whole is None and time.monotonic() - killed < MOST_SECONDS:
        await asyncio.sleep(0.5)
        if processes_of(server) - before and await ready(server) == len(before):
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
        started = family_of(found.pid)
        assert len(started) > 5
    until = time.monotonic() + 20
    while [pid for pid in started if alive(pid)] and time.monotonic() < until:
        time.sleep(0.1)
    assert [pid for pid in started if alive(pid)] == []
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((httpx.URL(found.url).host, httpx.URL(found.url).port or 0), 1)


def alive(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
