"""Work-done progress: what takes long and happens in the background, for clients that show it."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from calomel.lsp.client import Client
from calomel.lsp.protocol import EditorLink

LOG: Final = logging.getLogger(__name__)

# A client that does not answer is one that shows nothing.
ANSWER_SECONDS: Final = 5.0

_NUMBERS: Final = itertools.count(1)


class Progress:
    """One line in the client's list of things that are going on. Silent for clients that cannot show it."""

    def __init__(self, link: EditorLink, client: Client, title: str) -> None:
        self._link = link
        self._shown = client.progress
        self._title = title
        self._token = f"calomel-{next(_NUMBERS)}"
        self._begun = False
        self._percent = -1

    async def begin(self, message: str = "", *, measured: bool = False) -> None:
        """Ask the client for the line and begin it; `measured` ones report percentages."""
        if not self._shown or self._begun:
            return
        params = types.WorkDoneProgressCreateParams(token=self._token)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._link.window_work_done_progress_create_async(params)
        except (TimeoutError, JsonRpcException):
            LOG.debug("the client shows no progress")
            return
        self._begun = True
        self._say(
            types.WorkDoneProgressBegin(
                title=self._title, message=message or None, percentage=0 if measured else None, cancellable=False
            )
        )

    def report(self, share: float) -> None:
        """`share` of the work is done, 0 to 1; said when the percentage grows."""
        percent = int(100 * max(0.0, min(1.0, share)))
        if self._begun and percent > self._percent:
            self._percent = percent
            self._say(types.WorkDoneProgressReport(percentage=percent))

    def end(self, message: str = "") -> None:
        """The work is done, or given up."""
        if self._begun:
            self._begun = False
            self._say(types.WorkDoneProgressEnd(message=message or None))

    def _say(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        self._link.progress(types.ProgressParams(token=self._token, value=value))
