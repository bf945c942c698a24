"""Opens the model in a thread of its own, so that the door answers from the first moment.

It is opened again after its engine has failed. A request waits for that; one that comes while a server starts is told
to come back.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from calomel.server.errors import ModelFailedError, ModelLoadingError
from calomel.suggest.completer import ModelInfo

if TYPE_CHECKING:
    from calomel.suggest.filler import Filler

_log = logging.getLogger("calomel.server")

State = Literal["loading", "ready", "failed"]

# An engine that fails more often than so has a reason that opening it again does not mend.
MAX_RESTARTS: Final = 3
RESTART_WINDOW: Final = 600.0
# A request waits so long for a model that is opened again.
WAKE_SECONDS: Final = 30.0


FillerFactory = Callable[[], "Filler"]
# Says what the opened model can do.
InfoFactory = Callable[[], ModelInfo]


class ModelLoader:
    """The model of this server: on its way, here, or failed.

    Used from the event loop; its threads only open and close.

    Args:
        factory: opens the model; called in a thread, once and again for each opening.
        describe: says what it can do; asked for every request.
        clock: seconds, monotonic.

    Attributes:
        restarts: how often the engine failed and was opened again.
    """

    def __init__(
        self,
        factory: FillerFactory,
        describe: InfoFactory,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._factory = factory
        self._describe = describe
        self._clock = clock
        self._filler: Filler | None = None
        self._state: State = "loading"
        # Whether there was a model before: then a request may wait for it.
        self._opened = False
        self._opening: Future[None] = Future()
        self._thread = threading.Thread()
        self._closed = False
        self._lock = threading.Lock()
        self._crashes: deque[float] = deque()
        self.restarts = 0

    def start(self) -> None:
        """Begin loading; returns at once."""
        self._open([])

    @property
    def state(self) -> State:
        """Where the model is now."""
        return self._state

    @property
    def opening(self) -> bool:
        """Whether a thread is opening it."""
        return self._thread.is_alive()

    def filler(self) -> Filler:
        """The loaded model. Raises ModelLoadingError or ModelFailedError."""
        if self._filler is not None:
            return self._filler
        raise ModelFailedError if self._state == "failed" else ModelLoadingError

    async def acquire(self) -> Filler:
        """The loaded model, for one request; waits a while for one that is opened again. Raises as `filler` does."""
        if self._filler is None and self._opened and self._state == "loading":
            # It never raises, and whoever stops waiting does not stop the opening.
            await asyncio.wait([asyncio.wrap_future(self._opening)], timeout=WAKE_SECONDS)
        return self.filler()

    def stopped(self, filler: Filler) -> None:
        """A request found that this filler's engine has stopped: it is opened again, unless that happens too often."""
        if filler is not self._filler:
            # It was replaced meanwhile, or never came to be.
            return
        self._filler = None
        now = self._clock()
        self._crashes.append(now)
        while self._crashes[0] < now - RESTART_WINDOW:
            self._crashes.popleft()
        if len(self._crashes) > MAX_RESTARTS:
            self._state = "failed"
            minutes = RESTART_WINDOW / 60
            _log.error("the engine failed %d times within %.0f minutes: it stays off", len(self._crashes), minutes)
            threading.Thread(target=_close, args=([filler],), name="calomel-close", daemon=True).start()
            return
        self.restarts += 1
        _log.error("the engine has failed; the model is opened again")
        self._open([filler])

    def info(self) -> ModelInfo:
        """What the loaded model can do. Raises as `filler` does, and where its folder does not tell."""
        # An engine that keeps what it has encoded has a cache for it.
        kept = hasattr(getattr(getattr(self.filler(), "engine", None), "decoder", None), "cache")
        try:
            return replace(self._describe(), reads_ahead=kept)
        except (OSError, ValueError) as error:
            _log.error("the model's folder does not say what it is: %s", type(error).__name__)
            raise ModelFailedError from error

    def close(self) -> None:
        """Close the model; one that is on its way is closed by its own thread, which nobody waits for."""
        self._closed = True
        self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            filler, self._filler = self._filler, None
        if filler is not None:
            held = [filler]
            del filler
            _close(held)

    def _open(self, before: list[Filler]) -> None:
        """Open the model in a thread, when the one before it (if any) is closed."""
        self._state = "loading"
        self._opening = Future()
        self._thread = threading.Thread(
            target=self._load, args=(self._opening, before), name="calomel-load", daemon=True
        )
        self._thread.start()

    def _load(self, opening: Future[None], before: list[Filler]) -> None:
        opening.set_running_or_notify_cancel()
        try:
            if before:
                _close(before)
            filler = self._factory()
            # Reads the weights' file once: here, and not on the event loop. `info` says what is wrong with it.
            with contextlib.suppress(OSError, ValueError):
                self._describe()
        except Exception as error:  # noqa: BLE001 (whatever it is, requests must be told)
            self._state = "failed"
            _log.error("the model could not be loaded: %s", error)
            _log.debug("where it failed", exc_info=error)
        else:
            self._filler = filler
            self._opened = True
            self._state = "ready"
            _log.info("the model is ready")
            del filler
            if self._closed:
                self._let_go()
        finally:
            opening.set_result(None)


def _close(held: list[Filler]) -> None:
    """Close a model and give its memory back to the system.

    It is taken out of `held`: whoever called, and the thread itself, would otherwise hold on to it until they return.
    """
    close = getattr(held.pop(), "close", None)
    if close is not None:
        close()
    del close
    # A server keeps the collector from what was there when it began, the model among it.
    gc.unfreeze()
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.accelerator.is_available():
        torch.accelerator.empty_cache()
    _trim()


def _trim() -> None:
    """Freed memory lies in the C library's pools until it is asked to let go (malloc_trim(3), glibc alone)."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        return
