"""The model of one editor: found, started, asked, lost and found again, in one place.

    finding ──▶ loading ──▶ ready ──▶ lost, which is finding again
       └───────────┴──▶ failed ──(at a later question)──▶ finding

A server that others started and that is lost, or was never there, is an outage (`Outage`): it is looked for until it
answers, and another model may stand in for it meanwhile.

Everything else is handed what is known here, and asks nobody else whether there is a model.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

from calomel.infer.completer import CANVAS, CompleteAnswer, Completer, CompleteRequest, CompleterError, ModelInfo
from calomel.infer.outage import Outage, answers_at
from calomel.infer.remote import shown, to_answer, unanswered
from calomel.prompts.parts import PromptParts
from calomel.storage.failures import describe
from calomel.workspace.settings import BackendSettings

if TYPE_CHECKING:
    from calomel.infer.listener import Listener

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")

# A lost server is looked for again, but not at every keystroke.
RETRY_SECONDS: Final = 5.0
# Up to five minutes between two attempts.
_MOST_DOUBLINGS: Final = 6
# Opening a checkpoint of many gigabytes from a slow disk.
LOADING_SECONDS: Final = 600.0
_LOADING_POLL: Final = 0.1
# Seconds that a question waits for a model that is still loading.
PATIENCE: Final = 10.0
# Extra time for the round trip; after it, the server is given up on.
_GRACE: Final = 1.0

_LOST: Final = "The model's server stopped. Restarting it…"
_GONE: Final = frozenset({"unreachable", "loading"})
_SILENT: Final = frozenset({"unreachable", "timeout"})
# What a model is asked before it takes the place of another one.
_TRIAL: Final = CompleteRequest("fill", PromptParts(path="add.py", prefix="def add(a, b):\n    return "), max_tokens=4)
_GPUS: Final = {"cuda": "NVIDIA GPU", "mps": "Apple GPU"}

TOO_SLOW: Final = "Calomel: answers are too slow on this machine; run `calomel doctor`."
# A cold context or a compiler running beside it makes one answer late, or three; that says nothing yet.
_ENOUGH: Final = 5

# Finds or starts what answers for these settings. Raises CompleterError.
Connect = Callable[[BackendSettings], Awaitable[Completer]]


class ModelClient:
    """Asks one model, whose server may load, end and be replaced meanwhile. Used from one event loop.

    Args:
        connect: finds or starts the model's server.
        server: which model it is.
        clock: seconds.
        sleep: waits on that clock.
        changed: called on each change of state.
        warn: shows a message to the user, each at most once.

    Attributes:
        server: which model it is.
        state: of the model.
        message: the state in one sentence.
        info: the model that answers; None while there is none.
        listener: another user's program at the model's address, which the user may confirm; None for none.
        outage: of a server that others started.
        last_request: figures of the last answer.
        clock: seconds.
        sleep: waits on that clock.
    """

    def __init__(
        self,
        connect: Connect,
        server: BackendSettings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        changed: Callable[[], None] = lambda: None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.server = server or BackendSettings()
        self.state: Literal["loading", "ready", "error"] = "loading"
        self.message = "Looking for the model's server."
        self.info: ModelInfo | None = None
        self.listener: Listener | None = None
        self.outage = Outage(clock, sleep, self._answers_again)
        self.last_request: dict[str, Any] | None = None
        self._connect = connect
        self.clock = clock
        self.sleep = sleep
        self._changed = changed
        self._warn = warn
        self._late = 0  # late answers in a row
        self._owns = True
        self._completer: Completer | None = None
        self._loading: asyncio.Task[ModelInfo] | None = None
        self._failed_at = float("-inf")
        self._failures = 0  # in a row
        self._stand_in: BackendSettings | None = None
        # Settings may change again while the last server is still being closed.
        self._moving = asyncio.Lock()

    @classmethod
    def of(cls, completer: Completer, **more: Any) -> Self:
        """The client of a model that is there already, and belongs to the caller."""

        async def found(_: BackendSettings) -> Completer:
            return completer

        client = cls(found, **more)
        client._owns = False
        return client

    def start(self) -> asyncio.Task[ModelInfo]:
        """Connect in the background; the task ends when the model is loaded, or cannot be loaded."""
        if self._loading is None:
            if not self.outage.now or self._stand_in is not None:
                self._say("loading", "The model is loading.")
            self._loading = asyncio.create_task(self._load(), name="calomel-model")
            self._loading.add_done_callback(self._ended)
        return self._loading

    async def ready(self, patience: float | None = None) -> ModelInfo:
        """Describes the model; waits for it, at most `patience` seconds. Raises CompleterError."""
        if self.info is not None:
            return self.info
        search = self._found()
        try:
            return await (search if patience is None else within(search, self.sleep(patience)))
        except TimeoutError:
            raise CompleterError("loading", "") from None

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Ask the model, again if its server was lost during the question. Raises CompleterError.

        An answer that is not there when the request's deadline has long passed is not waited for.
        """
        self.outage.asked()
        try:
            return await self._ask(request)
        except CompleterError as error:
            if error.code != "loading" or request.ahead:  # nobody waits for it
                raise
        await self.ready(PATIENCE)
        return await self._ask(request)

    async def reconnect(self) -> None:
        """Move to the server that the settings name now; of several calls, the last one counts."""
        async with self._moving:
            await self.aclose()
            self._failed_at, self._failures = float("-inf"), 0
            self.start()

    async def switch(self, server: BackendSettings) -> ModelInfo:
        """Move to another model once it answers; the present one goes on until then. Raises CompleterError."""
        completer = await self._connect(server)
        try:
            place = completer.address
            if place is not None and not await answers_at(place):
                wrong = "url" if server.url is not None else "upstream"
                message = f"{unanswered(place)}: {to_answer(place, f'start it, or correct {wrong}')}"
                raise CompleterError("unreachable", message)  # noqa: TRY301 (what was connected is closed)
            await _loaded(completer)
            await completer.complete(_TRIAL)
            # Whoever was asked knows more of itself.
            info = await completer.info()
            async with self._moving:
                await self.aclose()
                self.server, self._completer, self._failed_at = server, completer, float("-inf")
                self._is(info)
        except BaseException:
            await completer.aclose()
            raise
        return info

    async def stand_in(self, server: BackendSettings) -> ModelInfo:
        """Have another model answer until the server that is away is back. Raises CompleterError."""
        completer = await self._connect(server)
        try:
            info = await _loaded(completer)
            async with self._moving:
                needed = self.outage.now  # else it came back, or another one was chosen
                if needed:
                    await self._stop_loading()
                    await self._leave()
                    self._stand_in, self._completer = server, completer
                    self._is(info)
        except BaseException:
            await completer.aclose()
            raise
        if needed:
            return info
        await completer.aclose()
        return await self.ready()

    async def aclose(self) -> None:
        """Stop loading and close the connection."""
        self._stand_in = None
        self.outage.end()
        await self._stop_loading()
        await self._leave()

    async def _stop_loading(self) -> None:
        loading, self._loading = self._loading, None
        if loading is not None:
            loading.cancel()
            await asyncio.wait({loading})

    async def _found(self) -> ModelInfo:
        while True:
            async with self._moving:  # while one server is left for another, neither is looked for
                pass
            if self.info is not None:
                return self.info
            self._retry()
            loading = self._loading
            if loading is None:
                raise CompleterError("unreachable", self.message)
            # A caller that stops waiting does not stop the loading.
            await asyncio.wait({loading})
            if not loading.cancelled():
                return loading.result()
            if self.info is None and self._loading is None and not self._moving.locked():
                raise CompleterError("loading", self.message)  # closed

    async def _ask(self, request: CompleteRequest) -> CompleteAnswer:
        completer = self._completer
        if completer is None or self.info is None:
            raise CompleterError("loading", self.message)
        asking = completer.complete(request)
        if request.ahead:
            return await asking
        began, deadline = self.clock(), request.deadline
        until = math.inf if deadline is None else began + deadline
        try:
            answer = await (asking if deadline is None else within(asking, self.sleep(deadline + _GRACE)))
        except TimeoutError:
            self._unheard(completer, began)
            message = f"The model gave no answer within {(deadline or 0.0) + _GRACE:.1f} s."
            raise CompleterError("timeout", message) from None
        except CompleterError as error:
            if error.code in _GONE:
                raise self._lost(completer, error) from error
            if error.code == "timeout":
                self._unheard(completer, began)
                raise
            self.outage.heard()
            if error.code == "overloaded":
                self._note(late=True)
            raise
        except asyncio.CancelledError:
            # Cancelled before the deadline: the user typed on. Cancelled after it: the answer came too late.
            self._unheard(completer, began, late=self.clock() >= until)
            raise
        self._note(late=self.clock() >= until)
        if answer.judged or any(each.maker == CANVAS for each in answer.candidates):  # drafts need no server
            self.outage.heard()
        self.last_request = {
            "kind": request.kind,
            "context_tokens": answer.context_tokens,
            "cached_tokens": answer.cached_tokens,
            "candidates": len(answer.candidates),
            "seconds": round(self.clock() - began, 4),
            "queued_seconds": round(answer.timings.queued, 4),
            "engine_seconds": round(answer.timings.total, 4),
            "model": answer.model,
        }
        return answer

    def _lost(self, completer: Completer, error: CompleterError) -> CompleterError:
        """The server died or was replaced: connecting again finds or starts one, unless that was done already."""
        info, mine = self.info, completer is self._completer
        place = self._others_place(info)
        if mine:
            self.info = None
        if place is not None and error.code == "unreachable" and error.listener is None:
            if mine and not self.outage.now:
                self._failed_at = self.clock()
                self.outage.begin(place, completer.address or "")
                self._say("error", self.outage.message)
            return CompleterError("unreachable", self.message)
        if mine:
            self._failed_at = float("-inf")
            self._retry()
        lost = _LOST if self.server.upstream is None else f"The model is gone: {error}."
        return CompleterError("loading", lost)

    def _others_place(self, info: ModelInfo | None) -> str | None:
        """Which server it is that others started, for people; None for our own."""
        if self._stand_in is not None:
            return None
        if self.server.url is not None:
            return f"the Calomel server at {shown(self.server.url)}"
        if self.server.upstream is None:
            return None
        return info.through if info is not None and info.through else f"the server at {shown(self.server.upstream)}"

    async def _answers_again(self) -> None:
        """Move back to the server that was away."""
        if self._stand_in is None:
            await asyncio.wait({self.start()})
            return
        try:
            await self.switch(self.server)
        except CompleterError as error:
            LOG.info("not back yet: %s", error)

    def _unheard(self, completer: Completer, began: float, *, late: bool = True) -> None:
        """Note a question without an answer, which may be the server's silence."""
        if late:
            self._note(late=True)
        place = completer.address
        if place is not None:
            gone = CompleterError("unreachable", f"nothing answers at {shown(place)}")
            self.outage.unheard(place, began, lambda: self._lost(completer, gone))

    def _note(self, *, late: bool) -> None:
        """Count late answers in a row; a timeout and an overloaded server count as late."""
        self._late = self._late + 1 if late else 0
        if self._late == _ENOUGH:
            self._warn(TOO_SLOW)

    async def _load(self) -> ModelInfo:
        await self._leave()
        completer = self._completer = await self._connect(self._stand_in or self.server)
        try:
            return await _loaded(completer, self._waits)
        except CompleterError as error:
            place, url = self._others_place(None), completer.address
            away = error.code in _SILENT and error.listener is None and not self.outage.now
            if place is not None and url is not None and away and not await answers_at(url):
                self.outage.begin(place, url, str(error))
            raise

    def _waits(self) -> None:
        if self.state != "loading":
            self._say("loading", "The model is loading.")

    async def _leave(self) -> None:
        completer, self._completer, self.info = self._completer, None, None
        if completer is not None and self._owns:
            await completer.aclose()

    def _ended(self, task: asyncio.Task[ModelInfo]) -> None:
        if self._loading is not task:
            if not task.cancelled():
                task.exception()
            return
        self._loading = self.listener = None
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._is(task.result())
            return
        self._failed_at, self._failures = self.clock(), self._failures + 1
        if isinstance(error, CompleterError):
            self.listener = error.listener
            away = error.code in _SILENT and error.listener is None
            self._say("error", self.outage.message if away and self.outage.now else str(error))
        else:
            LOG.error("the model did not load: %s", describe(error))
            self._say("error", "The model did not load. `calomel doctor` finds the reason.")

    def _is(self, info: ModelInfo) -> None:
        self.info, self._failures = info, 0
        if self._stand_in is not None:
            self._say("ready", f"{info.title} answers until {self.outage.server} is back.")
            return
        self.outage.end()
        self._say("ready", f"{info.title} is ready. {_where(info, self.server)}")

    def _retry(self) -> None:
        # A model that cannot be loaded is not loaded again with every keystroke; looking for an upstream costs nothing.
        doublings = 0 if self.server.upstream is not None else min(max(self._failures - 1, 0), _MOST_DOUBLINGS)
        pause = RETRY_SECONDS * 2**doublings
        if self._loading is None and self.clock() - self._failed_at >= pause:
            self.start()

    def _say(self, state: Literal["loading", "ready", "error"], message: str) -> None:
        self.state, self.message = state, message
        self._changed()


async def _loaded(completer: Completer, waits: Callable[[], None] = lambda: None) -> ModelInfo:
    """What the model can do, once it is loaded; `waits` is called while it is not. Raises CompleterError."""
    until = time.monotonic() + LOADING_SECONDS
    while True:
        try:
            return await completer.info()
        except CompleterError as error:
            if error.code != "loading" or time.monotonic() > until:
                raise
        waits()
        await asyncio.sleep(_LOADING_POLL)


def _where(info: ModelInfo, server: BackendSettings) -> str:
    """One sentence: what the model runs on, or what it is asked through."""
    if info.through:
        return f"It answers through {info.through}."
    if server.url is not None:
        return f"It answers at {shown(server.url)}."
    return f"It runs on {device_of(server)}."


def device_of(server: BackendSettings) -> str:
    """What a model of our own runs on, in words."""
    return f"this machine's {_GPUS.get(server.device.partition(':')[0], 'CPU')}"


async def ended(task: asyncio.Future[Any]) -> None:
    """Cancel a task unless it is done, and wait until it has ended, however it ends."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not report it as never retrieved


async def within(work: Coroutine[Any, Any, T] | asyncio.Future[T], timer: Awaitable[None]) -> T:
    """The result of `work`; TimeoutError if `timer` ends first. Cancelling reaches both."""
    task, until = asyncio.ensure_future(work), asyncio.ensure_future(timer)
    try:
        await asyncio.wait({task, until}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        await ended(task)
        await ended(until)
