"""The one place where text leaves for a model: secrets are hidden here, and answers are read as the text was sent.

Everything before the door sees the text as it is. A `Door` is the last step before anything but a server that this
user's editors started: another maker's server, one at `server.url`, and a `calomel serve` of the user's. It hides

* what the newest text of a file hides, in that text and in excerpts of it, by place;
* in earlier versions of the same file (its edits), what stood at those places, carried back from edit to edit, and what
  each version hides by itself;
* anywhere else, whole values of 16 characters or more, and their beginnings where a token ends with them.

Each hidden character becomes an asterisk, so that all offsets stay the same. An excerpt or edit whose place in a file
with secrets is not known is left out, and so is one of a file that may not be seen any more: nothing is guessed. `Sent`
remembers what was hidden: edits of an answer that touch it, or write the mask, are dropped, and what remains is an
edit of the text as it is.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from calomel.infer.completer import CANVAS, Candidate, CompleteAnswer, CompleteRequest, Draft
from calomel.infer.hiding import Hiding, Knowledge, RequestAlone, Spans, touched
from calomel.prompts.parts import PromptParts
from calomel.workspace.edits import apply, edits_of, minimal_edits
from calomel.workspace.secrets import FINDER, SecretFinder

# The answer's reason when nothing of it may be shown.
SECRET: Final = "secret"  # noqa: S105 (its name)
# Seconds between two pieces of a long text that a server searches: a turn for its event loop.
_PAUSE: Final = 0.001
# Where something is hidden, so many asterisks stand for it: a banner in a comment may be lost, a secret may not.
_MASK: Final = re.compile(r"\*{3,}")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it was sent.

    Attributes:
        request: with what is hidden replaced by asterisks.
        plain: the same as it was before.
        hidden: what is hidden of its window: of `prefix`, the region's text, and `suffix`, one behind the other.
        masked: something is hidden, perhaps in another part.
        drafts: drafts as they were sent to drafts as they are.
    """

    request: CompleteRequest
    plain: CompleteRequest
    hidden: Spans = ()
    masked: bool = False
    drafts: Mapping[Draft, Draft] = field(default_factory=dict)

    def read(self, answer: CompleteAnswer) -> CompleteAnswer:
        """The answer for the text as it is; without what touches or writes something hidden."""
        found = tuple(filter(None, map(self._candidate, answer.candidates)))
        reason = SECRET if answer.candidates and not found else answer.reason
        return replace(answer, candidates=found, reason=reason)

    def forbids(self, text: str) -> bool:
        """Whether a text for the hole would stand beside something hidden, or writes the mask."""
        at = len(self.request.parts.prefix)
        return (bool(text) and touched(self.hidden, at, at)) or self._writes_mask(text)

    def _candidate(self, candidate: Candidate) -> Candidate | None:
        if candidate.maker != CANVAS:
            draft = self.drafts.get(Draft(candidate.text, candidate.maker))
            return candidate if draft is None else replace(candidate, text=draft.text)
        if self.request.kind == "fill" or self.plain.parts.region is None:
            return None if self.forbids(candidate.text) else candidate
        return replace(candidate, text=self._restored(candidate.text)) if self.masked else candidate

    def _restored(self, answer: str) -> str:
        """The region with those edits of the answer that touch nothing hidden."""
        region, plain = self.request.parts.region, self.plain.parts.region
        if region is None or plain is None:
            return answer
        start = len(self.request.parts.prefix)
        hidden = tuple((low - start, high - start) for low, high in self.hidden)
        edits = minimal_edits(region.text, 0, len(region.text), answer)
        kept = [
            each for each in edits if not touched(hidden, each.start, each.end) and not self._writes_mask(each.text)
        ]
        return apply(plain.text, edits_of(kept))

    def _writes_mask(self, text: str) -> bool:
        """Whether a text has asterisks in place of something hidden."""
        return self.masked and _MASK.search(text) is not None


class Door:
    """Hides what leaves. Used from one event loop.

    Args:
        known: what is known of the files that requests name; None for requests that are all that is known.
    """

    def __init__(self, known: Knowledge | None = None) -> None:
        self._known = known
        self._finder = FINDER if known is not None else SecretFinder(partial(time.sleep, _PAUSE))
        # Of edits and excerpts, what their own versions hide of them.
        self._own: OrderedDict[tuple[str, int, str, str], tuple[Spans, Spans]] = OrderedDict()

    async def send(self, request: CompleteRequest) -> Sent:
        """The request as it may leave. Megabytes that a client sent are searched in a thread."""
        if self._known is not None:
            return self.sent(request)
        return await asyncio.to_thread(self.sent, request)

    def sent(self, request: CompleteRequest) -> Sent:
        """The same; may take long."""
        known = self._known or RequestAlone(request.parts)
        permitted = replace(request, parts=_permitted(request.parts, known))
        if not known.masks:
            return Sent(permitted, permitted)
        shown, hidden, masked, drafts = Hiding(permitted, known, self._finder, self._own).sent()
        return Sent(shown, permitted, hidden, masked, drafts)


class OpenDoor(Door):
    """For a process that this user's Calomel started itself: text reaches it as it is."""

    async def send(self, request: CompleteRequest) -> Sent:
        """The request, unchanged."""
        return Sent(request, request)


def _permitted(parts: PromptParts, known: Knowledge) -> PromptParts:
    """The parts without files that may not be seen any more."""
    known.look_again()
    files = {name for name in {each.path for each in parts.related} if known.permits(name)}
    edited = {name for name in {each.path for each in parts.edits} if name == parts.path or known.permits_edits(name)}
    return replace(
        parts,
        related=tuple(each for each in parts.related if each.path in files),
        edits=tuple(each for each in parts.edits if each.path in edited),
    )
