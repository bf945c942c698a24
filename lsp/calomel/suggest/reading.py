"""Prefetching: while idle, the model encodes the text around a resting cursor before anybody asks."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from calomel.infer.client import ModelClient
from calomel.infer.completer import CompleterError, ModelInfo
from calomel.suggest.answering import Answering
from calomel.suggest.candidates import CandidateSource
from calomel.suggest.snapshot import Request, Trigger
from calomel.workspace.workspace import Workspace

LOG: Final = logging.getLogger(__name__)

# The cursor rests when nothing happens for this long.
_REST_SECONDS: Final = 0.25


class ReadAhead:
    """Prefetches one place at a time, the newest; every real question comes first.

    The server gives it the lowest priority. What was encoded before a cancellation stays cached for the next question.
    """

    def __init__(
        self,
        workspace: Workspace,
        model: ModelClient,
        source: CandidateSource,
        answering: Answering,
    ) -> None:
        self._workspace = workspace
        self._model = model
        self._source = source
        self._answering = answering
        self._task: asyncio.Task[None] | None = None
        self._place: tuple[str, int] | None = None
        self._known: tuple[str, int, int] | None = None

    def rests(self, uri: str, offset: int) -> None:
        """The cursor is at `offset`: prefetch there once it has rested, unless that is done already."""
        self.stop()
        self._place = (uri, offset)
        info, wanted = self._model.info, self._answering.permission.settings.read_ahead != "never"
        if wanted and info is not None and info.reads_ahead and self._key(uri, offset) not in {None, self._known}:
            self._task = asyncio.ensure_future(self._read(uri, offset, info))

    def again(self) -> None:
        """Prompts will be different from now on: forget what was prefetched. Nothing is prefetched without a model."""
        self._known = None
        if self._place is not None:
            self.rests(*self._place)

    def stop(self) -> None:
        """Cancel prefetching: a real question came, or it is of no use any more."""
        if self._task is not None:
            self._task.cancel()

    def _key(self, uri: str, offset: int) -> tuple[str, int, int] | None:
        document = self._workspace.documents.get(uri)
        return None if document is None else (uri, document.revision, offset)

    async def _read(self, uri: str, offset: int, info: ModelInfo) -> None:
        await self._model.sleep(_REST_SECONDS)
        answering = self._answering
        try:
            with suppress(CompleterError):
                if answering.permission.settings.read_ahead == "plugged_in" and _on_battery():
                    return
                document = self._workspace.documents.get(uri)
                if document is None or offset > len(document) or answering.flight.running is not None:
                    return
                place = Request("fill", document, offset, Trigger.CURSOR)
                if answering.permission.forbidden(place, answering.state(uri)) is not None:
                    return
                snapshot = await answering.snapshot(place, info)
                if snapshot is not None:
                    await self._source.read_ahead(snapshot)
                    self._known = self._key(uri, offset)
        except Exception as error:  # noqa: BLE001 (nobody waits for it: it must not end the session)
            LOG.error("reading ahead ended with %s", type(error).__name__)  # noqa: TRY400 (an error may quote the text)


def _on_battery() -> bool:
    import psutil  # takes 10 ms, which the start of an editor must not wait for

    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    return battery is not None and battery.power_plugged is False
