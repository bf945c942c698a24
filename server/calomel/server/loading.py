"""Opens the model in its own thread, so that the door answers from the start."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from calomel.infer.completer import Answerer, ModelInfo
from calomel.server.errors import ModelFailedError, ModelLoadingError, StartError

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
            _log.debug("at the place of the error", exc_info=error)
            return
        self._filler = filler
        _log.info("the model is ready")
        if self._closed:
            self._let_go()
