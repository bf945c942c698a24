"""Opens the model in a thread of its own, so that the door answers from the first moment."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from calomel.server.errors import ModelFailedError, ModelLoadingError
from calomel.suggest.completer import ModelInfo

if TYPE_CHECKING:
    from calomel.suggest.completer import CompleteAnswer, CompleteRequest, Draft
    from calomel.suggest.drafted import Drafted
    from calomel.suggest.fill import Fill, FillRequest

_log = logging.getLogger("calomel.server")

State = Literal["loading", "ready", "failed"]


class Filler(Protocol):
    """What the door needs of `calomel.suggest.fill.Filler`."""

    async def afill(self, request: FillRequest) -> Fill:
        """Fill the hole; cancelling the awaiting task cancels the work."""

    async def adraft(self, request: FillRequest, drafts: Sequence[Draft]) -> tuple[Fill, Drafted]:
        """Fill the hole and judge drafts for it; cancelling the awaiting task cancels the work."""

    async def arewrite(self, request: CompleteRequest) -> CompleteAnswer:
        """What a region could become; cancelling the awaiting task cancels the work."""

    def stream(self, request: FillRequest) -> AsyncIterator[str | Fill]:
        """Text deltas, then the Fill; closing the iterator cancels the work."""


FillerFactory = Callable[[], Filler]
# Says what the opened model can do.
InfoFactory = Callable[[], ModelInfo]


class ModelLoader:
    """The model of this server: on its way, here, or failed."""

    def __init__(self, factory: FillerFactory, describe: InfoFactory) -> None:
        self._factory = factory
        self._describe = describe
        self._info: ModelInfo | None = None
        self._thread = threading.Thread(target=self._load, name="calomel-load", daemon=True)
        self._filler: Filler | None = None
        self._failed = False

    def start(self) -> None:
        """Begin loading; returns at once."""
        self._thread.start()

    @property
    def state(self) -> State:
        """Where the model is now."""
        if self._filler is not None:
            return "ready"
        return "failed" if self._failed else "loading"

    def filler(self) -> Filler:
        """The loaded model. Raises ModelLoadingError or ModelFailedError."""
        if self._filler is not None:
            return self._filler
        raise ModelFailedError if self._failed else ModelLoadingError

    async def acquire(self) -> Filler:
        """The loaded model, for one request. Raises as `filler` does."""
        return self.filler()

    def stopped(self) -> None:
        """A request found that the engine has stopped."""

    def info(self) -> ModelInfo:
        """What the loaded model can do. Raises as `filler` does, and where its folder does not tell."""
        self.filler()
        if self._info is None:
            try:
                self._info = self._describe()
            except (OSError, ValueError) as error:
                _log.error("the model's folder does not say what it is: %s", type(error).__name__)
                raise ModelFailedError from error
        return self._info

    def close(self) -> None:
        """Wait for the loading to end, then close the model."""
        self._thread.join()
        close = getattr(self._filler, "close", None)
        if close is not None:
            close()

    def _load(self) -> None:
        try:
            self._filler = self._factory()
        except Exception as error:  # noqa: BLE001 (whatever it is, requests must be told)
            self._failed = True
            _log.error("the model could not be loaded: %s", error)
            _log.debug("where it failed", exc_info=error)
        else:
            _log.info("the model is ready")
