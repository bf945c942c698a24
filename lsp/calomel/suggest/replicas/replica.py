"""One replica: a process with the whole model, which answers what it is sent."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from calomel.suggest.replicas.wire import (
    Data,
    Message,
    error_data,
    read_request,
    result_data,
    state_data,
)

if TYPE_CHECKING:
    from calomel.engine import Handle, Request
    from calomel.suggest.filler import Filler

_STOPPED: Final = 70
_WARM_UP: Final = "def add(a, b):\n    return "


@dataclass(frozen=True, slots=True)
class Opening:
    """Which model a replica opens, and how; see `calomel.families.family.OpenOptions`.

    Attributes:
        model: checkpoint folder, the same on every machine.
        weights: what the model in that folder is known by.
        version: of this program.
        alone: whether all replicas are on this machine, and nobody else may reach them.
    """

    model: str
    weights: str
    version: str
    device: str = "cpu"
    dtype: str | None = None
    threads: int | None = None
    cache_tokens: int = 65_536
    spare_tokens: int | None = None
    quantize: str | None = None
    exact: bool = False
    alone: bool = True


class Replica:
    """Answers requests with an engine of its own. Its coroutines run in one event loop.

    Args:
        filler: the opened model.
        leave: ends this process; called when its engine has stopped, for one that answers nothing must not be asked.
    """

    def __init__(self, filler: Filler, leave: Callable[[], None] = lambda: os._exit(_STOPPED)) -> None:
        self._filler = filler
        self._leave = leave
        self._open: dict[str, tuple[Handle, ...]] = {}
        self._answered = 0

    async def answer(self, call: str, asked: Sequence[Data]) -> AsyncGenerator[list[Message]]:
        """See `Line.ask`."""
        try:
            handles = await self._submit(asked)
        except Exception as error:  # noqa: BLE001  (whoever asked must hear of it, whatever it is)
            yield [(at, "error", error_data(error)) for at in range(len(asked))]
            return
        self._open[call] = handles
        said: asyncio.Queue[Message] = asyncio.Queue()
        tasks = [asyncio.create_task(self._follow(at, handle, said)) for at, handle in enumerate(handles)]
        left = len(handles)
        try:
            while left:
                messages = [await said.get()]
                while not said.empty():
                    messages.append(said.get_nowait())
                left -= sum(kind != "state" for _, kind, _ in messages)
                yield messages
        finally:
            del self._open[call]
            for task in tasks:
                task.cancel()
            for handle in handles:
                handle.cancel()

    async def answer_one(self, asked: Data) -> Message:
        """A single request that nobody watches: one message is all that comes of it."""
        try:
            (handle,) = await self._submit([asked])
        except Exception as error:  # noqa: BLE001  (whoever asked must hear of it, whatever it is)
            return 0, "error", error_data(error)
        return await self._last(0, handle)

    async def drop(self, call: str, at: int) -> None:
        """See `Line.drop`."""
        if call in self._open:
            self._open[call][at].cancel()

    def about(self) -> Data:
        """What it is doing."""
        engine: Any = self._filler.engine
        running, waiting = engine.occupancy
        cache = getattr(engine, "cache", None)  # models that read whole windows have none
        held = None if cache is None else (cache.pages - cache.free_pages) * cache.page_size
        return {
            "pid": os.getpid(),
            "running": running,
            "waiting": waiting,
            "cache_tokens": held,
            "cache_capacity": None if cache is None else cache.pages * cache.page_size,
            "answered": self._answered,
        }

    async def _submit(self, asked: Sequence[Data]) -> tuple[Handle, ...]:
        from calomel.engine import EngineStoppedError

        arrived = time.monotonic()
        requests = [await self._read(data, arrived) for data in asked]
        try:
            return self._filler.engine.submit_all(requests)
        except EngineStoppedError:
            self._leave()
            raise

    async def _read(self, data: Data, arrived: float) -> Request:
        data = dict(data)
        left: float | None = data.pop("left")
        deadline = None if left is None else arrived + left
        if "constraint" in data:
            return await asyncio.to_thread(read_request, data, self._filler, deadline)
        return read_request(data, self._filler, deadline)

    async def _follow(self, at: int, handle: Handle, said: asyncio.Queue[Message]) -> None:
        async for state in handle.astates():
            said.put_nowait((at, "state", state_data(state)))
        said.put_nowait(await self._last(at, handle))

    async def _last(self, at: int, handle: Handle) -> Message:
        from calomel.engine import EngineStoppedError

        try:
            result = await handle.wait()
        except Exception as error:  # noqa: BLE001  (whoever asked must hear of it, whatever it is)
            if isinstance(error, EngineStoppedError):
                self._leave()
            return at, "error", error_data(error)
        self._answered += 1
        return at, "result", result_data(result)


def open_model(opening: Opening) -> Filler:
    """Open the model, and make its first forwards, which are slow.

    Raises:
        CheckpointError: it cannot be opened, or is another one on this machine.
    """
    from calomel.engine import CheckpointError
    from calomel.families.family import OpenOptions
    from calomel.suggest.completer import FillRequest
    from calomel.suggest.in_process import open_folder
    from calomel.suggest.launch import version
    from calomel.weights.identity import weights_id

    folder = Path(opening.model)
    if opening.version != version() or opening.weights != weights_id(folder):
        raise CheckpointError(f"{folder.name}, or this program, is of another version on this machine")
    options = OpenOptions(
        device=opening.device,
        dtype=opening.dtype,
        threads=opening.threads,
        cache_tokens=opening.cache_tokens,
        spare_tokens=opening.spare_tokens,
        quantize=opening.quantize,  # type: ignore[arg-type]
        exact=opening.exact,
    )
    filler = open_folder(folder, options)
    filler.fill(FillRequest(prefix=_WARM_UP, suffix="\n", max_tokens=8))
    return filler
