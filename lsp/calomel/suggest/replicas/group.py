"""Requests that are sent together, from their sending to the last answer."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from calomel.engine.errors import DeadlineExceededError, EngineError, RequestCancelledError
from calomel.suggest.replicas.asked import Asked
from calomel.suggest.replicas.errors import LineLostError, ReplicaLostError
from calomel.suggest.replicas.line import Line

_log = logging.getLogger("calomel.replicas")

# A request that ends every replica that it comes to must not end them all for ever.
MAX_SENDINGS: Final = 3
# A deadline is the replica's to keep; one that says nothing so long behind it is waited for no more.
GRACE_SECONDS: Final = 1.0

_calls = itertools.count(1)


@dataclass(slots=True)
class Losses:
    """What became of requests whose replica was lost.

    Attributes:
        replicas: sendings that ended with their replica.
        retried: asked again elsewhere.
        lost: refused, because they could not be asked again, or were lost again and again.
        doubled: results that came for a request that had one.
    """

    replicas: int = 0
    retried: int = 0
    lost: int = 0
    doubled: int = 0


class Group:
    """Everything but the constructor is called in the line's event loop.

    Args:
        line: to the replicas.
        asked: the requests.
        losses: is counted in.
        clock: seconds that deadlines are compared with.
        suspect: called when a replica was lost.
    """

    def __init__(
        self,
        line: Line,
        asked: Sequence[Asked],
        losses: Losses,
        clock: Callable[[], float],
        suspect: Callable[[], None],
    ) -> None:
        self._line = line
        self._asked = asked
        self._losses = losses
        self._clock = clock
        self._suspect = suspect
        self._call = ""
        self._sent: Sequence[Asked] = ()
        self._task: asyncio.Task[None] | None = None
        self._drops: set[asyncio.Task[None]] = set()

    @property
    def size(self) -> int:
        """How many of the requests are under way."""
        return sum(not asked.over for asked in self._asked)

    def begin(self) -> asyncio.Task[None]:
        """Send what is still wanted; the task ends when there is nothing more to wait for."""
        self._task = asyncio.get_running_loop().create_task(self._ask())
        for asked in self._asked:
            if asked.handle.cancelled:
                self.drop(asked)
        return self._task

    def drop(self, asked: Asked) -> None:
        """Nobody wants the answer of one of the requests any more."""
        asked.handle.settle(RequestCancelledError("the request was cancelled"))
        if not self._end() and asked in self._sent:
            self._tell(self._sent.index(asked))

    def fail(self, error: EngineError) -> None:
        """End all requests that are not over."""
        for asked in self._asked:
            asked.handle.settle(error)
        self._end()

    def lose(self, words: str) -> None:
        """End all requests that are not over, and count them as lost."""
        self._losses.lost += self.size
        self.fail(ReplicaLostError(f"{words}; ask again"))

    def _end(self) -> bool:
        """Leave where nothing is left to wait for."""
        if self.size or self._task is None:
            return False
        self._task.cancel()
        return True

    def _tell(self, at: int) -> None:
        """Have the replica drop one of the requests, whose fellows go on."""
        session = self._asked[0].request.session
        task = asyncio.get_running_loop().create_task(self._line.drop(session, self._call, at))
        self._drops.add(task)
        task.add_done_callback(self._drops.discard)

    def _expire(self, asked: Asked) -> None:
        words = "the deadline passed before a replica had answered; allow more time"
        asked.handle.settle(DeadlineExceededError(words))
        self._end()

    async def _ask(self) -> None:
        """Ask until everything is answered, or may not be asked again."""
        loop, now = asyncio.get_running_loop(), self._clock()
        timers = [
            loop.call_later(max(0.0, asked.request.deadline - now) + GRACE_SECONDS, self._expire, asked)
            for asked in self._asked
            if asked.request.deadline is not None
        ]
        try:
            for left in range(MAX_SENDINGS - 1, -1, -1):
                try:
                    await self._send()
                except LineLostError:
                    self._lost(left)
                else:
                    return
                if not self.size:
                    return
        finally:
            for timer in timers:
                timer.cancel()
            self._losses.doubled += sum(asked.doubled for asked in self._asked)

    async def _send(self) -> None:
        """Send what is not answered to one replica, and take in what it says."""
        self._call = f"{next(_calls)}"
        self._sent = [asked for asked in self._asked if not asked.over]
        if not self._sent:
            return
        now = self._clock()
        data = [asked.sent(now) for asked in self._sent]
        async with aclosing(self._line.ask(self._sent[0].request.session, self._call, data)) as answers:
            async for messages in answers:
                for message in messages:
                    self._sent[message[0]].take(message)
        if self.size:
            raise LineLostError

    def _lost(self, left: int) -> None:
        """End what may not be asked again; the rest is."""
        self._suspect()
        self._losses.replicas += 1
        lost = [asked for asked in self._asked if not asked.over]
        kept = [asked for asked in lost if left and asked.again]
        _log.warning("a replica was lost: %d of its requests are asked again, %d not", len(kept), len(lost) - len(kept))
        self._losses.retried += len(kept)
        self._losses.lost += len(lost) - len(kept)
        for asked in lost:
            if asked not in kept:
                asked.handle.settle(ReplicaLostError("a replica of the model was lost while it answered; ask again"))
