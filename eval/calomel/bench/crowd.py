"""Clients that ask again as soon as they have their answer, each from a connection and an address of its own."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from calomel.bench.places import Place
from calomel.bench.served import Served
from calomel.bench.stats import percentile
from calomel.bench.wire_client import Reply, WireClient, WireError

PATH: Final = "/v1/fim/completions"
# Answers that tell a client to come back later; everything else but 200 is an error.
_LATER: Final = frozenset({429, 503})
_OK: Final = 200
# A refused client of the bench comes back sooner than it is told to: the server must stand that.
_PAUSE_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Asked:
    """One request.

    Attributes:
        began: seconds on the clock of the bench.
        seconds: from the first byte sent to the last one received.
        status: of the answer; 0 when there was none.
        later: refused, and told when to come back.
        prompt, cached, tokens: as the answer's usage says.
    """

    began: float
    seconds: float
    status: int
    later: bool = False
    prompt: int = 0
    cached: int = 0
    tokens: int = 0

    @property
    def answered(self) -> bool:
        """Whether there was an answer."""
        return self.status == _OK


@dataclass(slots=True)
class Crowd:
    """What a number of clients saw.

    Attributes:
        clients: for each, its requests in order.
        began: when the first of them asked.
        seconds: from there until the first of them left: so long they were all there.
    """

    clients: list[list[Asked]] = field(default_factory=list)
    began: float = 0.0
    seconds: float = 0.0

    @property
    def asked(self) -> list[Asked]:
        """All requests."""
        return [asked for client in self.clients for asked in client]

    @property
    def in_time(self) -> int:
        """Answers while all clients were there."""
        end = self.began + self.seconds
        return sum(asked.answered and asked.began + asked.seconds <= end for asked in self.asked)

    def milliseconds(self) -> list[float]:
        """Of all answers."""
        return [asked.seconds * 1e3 for asked in self.asked if asked.answered]

    def client_p95(self) -> list[float]:
        """Milliseconds at each client's 95th percentile, for those that were answered."""
        found = (percentile([a.seconds * 1e3 for a in client if a.answered], 95) for client in self.clients)
        return [value for value in found if value is not None]

    @property
    def errors(self) -> int:
        """Requests that were neither answered nor told to come back later."""
        return sum(not asked.answered and not asked.later for asked in self.asked)

    @property
    def rejected(self) -> int:
        """Requests that were told to come back later."""
        return sum(asked.later for asked in self.asked)


class Typist:
    """One client: types on at its places, one after the other, a key a request."""

    def __init__(self, server: Served, number: int, places: Sequence[Place]) -> None:
        self._client = WireClient(server.host, server.port, server.token, source_address(server.host, number))
        self._places = places
        self._keys = [0] * len(places)
        self._turn = 0

    async def ask(self) -> Asked:
        """One request at the next place; raises nothing."""
        place = self._turn % len(self._places)
        self._turn += 1
        self._keys[place] += 1
        body = json.dumps(self._places[place].request(self._keys[place])).encode()
        began = time.perf_counter()
        try:
            reply = await self._client.post(PATH, body)
        except (WireError, OSError):
            self._client.drop()
            return Asked(began, time.perf_counter() - began, 0)
        return asked(reply, began, time.perf_counter() - began)

    def leave(self) -> None:
        """Hang up."""
        self._client.drop()


async def crowd(typists: Sequence[Typist], seconds: float, *, least: int = 1) -> Crowd:
    """Let all of them ask at once, for so many seconds and until each has asked `least` times."""
    began = time.perf_counter()
    until = began + seconds
    found = Crowd([[] for _ in typists], began)
    ends: list[float] = []

    async def work(number: int) -> None:
        mine = found.clients[number]
        while time.perf_counter() < until or len(mine) < least:
            mine.append(await typists[number].ask())
            if not mine[-1].answered:
                await asyncio.sleep(_PAUSE_SECONDS)
        ends.append(time.perf_counter())

    await asyncio.gather(*(work(number) for number in range(len(typists))))
    found.seconds = min(ends) - began
    return found


async def warm(typists: Sequence[Typist], times: int, *, at_once: int = 4) -> None:
    """Ask so many times each, a few at once, so that every context has been read; the answers are not counted."""
    gate = asyncio.Semaphore(at_once)

    async def work(typist: Typist) -> None:
        for _ in range(times):
            async with gate:
                await typist.ask()

    await asyncio.gather(*(work(typist) for typist in typists))


def asked(reply: Reply, began: float, seconds: float) -> Asked:
    """One answer as a record."""
    if reply.status != _OK:
        return Asked(began, seconds, reply.status, reply.status in _LATER and "retry-after" in reply.headers)
    usage = reply.json()["usage"]
    return Asked(
        began,
        seconds,
        reply.status,
        prompt=usage["prompt_tokens"],
        cached=usage["cached_input_tokens"],
        tokens=usage["completion_tokens"],
    )


def source_address(host: str, number: int) -> str | None:
    """An address of this machine for client `number`, so that the server tells the clients apart as on a network.

    Linux takes every address in 127.0.0.0/8 for this machine. None where the server is elsewhere.
    """
    if sys.platform != "linux" or not host.startswith("127."):
        return None
    return str(ipaddress.IPv4Address("127.1.0.1") + number)
