"""What of a model's text fills a hole: up to where the answer is over, and as much of it as fits.

The same for every kind of model, with the hole that goes with the request.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from calomel.infer.completer import CompleteRequest, FillRequest, cut_at_stop, settled
from calomel.infer.continuation import continuation
from calomel.infer.fitting import HoleText


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Of the answers to one request.

    Attributes:
        request: that is answered.
        continues: the model only continues the text before the hole.
    """

    request: CompleteRequest
    continues: bool

    @property
    def goes_on(self) -> bool:
        """Whether only what follows the hole tells where the answer ends."""
        request = self.request
        constrained = isinstance(request, FillRequest) and request.constraint is not None
        return self.continues and request.kind == "fill" and not constrained and request.min_tokens <= 1

    @property
    def hole(self) -> HoleText | None:
        """The text around the hole, if the answer has to fit it."""
        return self.request.hole if isinstance(self.request, FillRequest) else None

    def cut(self, text: str) -> tuple[str, bool]:
        """The text up to where the answer is over, and whether it is."""
        text, stopped = cut_at_stop(text, self.request.stop)
        end = continuation(self.request.parts).end(text) if self.goes_on else None
        return (text, stopped) if end is None else (text[:end], True)

    async def growing(self, text: str) -> str:
        """The start of a growing answer that nothing can still change; whole lines only if it has to fit its hole."""
        text, over = self.cut(text)
        if not over:
            # Where the answer of a model ends that continues a text, the next line tells.
            text = settled(text[: text.rfind("\n") + 1].rstrip() if self.continues else text, self.request.stop)
        hole = self.hole
        return text if hole is None else await asyncio.to_thread(hole.settled, text)

    def whole(self, text: str, *, ended: bool) -> tuple[str, bool]:
        """What is left of a whole answer, and whether it was over before its end; `ended`: the model ended it.

        Too slow for an event loop if it has to fit its hole.
        """
        text, over = self.cut(text)
        if self.goes_on:
            text, over = text.rstrip(), over or text[-1:].isspace()
        hole = self.hole
        return (text if hole is None else hole.fitted(text, truncated=not (over or ended))), over
