"""At most one question to the model at a time for each editor, and at most one waiting of each kind.

A newer question takes the place of the older one of its kind, whose asker is told so at once. The older one's work goes
on only while the newer one waits for the typing to pause: if the answer comes in that time and still fits, it serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from calomel.suggest.completer import Kind
from calomel.suggest.planned import Change
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.suggestion import Answer


@dataclass(eq=False, slots=True)
class Ticket:
    """A question that waits for its answer; `superseded` is done when a newer one took its place."""

    kind: Kind
    uri: str
    superseded: asyncio.Future[None]


@dataclass(eq=False, slots=True)
class Run:
    """Work for one question, which may outlive it.

    Attributes:
        owner: the question that it is for now.
        revision: of the document that it is about.
        changes: of that document since it began.
        task: ends with the reason why there is nothing to offer, or None.
    """

    owner: Ticket
    revision: int
    changes: list[Change] = field(default_factory=list)
    task: asyncio.Task[SilenceReason | None] = field(init=False)


Work = Callable[[Run], Coroutine[Any, Any, SilenceReason | None]]


class Flight:
    """Keeps the order of questions."""

    def __init__(self) -> None:
        self.running: Run | None = None
        self._tickets: dict[Kind, Ticket] = {}

    async def answer(self, kind: Kind, uri: str, work: Callable[[Ticket], Coroutine[Any, Any, Answer]]) -> Answer:
        """Do `work` unless a newer question of this kind comes; cancelling this cancels the work and what it runs."""
        ticket = Ticket(kind, uri, asyncio.get_running_loop().create_future())
        self._supersede(kind, ticket)
        task = asyncio.ensure_future(work(ticket))
        both: set[asyncio.Future[Any]] = {task, ticket.superseded}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else Silence.of(SilenceReason.SUPERSEDED)
        finally:
            await ended(task)
            if self._tickets.get(kind) is ticket:
                del self._tickets[kind]
            ticket.superseded.cancel()
            if self.running is not None and self.running.owner is ticket:
                self.running.task.cancel()

    async def run(self, ticket: Ticket, revision: int, work: Work, *, now: bool) -> SilenceReason | None:
        """Run `work` as soon as nothing else runs; `now` does not wait for a question of another kind."""
        while (other := self.running) is not None:
            if now or other.owner is ticket or other.owner.kind == ticket.kind or other.changes:
                other.task.cancel()
            await asyncio.wait({other.task})
            self._landed(other)
        run = Run(ticket, revision)
        self.running = run
        run.task = asyncio.ensure_future(work(run))
        run.task.add_done_callback(lambda _: self._landed(run))
        await asyncio.wait({run.task})
        return SilenceReason.SUPERSEDED if run.task.cancelled() else run.task.result()

    async def pause(self, ticket: Ticket, timer: Awaitable[None], found: Callable[[], Answer | None]) -> Answer | None:
        """Wait for `timer`, or until the work inherited from the question before has found something."""
        waiting = asyncio.ensure_future(timer)
        try:
            run = self.running
            if run is not None and run.owner is ticket:
                await asyncio.wait({waiting, run.task}, return_when=asyncio.FIRST_COMPLETED)
                answer = found() if run.task.done() and not waiting.done() else None
                if answer is not None:
                    return answer
            await asyncio.wait({waiting})
            return None
        finally:
            await ended(waiting)

    async def aclose(self) -> None:
        """Supersede everything and wait until nothing runs."""
        for ticket in list(self._tickets.values()):
            if not ticket.superseded.done():
                ticket.superseded.set_result(None)
        run = self.running
        if run is not None:
            await ended(run.task)

    def _supersede(self, kind: Kind, ticket: Ticket) -> None:
        previous = self._tickets.get(kind)
        self._tickets[kind] = ticket
        if previous is None:
            return
        if self.running is not None and self.running.owner is previous:
            if previous.uri == ticket.uri:
                self.running.owner = ticket
            else:
                self.running.task.cancel()
        if not previous.superseded.done():
            previous.superseded.set_result(None)

    def _landed(self, run: Run) -> None:
        if self.running is run:
            self.running = None


async def ended(task: asyncio.Future[Any]) -> None:
    """Cancel a task unless it is done, and wait until it has ended, however it ends."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # asked for, so that nobody complains that it was not
