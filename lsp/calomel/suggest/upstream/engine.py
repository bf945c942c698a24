"""An engine whose forwards are made by an upstream."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

import httpx

from calomel.engine.errors import (
    DeadlineExceededError,
    EngineError,
    EngineStoppedError,
    InvalidCanvasError,
    InvalidRequestError,
    RequestCancelledError,
    RequestFailedError,
)
from calomel.engine.handle import Handle
from calomel.engine.request import CanvasState, Request, Result, check
from calomel.prompts.tokenizer import TextTokenizer
from calomel.suggest.upstream.answer import Answer
from calomel.suggest.upstream.asking import body_of, streamed
from calomel.suggest.upstream.errors import UpstreamError
from calomel.suggest.upstream.exchange import COMPLETIONS, Line, PromptRefusedError, Sleep
from calomel.suggest.upstream.pace import Pace
from calomel.suggest.upstream.probe import probe, served_model
from calomel.suggest.upstream.prompt import Spelling
from calomel.suggest.upstream.shape import UpstreamShape
from calomel.suggest.upstream.stream import events, most_bytes, whole
from calomel.suggest.upstream.target import Upstream

_PROBE_SECONDS: Final = 120.0


class UpstreamEngine:
    """Serves requests by asking an upstream, from an event loop in a thread of its own.

    Args:
        upstream: where the weights are served.
        shape: of the model in the folder.
        tokenizer: of that model.
        ends: ids of the tokens that end an answer.
        transport: in the place of the network, for tests.
        clock: seconds that deadlines are compared with.
        sleep: waits before a second try.

    Raises:
        UpstreamError: it cannot be reached, serves another model, or gives no log-probabilities.
    """

    def __init__(
        self,
        upstream: Upstream,
        shape: UpstreamShape,
        tokenizer: TextTokenizer,
        ends: Sequence[int],
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.config = shape
        self._upstream = upstream
        self._tokenizer = tokenizer
        self._ends = tuple(dict.fromkeys((shape.diffusion.end_token_id, *ends)))
        self._spelling = Spelling(tokenizer)
        self._clock = clock
        self._model = upstream.model or ""
        self._ids: bool | None = None  # whether prompts are taken as ids; None: not known yet
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = threading.Lock()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="calomel-upstream", daemon=True)
        self._thread.start()
        try:
            self._line = Line(upstream, transport, sleep)
            self._run(self._open())
        except BaseException:
            self._stop()
            raise

    def submit(self, request: Request) -> Handle:
        """Send `request` and return at once. Raises InvalidRequestError, EngineStoppedError."""
        (handle,) = self.submit_all((request,))
        return handle

    def submit_all(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Send `requests` side by side. Raises as `submit`, before any of them is sent."""
        for request in requests:
            # How long a canvas would be is nothing to an upstream.
            check(replace(request, canvas_lengths=(1,)), self.config)
            _check_possible(request)
        pairs = [self._pair(request) for request in requests]
        with self._closing:
            if self._closed:
                raise EngineStoppedError("the engine was closed")
            for begin in pairs:
                self._loop.call_soon_threadsafe(begin[1])
        return tuple(handle for handle, _ in pairs)

    @property
    def occupancy(self) -> tuple[int, int]:
        """How many questions are under way; how many of them wait is known to the upstream alone."""
        return len(self._tasks), 0

    def close(self) -> None:
        """Stop asking; requests that are not done raise EngineStoppedError. May be called twice."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._run(self._wind_up())
        self._stop()

    def _pair(self, request: Request) -> tuple[Handle, Callable[[], None]]:
        """A handle, and what begins its request in the loop."""
        tasks: list[asyncio.Task[None]] = []

        def cancel() -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])

        handle = Handle(on_cancel=cancel)

        def begin() -> None:
            if handle.cancelled:
                handle.settle(RequestCancelledError("the request was cancelled"))
                return
            task = self._loop.create_task(self._answer(request, handle))
            tasks.append(task)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return handle, begin

    async def _answer(self, request: Request, handle: Handle) -> None:
        """Settle the handle, whatever happens."""
        answer = Answer(self.config, self._tokenizer, self._ends)
        pace = Pace(self._clock)
        try:
            left = None if request.deadline is None else request.deadline - self._clock()
            async with asyncio.timeout(left):
                handle.settle(await self._ask(request, handle, answer, pace))
        except TimeoutError:
            handle.settle(_known(request, answer, pace))
        except EngineError as error:
            handle.settle(error)
        except asyncio.CancelledError:
            stopped = EngineStoppedError("the engine was closed")
            handle.settle(RequestCancelledError("the request was cancelled") if handle.cancelled else stopped)
        except Exception as error:  # noqa: BLE001  (whatever it is, the other requests go on)
            failure = RequestFailedError(f"asking the upstream failed: {type(error).__name__}")
            failure.__cause__ = error
            handle.settle(failure)

    async def _ask(self, request: Request, handle: Handle, answer: Answer, pace: Pace) -> Result:
        """Ask with ids; with text where they are refused, and from then on."""
        if self._ids is False:
            return await self._exchange(request, self._spelling.text(request.context), handle, answer, pace)
        try:
            result = await self._exchange(request, request.context, handle, answer, pace)
        except PromptRefusedError:
            if self._ids:
                raise
            result = await self._exchange(request, self._spelling.text(request.context), handle, answer, pace)
            self._ids = False
            return result
        self._ids = True
        return result

    async def _exchange(
        self, request: Request, prompt: str | Sequence[int], handle: Handle, answer: Answer, pace: Pace
    ) -> Result:
        body, streams = body_of(request, prompt, self._model, self._ends), streamed(request)
        most = most_bytes(request)
        async with self._line.ask(COMPLETIONS, body, streams=streams) as response:
            if not streams:
                answer.take(await whole(response, most))
                pace.piece()
                return answer.result(None, len(request.context), pace.times())
            async with aclosing(events(response, most)) as groups:
                async for pieces in groups:
                    for piece in pieces:
                        answer.take(piece)
                    pace.piece()
                    if self._enough(request, handle, answer, pace):
                        return answer.result("stop", len(request.context), pace.times())
        if not answer.closed:
            raise UpstreamError(f"the upstream at {self._upstream.host} was gone in the middle of an answer")
        return answer.result(None, len(request.context), pace.times())

    def _enough(self, request: Request, handle: Handle, answer: Answer, pace: Pace) -> bool:
        """Show what has come; whether no more is wanted, although more may come."""
        ids = answer.ids
        if not pace.grown(len(ids)):
            return answer.over and not answer.closed
        if request.record_canvases:
            handle.push(CanvasState(answer.pieces, ids, (True,) * len(ids)))
        if request.until is not None and not answer.over and pace.due(len(ids)) and request.until(ids):
            return True
        return answer.over and not answer.closed

    async def _open(self) -> None:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                self._model = self._model or await served_model(self._line, self._upstream)
                await probe(self._probed, self._tokenizer)
        except TimeoutError:
            await self._line.aclose()
            raise UpstreamError(f"the upstream at {self._upstream.host} did not answer in time") from None
        except BaseException:
            await self._line.aclose()
            raise

    async def _probed(self, request: Request) -> Answer:
        answer = Answer(self.config, self._tokenizer, self._ends)
        await self._ask(request, Handle(), answer, Pace(self._clock))
        return answer

    async def _wind_up(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._line.aclose()

    def _serve(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _run(self, work: Any) -> Any:
        future: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()


def _check_possible(request: Request) -> None:
    """Raise InvalidRequestError for what only an engine of one's own can do."""
    if request.constraint is not None:
        raise InvalidRequestError(
            "the form of an answer (a schema, a pattern, functions) can not be prescribed to an upstream; ask without, "
            "or serve the model's weights here"
        )
    if request.frozen:
        raise InvalidCanvasError("frozen tokens can not be had of an upstream, which writes from left to right")


def _known(request: Request, answer: Answer, pace: Pace) -> Result | EngineError:
    """What there is when the deadline has passed."""
    if not answer.pieces:
        return DeadlineExceededError("the deadline passed before the upstream's first token; allow more time")
    try:
        return answer.result(None if answer.over else "deadline", len(request.context), pace.times())
    except EngineError as error:
        return error
