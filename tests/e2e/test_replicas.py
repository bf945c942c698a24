"""A real server with replicas on Ray Serve: one is killed while clients wait, and nothing of Ray is open to others."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from calomel.bench.heldout import read_heldout
from calomel.bench.model import TokenizerMeasure
from calomel.bench.places import make_places
from calomel.bench.replicas import START_SECONDS, again, figures, under_load
from calomel.bench.served import Served, served
from calomel.prompts.tokenizer import Tokenizer
from calomel.weights import nano_path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray Serve is not installed: pip install 'calomel[cluster]'"),
]

LISTENS = "0A"
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


def test_a_replica_that_is_killed_under_load_costs_time_and_no_answer(
    server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = TokenizerMeasure(Tokenizer.from_file(nano_path() / "tokenizer.json"))
    places = make_places(16, 256, read_heldout(), measure, seed=1)
    run = asyncio.run(under_load(server, places, 4.0))
    with served(threads=1) as single:
        one = asyncio.run(again(single, places, [answer for answer in run.answers if answer.status == 200]))
    found = figures(run, one)
    with capsys.disabled():
        told = {name: value for name, value in found.items() if name.endswith(("_ms", "seconds")) or name == "retried"}
        sys.stdout.write(f"\n{told}\n")
    assert (found["lost"], found["doubled"], found["differing"]) == (0, 0, 0)
    assert (found["whole_again_seconds"] is not None, found["killed_requests"]) > (True, 0)
    assert isinstance(found["cached_share"], float)
    assert found["cached_share"] == pytest.approx(found["cached_share_one"], abs=0.02)


def test_nothing_stays_behind_when_the_server_ends() -> None:
    with served(arguments=("--replicas", "1", "--cache-tokens", "4096"), ready_seconds=START_SECONDS) as found:
        started = family_of(found.pid)
        assert len(started) > 5
    until = time.monotonic() + 20
    while [pid for pid in started if alive(pid)] and time.monotonic() < until:
        time.sleep(0.1)
    assert [pid for pid in started if alive(pid)] == []
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((found.host, found.port), 1)


def alive(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
