"""The way to the replicas, as the engine in front of them sees it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from calomel.suggest.replicas.wire import Data, Message


@dataclass(frozen=True, slots=True)
class ReplicaLook:
    """One replica at one moment.

    Attributes:
        id: of this process; one that is started in its place has another.
        pid: of its process.
        node: Ray's name of its machine.
        running: requests in its batch.
        waiting: requests that wait for a place in it.
        cache_tokens: tokens that its prefix cache holds; None where it has none.
        cache_capacity: and could hold.
        answered: requests since it began.
    """

    id: str
    pid: int
    node: str
    running: int
    waiting: int
    cache_tokens: int | None
    cache_capacity: int | None
    answered: int


class Line(Protocol):
    """Asks replicas. Used in the event loop of one thread, `open` and `close` in that thread before and behind it."""

    def open(self) -> None:
        """Start the replicas, and wait until all of them can answer. Raises ReplicasError."""

    def ask(self, session: str, call: str, requests: Sequence[Data]) -> AsyncGenerator[Sequence[Message]]:
        """Send `requests` to one replica, the same for the same session while it is there; what comes, as it comes.

        Every request has one `result` or `error`, its last message. Closing the iterator drops those without.

        Args:
            session: may be empty: then any replica.
            call: names this sending, for `drop`.
            requests: see `wire.request_data`; `left` is added: seconds until the deadline, or None.

        Raises:
            LineLostError: the replica is gone.
        """

    async def drop(self, session: str, call: str, at: int) -> None:
        """Drop one of the requests that were sent together. Nothing happens when it is over, or its replica gone."""

    async def look(self) -> Sequence[ReplicaLook]:
        """The replicas that are up.

        Raises:
            LineLostError: there is none.
            TimeoutError: one of them is too busy to say how it is.
        """

    def close(self) -> None:
        """End the replicas."""
