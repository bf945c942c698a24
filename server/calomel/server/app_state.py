"""What all routes share: the model, opened in its own thread, and one admitted request, up to its answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar
from weakref import WeakValueDictionary

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from calomel.infer.completer import Answerer, CanvasText, Fill, FillRequest, ModelInfo
from calomel.server.errors import (
    ApiError,
    ClientGoneError,
    DrainingError,
    EngineStoppedError,
    ModelFailedError,
    ModelLoadingError,
    StartError,
    from_engine,
)
from calomel.server.metrics import Deliveries, Metrics, Spent
from calomel.server.middleware import CLIENT_STATE, Admission, log_failure
from calomel.server.settings import ServeSettings
from calomel.server.wire import Canvas, ErrorResponse, ModelObject
from calomel.suggest.stateless import EditService

_log = logging.getLogger("calomel.server")

State = Literal["loading", "ready", "failed"]

FillerFactory = Callable[[], Answerer]
# Describes what the loaded model can do.
InfoFactory = Callable[[], ModelInfo]


class ModelLoader:
    """The model of this server: loading, ready, or failed, which is final.

    What broke an engine (a GPU's context, exhausted memory) mostly affects the whole process: the server ends, and a
    supervisor restarts it.

    Used from the event loop; the thread only opens the model.

    Args:
        factory: opens the model; called in a thread.
        describe: describes it; called for every request.

    Attributes:
        failure: why there is no model and will be none; None unless it has failed.
    """

    def __init__(self, factory: FillerFactory, describe: InfoFactory) -> None:
        self._factory = factory
        self._describe = describe
        self._filler: Answerer | None = None
        self._thread = threading.Thread(target=self._load, name="calomel-load", daemon=True)
        self._closed = False
        self._lock = threading.Lock()
        self.failure: str | None = None

    def start(self) -> None:
        """Begin loading; returns at once."""
        self._thread.start()

    @property
    def state(self) -> State:
        """The state of the model."""
        if self.failure is not None:
            return "failed"
        return "loading" if self._filler is None else "ready"

    @property
    def opening(self) -> bool:
        """Whether the thread is opening it."""
        return self._thread.is_alive()

    def filler(self) -> Answerer:
        """The loaded model. Raises ModelLoadingError or ModelFailedError."""
        if self.failure is not None:
            raise ModelFailedError
        if self._filler is None:
            raise ModelLoadingError
        return self._filler

    def stopped(self) -> None:
        """A request found that the engine has stopped."""
        if self.failure is None and not self._closed:
            self.failure = "the model's engine has failed"
            _log.error("%s", self.failure)

    def info(self) -> ModelInfo:
        """What the loaded model can do. Raises as `filler` does, and if its folder does not say."""
        reads_ahead = self.filler().reads_ahead
        try:
            return replace(self._describe(), reads_ahead=reads_ahead)
        except (OSError, ValueError) as error:
            _log.error("cannot read the model's folder: %s", type(error).__name__)
            raise ModelFailedError from error

    def close(self) -> None:
        """Close the model; one still being opened is closed by its own thread, which nobody waits for."""
        self._closed = True
        self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            filler, self._filler = self._filler, None
        if filler is not None:
            filler.close()

    def _load(self) -> None:
        try:
            filler = self._factory()
            # Reads the weights file once: here, not on the event loop. `info` reports what is wrong with it.
            with contextlib.suppress(OSError, ValueError):
                self._describe()
        except Exception as error:  # noqa: BLE001 (whatever it is, requests must be told)
            self.failure = str(error) if isinstance(error, StartError) else f"the model did not load: {error}"
            _log.error("%s", self.failure)
            _log.debug("traceback of the error", exc_info=error)
            return
        self._filler = filler
        if self._closed:
            self._let_go()


AnswerT = TypeVar("AnswerT")
Item = TypeVar("Item")


def event(data: BaseModel) -> bytes:
    """One event. No comment lines are ever sent: a shipping client drops everything that arrives together with one."""
    return b"data: " + data.model_dump_json().encode() + b"\n\n"


@dataclass(frozen=True, slots=True)
class AnswerFormat(Generic[AnswerT]):
    """How one route formats an answer, whole or streamed.

    Attributes:
        whole: the answer as one body.
        part: of a stream: what is new of the answer's text, or with a canvas all text so far.
        last: the end of a stream; `first` is its start.
        frame: a body as bytes of the stream.
        done: the last bytes of a successful stream.
        media_type: of a stream.
    """

    whole: Callable[[AnswerT], BaseModel]
    part: Callable[[str, Canvas | None], BaseModel]
    last: Callable[[AnswerT], Iterable[BaseModel]]
    first: Sequence[BaseModel] = ()
    frame: Callable[[BaseModel], bytes] = event
    done: bytes = b""
    media_type: str = "text/event-stream"


class _EventStream(StreamingResponse):
    """A stream of events that always runs `close` at the end, even when the client left before the first one."""

    def __init__(self, events: AsyncIterator[bytes], close: Callable[[], Awaitable[Any]], media_type: str) -> None:
        # Proxies (nginx) buffer a stream until it is complete unless told not to.
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(events, headers=headers, media_type=media_type)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end or the client leaves."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._close()


@dataclass(slots=True)
class AppState:
    """The parts of one server.

    Attributes:
        settings: how it was started.
        loader: the model.
        admission: places for requests.
        metrics: counters, and the answers of the last minutes.
        deliveries: recent answers, for feedback on them.
        describe: the response of `/v1/models`.
        edits: answers requests for next edits.
        turns: a lock per client whose texts are being prepared.
    """

    settings: ServeSettings
    loader: ModelLoader
    admission: Admission
    metrics: Metrics
    deliveries: Deliveries
    describe: Callable[[], ModelObject]
    edits: EditService
    turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    @property
    def model(self) -> ModelObject:
        """The model, as far as it is known by now."""
        return self.describe()

    def refusal(self, error: Exception) -> ApiError | None:
        """The error response for `error`; None for an error that nothing declares."""
        if isinstance(error, ApiError):
            return error
        refusal = from_engine(error)
        if isinstance(refusal, EngineStoppedError):
            self.loader.stopped()
        return refusal


@dataclass(slots=True)
class RequestContext:
    """One admitted request.

    Attributes:
        app_state: of the server.
        route: its short name in logs and counters.
        request: as received.
        filler: the model, asked in the client's name.
        info: what the model can do.
        id: of the completion; unguessable, because it is all that feedback needs.
        created: seconds since 1970.
    """

    app_state: AppState
    route: str
    request: Request
    filler: Answerer
    info: ModelInfo
    _stack: AsyncExitStack
    id: str = field(default_factory=lambda: f"cmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def client(self) -> str:
        """The client, for fairness among clients."""
        return client_of(self.request)

    def head(self, model: str | None) -> dict[str, Any]:
        """The fields that every answer and every chunk begins with; `model` as the client calls it."""
        return {"id": self.id, "created": self.created, "model": model or self.app_state.model.id}

    async def prepare(self, pool: Executor | None, work: Callable[..., AnswerT], *of: Any) -> AnswerT:
        """Run `work` in a thread of `pool` (None: the default one).

        One call at a time per client, so that one client's long texts do not keep others out of the pool.
        """
        turn = self.app_state.turns.setdefault(self.client, asyncio.Lock())
        async with turn:
            return await asyncio.get_running_loop().run_in_executor(pool, work, *of)

    async def fill(self, wanted: FillRequest) -> Fill:
        """Fill a hole; cancelled when the client disconnects."""
        return await while_there(self.request, self.filler.afill(wanted))

    async def begun(self, items: AsyncGenerator[Item]) -> AsyncIterator[Item]:
        """All of `items`; waits for the first, so that a refused request still gets its status."""
        self._stack.push_async_callback(items.aclose)

        async def first() -> Item:
            return await anext(items)

        return _chained(await while_there(self.request, first()), items)

    def whole(self, answer: BaseModel) -> Response:
        """An answer that is not streamed."""
        return JSONResponse(answer.model_dump())

    def stream(
        self, answer_format: AnswerFormat[AnswerT], items: AsyncIterator[str | CanvasText | AnswerT]
    ) -> Response:
        """A streamed answer, which keeps its place until it ends; an error in it becomes its last event.

        `items` are deltas or canvases, and then the result of the whole answer.
        """
        return _EventStream(self._events(answer_format, items), self._stack.pop_all().aclose, answer_format.media_type)

    def answered(self, spent: Spent) -> None:
        """Count and log the work behind the answer; the log gets numbers, never text."""
        self.app_state.metrics.answered(self.id, self.route, spent)
        _log.info(
            "%s %s: %d prompt tokens (%d cached), %d tokens in %d steps, %.0f ms, %s",
            self.route,
            self.id,
            spent.prompt_tokens,
            spent.cached_tokens,
            spent.completion_tokens,
            spent.steps,
            spent.seconds * 1000,
            spent.finish,
        )

    async def _events(
        self, answer_format: AnswerFormat[AnswerT], items: AsyncIterator[str | CanvasText | AnswerT]
    ) -> AsyncIterator[bytes]:
        try:
            for each in answer_format.first:
                yield answer_format.frame(each)
            async for item in items:
                if isinstance(item, CanvasText):
                    yield answer_format.frame(answer_format.part(item.text, Canvas.of(item)))
                elif isinstance(item, str):
                    yield answer_format.frame(answer_format.part(item, None))
                else:
                    for each in answer_format.last(item):
                        yield answer_format.frame(each)
            if answer_format.done:
                yield answer_format.done
        except Exception as error:  # noqa: BLE001 (the status has been sent; the error can only be one more event)
            refusal = self.app_state.refusal(error)
            if refusal is None:
                log_failure(error)
            yield answer_format.frame(ErrorResponse.model_validate((refusal or ApiError()).body()))


async def while_there(request: Request, work: Coroutine[Any, Any, AnswerT]) -> AnswerT:
    """Await `work`; when the client disconnects first, cancel it and raise ClientGoneError.

    ASGI servers cancel a streamed response then, but let a plain one run to its end; an editor that drops a request at
    every keystroke would keep the engine busy with answers for nobody. The body must have been read.
    """
    task = asyncio.create_task(work)
    watch = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGoneError
    finally:
        task.cancel()
        watch.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _chained(first: Item, items: AsyncIterator[Item]) -> AsyncIterator[Item]:
    yield first
    try:
        async for item in items:
            yield item
    except asyncio.CancelledError:
        # As in `Boundary`; what is raised here becomes the last event.
        raise DrainingError from None


def app_state_of(request: Request) -> AppState:
    """The server's parts."""
    app_state: AppState = request.app.state.app_state
    return app_state


def client_of(request: Request) -> str:
    """The client, for fairness among clients: the owner of the token, else the peer's address."""
    name: str | None = request.scope.get("state", {}).get(CLIENT_STATE)
    if name is not None:
        return f"token {name}"
    return request.client.host if request.client is not None else ""


@asynccontextmanager
async def request_context(request: Request, route: str) -> AsyncIterator[RequestContext]:
    """Admit one request, until the context and the stream that it made have ended.

    Raises:
        ApiError: there is no place, no model, or the engine refused.
    """
    app_state, client = app_state_of(request), client_of(request)
    async with AsyncExitStack() as stack:
        stack.enter_context(app_state.admission.place(client))
        filler = app_state.loader.filler()
        try:
            yield RequestContext(app_state, route, request, filler.for_client(client), app_state.loader.info(), stack)
        except Exception as error:
            refusal = app_state.refusal(error)
            if refusal is None or refusal is error:
                raise
            raise refusal from error
