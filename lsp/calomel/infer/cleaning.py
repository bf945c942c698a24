"""What of a model's text fills a hole: up to where the answer is over, and as much of it as fits.

`Cleaning` is for clients that use an answer as it is: the same for every kind of model, with the hole that goes with
the request. `between` is for editors, which judge what is left by their own filters.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Final

from calomel.infer.completer import CompleteRequest, FillRequest, cut_at_stop, settled
from calomel.infer.continuation import continuation
from calomel.infer.fitting import (
    HoleText,
    Refuses,
    fitted,
    is_blank,
    line_rest,
    within_line,
    without_echo,
    without_overlap,
)
from calomel.infer.seams import indented, spaced

# What a blank stands before.
_STANDS_APART: Final = re.compile(r"[^\s)\]};,:.]")
_LAST_LINE_END: Final = re.compile(r"(?:\r\n|\r|\n)[^\r\n]*\Z")


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


def between(
    text: str, prefix: str, suffix: str, language_id: str, refuses: Refuses, *, ended: bool
) -> tuple[str, bool]:
    """An answer to an editor, which knows the whole text around the cursor, and whether it ends within a line.

    What repeats the text after the cursor or the word before it is cut off, and so is what it leaves open, unless
    nothing would remain. Empty if the answer only repeats the word before the cursor.

    Args:
        text: of the answer.
        prefix: the whole text before the cursor.
        suffix: the whole text after it.
        language_id: of both.
        refuses: returns what is wrong with a text, or None.
        ended: the model ended it; otherwise its last line is incomplete.
    """
    whole, text = text, without_echo(prefix, text)
    if is_blank(text) and not is_blank(whole):
        return "", False
    last, cut_off = _LAST_LINE_END.search(text), not ended
    if cut_off and last and text[: last.start()].strip():
        text = text[: last.start()]  # half a line is worse than none
        cut_off = False
    if "\n" in text or "\r" in text:
        within = within_line(text, line_rest(suffix))
        cut_off = cut_off and within == text
        text = within
    left = without_overlap(text, suffix)
    if not is_blank(left):
        text = left
    if is_blank(text):
        text = whole
    if cut_off:
        text = spaced(whole, indented(text, prefix, suffix, language_id), prefix, suffix, language_id)
    else:
        text = fitted(text, prefix, suffix, language_id, refuses) or text
    return text if _STANDS_APART.match(suffix) else text.rstrip() or text, cut_off
