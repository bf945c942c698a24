"""A filler that keeps the canvases behind each denoising step of what it fills, for whoever wants to look at them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from calomel.suggest.completer import CompleteAnswer, CompleteRequest, Draft, Kind

if TYPE_CHECKING:
    from calomel.suggest.canvas_text import CanvasText
    from calomel.suggest.drafted import Drafted
    from calomel.suggest.fill import Fill, FillRequest
    from calomel.suggest.filler import Filler

# With a threshold that takes more steps there is more to see; `calomel bench infill` fills as many holes with two.
_POLICY = "threshold:0.9"


class WatchedFiller:
    """Fills as another filler does.

    Args:
        filler: closed with this object.
        steps: denoising steps a canvas may take; None for what editors use.

    Attributes:
        canvases: of the last fill, one behind each step.
        seconds: that answers took, by kind, since somebody emptied it; what was only looked at does not count.
    """

    def __init__(self, filler: Filler, steps: int | None = None) -> None:
        self.canvases: tuple[CanvasText, ...] = ()
        self.seconds: defaultdict[Kind, float] = defaultdict(float)
        self._filler = filler
        self._steps = steps

    async def afill(self, request: FillRequest) -> Fill:
        """Fill the hole; cancelling the task cancels the work."""
        with self._timed("fill"):
            return await self._watched(self._slow(request))

    async def adraft(self, request: FillRequest, drafts: Sequence[Draft]) -> tuple[Fill, Drafted]:
        """Fill the hole and judge drafts for it. The canvases take a fill of their own: judging keeps none."""
        request = self._slow(request)
        await self._watched(request)
        with self._timed("fill"):
            return await self._filler.adraft(request, drafts)

    async def arewrite(self, request: CompleteRequest) -> CompleteAnswer:
        """What a region could become; nothing is kept of it."""
        self.canvases = ()
        with self._timed("edit"):
            return await self._filler.arewrite(request)

    def close(self) -> None:
        """Stop the engine."""
        self._filler.close()

    @contextmanager
    def _timed(self, kind: Kind) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[kind] += time.monotonic() - began

    def _slow(self, request: FillRequest) -> FillRequest:
        return request if self._steps is None else replace(request, policy=_POLICY, max_steps=self._steps)

    async def _watched(self, request: FillRequest) -> Fill:
        from calomel.suggest.canvas_text import CanvasText

        self.canvases = ()
        seen: list[CanvasText] = []
        filled: Fill | None = None
        async with aclosing(self._filler.canvases(request)) as items:
            async for item in items:
                if isinstance(item, CanvasText):
                    seen.append(item)
                else:
                    filled = item
        if filled is None:
            raise RuntimeError("the engine ended without an answer")
        self.canvases = tuple(seen)
        return filled
