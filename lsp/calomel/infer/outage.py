"""A server that others started does not answer, or no longer: it is looked for until it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from calomel.infer.completer import CompleterError
from calomel.infer.remote import http_address, open_client, shown, tls_problem

# A server that is away is looked for after so long, then ever more rarely, while somebody works.
LOOK_SECONDS: float = 1.0
_RAREST_LOOK: Final = 30.0
_WORKING_SECONDS: Final = 600.0
# What needs no model is answered at once, however busy the model is, by any server that is neither stopped nor cut off.
ANSWER_SECONDS: float = 5.0
# So many questions in a row without any answer, over so long, are a reason to look: one cold context is not.
_SEVERAL: Final = 3
SILENT_SECONDS: float = 5.0


class Outage:
    """Used from one event loop.

    Args:
        clock: seconds.
        sleep: waits on that clock.
        answered: called while the server that is away answers again, until somebody calls `end`.

    Attributes:
        count: how often a server was away.
        now: whether it is away now; another model may stand in for it.
        server: which one it is, in words.
        message: what happened, and what to do.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        answered: Callable[[], Awaitable[None]],
    ) -> None:
        self.count, self.now, self.server, self.message = 0, False, "", ""
        self._clock = clock
        self._sleep = sleep
        self._answered = answered
        self._task: asyncio.Task[None] | None = None
        self._asked_at = float("-inf")
        # Questions in a row without any answer, and when the first of them began.
        self._silent, self._since = 0, 0.0

    def asked(self) -> None:
        """Somebody works: it is worth looking."""
        self._asked_at = self._clock()

    def heard(self) -> None:
        """The server answered a question, however it did."""
        self._silent = 0

    def unheard(self, url: str, began: float, silent: Callable[[], object]) -> None:
        """A question that began then had no answer; `silent` is called if nothing at the address answers anything."""
        self._since = self._since if self._silent else began
        self._silent += 1
        looking = self._task is not None and not self._task.done()
        if self._silent >= _SEVERAL and self._clock() - self._since >= SILENT_SECONDS and not looking:
            self._task = asyncio.create_task(self._doubt(url, silent), name="calomel-doubt")

    def begin(self, server: str, url: str, never: str = "") -> None:
        """The server is away: look for it. `never` says so of one that has not answered before."""
        self.now, self.server = True, server
        what = f"{server} stopped answering: start it again, choose another model, or use nano meanwhile"
        self.message = never or what
        self.count += 1
        self.asked()
        self._task = asyncio.create_task(self._look(url), name="calomel-look")

    def end(self) -> None:
        """Nobody is looked for any more."""
        self.now, self._silent = False, 0
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    async def _doubt(self, url: str, silent: Callable[[], object]) -> None:
        answers, unheard = await answers_at(url), self._silent
        self.heard()
        if unheard and not answers:
            silent()

    async def _look(self, url: str) -> None:
        """Look for it rarely, and while somebody works."""
        pause = LOOK_SECONDS
        while self.now:
            await self._sleep(pause)
            pause = min(2 * pause, _RAREST_LOOK)
            idle = self._clock() - self._asked_at > _WORKING_SECONDS
            if not idle and self.now and await answers_at(url):
                await self._answered()


async def answers_at(url: str) -> bool:
    """Whether the server at an address answers anything soon to a request without content.

    True also for what is no address, or whose connection cannot be trusted: whoever asks it learns what is wrong.
    """
    client = await asyncio.to_thread(open_client, url, 1, remember=False)
    import httpx  # imported already, with the client

    try:
        async with asyncio.timeout(ANSWER_SECONDS), client.stream("GET", http_address(shown(url))):
            return True
    except (TimeoutError, httpx.TimeoutException):
        return False
    except httpx.ConnectError as error:
        return tls_problem(error) is not None
    except (CompleterError, httpx.HTTPError, httpx.InvalidURL):
        return True
    finally:
        await client.aclose()
