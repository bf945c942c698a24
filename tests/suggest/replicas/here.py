"""A line to replicas of this process, which are lost when a test says so."""

from __future__ import annotations

import asyncio
import bisect
import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from calomel.suggest.filler import Filler
from calomel.suggest.replicas.errors import LineLostError
from calomel.suggest.replicas.line import ReplicaLook
from calomel.suggest.replicas.replica import Replica
from calomel.suggest.replicas.wire import Data, Message


class Place:
    """Where a replica runs: what it was sent, and whether it is there."""

    def __init__(self, name: str, replica: Replica) -> None:
        self.name = name
        self.replica = replica
        self.sent: list[list[Data]] = []
        self.dropped: list[int] = []
        self.under_way = 0
        self.dead = asyncio.Event()


class HereLine:
    """Ray Serve's part: a ring of places, and the news that one of them is lost.

    Attributes:
        before: called with the place and each batch of messages before they are passed on; may kill the place.
    """

    def __init__(self, fillers: Sequence[Filler]) -> None:
        self._fillers = fillers
        self._starts = 0
        self.places: list[Place] = []
        self.before: Callable[[Place, Sequence[Message]], None] = lambda _, __: None
        self.closed = False

    def open(self) -> None:
        for filler in self._fillers:
            self.start(filler)

    def start(self, filler: Filler) -> None:
        self._starts += 1
        place = Place(f"r{self._starts}", Replica(filler, leave=lambda: self.kill(place)))
        self.places.append(place)

    def kill(self, place: Place) -> None:
        place.dead.set()
        if place in self.places:
            self.places.remove(place)

    def place(self, session: str) -> Place:
        ring = sorted((_hash(f"{place.name}:{at}"), place.name) for place in self.places for at in range(50))
        if not ring:
            raise LineLostError
        name = ring[bisect.bisect(ring, (_hash(session), "")) % len(ring)][1]
        return next(place for place in self.places if place.name == name)

    async def ask(self, session: str, call: str, requests: Sequence[Data]) -> AsyncGenerator[Sequence[Message]]:
        while not self.places:  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.001)
        place = self.place(session)
        place.sent.append(list(requests))
        place.under_way += 1
        try:
            async with aclosing(place.replica.answer(call, requests)) as answers:
                while True:
                    coming = asyncio.ensure_future(anext(answers))
                    dying = asyncio.ensure_future(place.dead.wait())
                    try:
                        await asyncio.wait([coming, dying], return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        dying.cancel()
                        coming.cancel()
                        await asyncio.wait([coming])
                    if coming.cancelled() or place.dead.is_set():
                        coming.cancelled() or coming.exception()
                        raise LineLostError
                    try:
                        messages = coming.result()
                    except StopAsyncIteration:
                        return
                    self.before(place, messages)
                    if place.dead.is_set():
                        raise LineLostError
                    yield messages
        finally:
            place.under_way -= 1

    async def drop(self, session: str, call: str, at: int) -> None:
        place = self.place(session)
        place.dropped.append(at)
        await place.replica.drop(call, at)

    async def look(self) -> Sequence[ReplicaLook]:
        return [ReplicaLook(id=place.name, node="here", **place.replica.about()) for place in self.places]

    def close(self) -> None:
        self.closed = True


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
