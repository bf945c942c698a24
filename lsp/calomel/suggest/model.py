"""The model as one editor sees it: loading, ready or out of reach, asked once at a time what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from calomel.suggest.completer import Completer, CompleterError, ModelInfo
from calomel.suggest.pace import ended
from calomel.suggest.silence import ModelState, SilenceReason

# A server that refused is not asked again at every keystroke.
_RETRY_SECONDS: Final = 1.0

_REASONS: Final = {
    "unreachable": SilenceReason.NO_MODEL,
    "loading": SilenceReason.LOADING,
    "overloaded": SilenceReason.OVERLOADED,
    "timeout": SilenceReason.TIMEOUT,
    "refused": SilenceReason.FAILED,
    "failed": SilenceReason.FAILED,
}


class Model:
    """What is known of the model behind a completer."""

    def __init__(
        self, completer: Completer, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._completer = completer
        self._clock = clock
        self._sleep = sleep
        self._asking: asyncio.Task[ModelInfo] | None = None
        self._info: ModelInfo | None = None
        self._error: tuple[SilenceReason, str, float] | None = None

    @property
    def known(self) -> ModelInfo | None:
        """What it is, once known."""
        return self._info

    @property
    def state(self) -> ModelState:
        """In one word."""
        if self._info is not None:
            return "ready"
        if self._error is not None and self._error[0] is not SilenceReason.LOADING:
            return "unreachable" if self._error[0] is SilenceReason.NO_MODEL else "failed"
        return "unknown" if self._asking is None and self._error is None else "loading"

    @property
    def message(self) -> str:
        """In one sentence."""
        if self._info is not None:
            return f"{self._info.id} is ready."
        if self._error is not None:
            return self._error[1]
        return SilenceReason.LOADING.message if self._asking is not None else "No model was asked yet."

    async def info(self, patience: float) -> ModelInfo | tuple[SilenceReason, str]:
        """What it is; after `patience` seconds, or when it can not be known, why not, with a detail for people."""
        if self._info is not None or (self._error is not None and self._clock() - self._error[2] < _RETRY_SECONDS):
            return self._told_so_far()
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._completer.info())
            self._asking.add_done_callback(self._told)
        timer = asyncio.ensure_future(self._sleep(patience))
        try:
            await asyncio.wait({self._asking, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await ended(timer)
        return self._told_so_far()

    def failed(self, error: CompleterError) -> SilenceReason:
        """An answer failed: the reason, and if the model is gone, what was known of it is forgotten."""
        reason = _REASONS.get(error.code, SilenceReason.FAILED)
        if reason in {SilenceReason.NO_MODEL, SilenceReason.LOADING}:
            self._info = None
            # One that is loading is waited for at once.
            since = self._clock() if reason is SilenceReason.NO_MODEL else float("-inf")
            self._error = (reason, str(error), since)
        return reason

    async def aclose(self) -> None:
        """Stop asking."""
        if self._asking is not None:
            await ended(self._asking)

    def _told_so_far(self) -> ModelInfo | tuple[SilenceReason, str]:
        if self._info is not None:
            return self._info
        return (SilenceReason.LOADING, "") if self._error is None else (self._error[0], self._error[1])

    def _told(self, asking: asyncio.Task[ModelInfo]) -> None:
        self._asking = None
        if asking.cancelled():
            return
        error = asking.exception()
        if error is None:
            self._info, self._error = asking.result(), None
        elif isinstance(error, CompleterError):
            self._error = (_REASONS.get(error.code, SilenceReason.FAILED), str(error), self._clock())
        else:
            self._error = (SilenceReason.FAILED, f"{type(error).__name__} while asking for the model.", self._clock())
