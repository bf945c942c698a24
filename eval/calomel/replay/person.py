"""The simulated user: the one place that says what a person would have done with a suggestion, with every constant.

The log tells what the person wrote. A suggestion is *accepted* when the person's own text at its place, at some moment
within `SECONDS` or `KEYSTROKES` (whichever lasts longer; a long suggestion gets more keystrokes), begins with all of
it; *partly* when it begins with its first line or its first words; *rejected* otherwise. "At its place" makes this
stricter than "contains": a common word that the person writes a line later was not predicted. White space is not
compared, since editors indent and formatters break lines. What was accepted is *kept* when it still stands there a
minute later. A suggestion with fewer than `LEAST_CHARACTERS` visible characters is *too short*: of what everybody types
some is predicted by chance, so these are reported apart and never count as accepted; the same bound holds for a part.

Characters are saved where the person would have had to type them: all that was accepted, without the white space that
begins a line (editors put it there), less one keystroke for the acceptance. Deleting saves none, however much it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.code.names import is_word
from calomel.prompts.parts import Edit, common_prefix, line_end, line_start, trimmed
from calomel.replay.events import Changed, Closed, Event, Focused, Opened, Selected, apply_edits
from calomel.replay.opportunity import Ending, Verdict
from calomel.selectivity.sample import Reaction


@dataclass(frozen=True, slots=True)
class Region:
    """The code points [start, end) of a text.

    Attributes:
        start: stays before text inserted right there.
        end: moves after text inserted right there.
    """

    start: int
    end: int

    def text(self, text: str) -> str:
        """The text in the region."""
        return text[self.start : self.end]

    def after(self, edits: Sequence[Edit]) -> Region:
        """The region after a change whose edits are trimmed, sorted and of one text."""
        return Region(_moved(self.start, edits, behind=False), _moved(self.end, edits, behind=True))


def difference(before: str, after: str) -> tuple[Edit, ...]:
    """The smallest single edit that turns one text into the other; none when they are the same."""
    return trimmed(before, (Edit(0, len(before), after),))


def _moved(offset: int, edits: Sequence[Edit], *, behind: bool) -> int:
    shift = 0
    for edit in edits:
        if edit.start > offset or (edit.start == offset and not behind):
            break
        if edit.end > offset:
            # It replaces text on both sides: all of the new text belongs to the region.
            return edit.start + shift + (len(edit.text) if behind else 0)
        shift += len(edit.text) - (edit.end - edit.start)
    return offset + shift


SECONDS: Final = 30.0
KEYSTROKES: Final = 40
# Typing with corrections takes more keystrokes than the text has characters.
KEYSTROKES_PER_CHARACTER: Final = 1.5
LEAST_CHARACTERS: Final = 4
KEPT_SECONDS: Final = 60.0
# The key that accepts.
ACCEPT_COST: Final = 1


@dataclass(frozen=True, slots=True)
class Moment:
    """When a suggestion arrived.

    Attributes:
        document: the one it is for.
        text: of the document.
        time: seconds of the log's clock.
        position: of the first later event in the log.
    """

    document: str
    text: str
    time: float
    position: int


def judge(moment: Moment, edits: Sequence[Edit], events: Sequence[Event]) -> Verdict:
    """What the person would have done with `edits` of the moment's text.

    Args:
        moment: when they arrived.
        edits: as suggested.
        events: of the whole log.
    """
    watch = _Watch(moment, trimmed(moment.text, edits))
    for position in range(moment.position, len(events)):
        if not watch.see(position, events[position]):
            break
    else:
        watch.ended = True
    return watch.verdict()


def visible(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


@dataclass(slots=True)
class _Part:
    """One edit of a suggestion, followed through the document.

    Attributes:
        place: what it replaces, and what is written there.
        line: the same from the beginning of the line: the person may rewrite the beginning.
        head: visible text from the beginning of the line to the edit.
        removed: visible text that it replaces.
        wanted: its visible text.
    """

    text: str
    place: Region
    line: Region
    head: str
    indented: bool
    removed: str
    wanted: str

    def follow(self, edits: Sequence[Edit]) -> None:
        self.place, self.line = self.place.after(edits), self.line.after(edits)

    def done(self, text: str) -> int:
        """How many characters of its visible text are at its place."""
        there = visible(self.place.text(text))
        if there == self.removed:
            return 0
        here = common_prefix(there, self.wanted)
        whole = visible(self.line.text(text))
        retyped = common_prefix(whole, self.head + self.wanted) - len(self.head)
        return max(here, retyped)

    def is_done(self, text: str) -> bool:
        """Whether all of it is there."""
        if not self.wanted:
            return bool(self.removed) and not visible(self.place.text(text))
        return self.done(text) == len(self.wanted)

    def agrees(self, text: str) -> bool:
        """Whether the person's text can still become it."""
        there = visible(self.place.text(text))
        return there == self.removed or self.wanted.startswith(there) or there.startswith(self.wanted)

    def taken(self, count: int) -> str:
        """Its text up to `count` visible characters, cut back to whole words, without trailing white space."""
        end = seen = 0
        for at, character in enumerate(self.text):
            if seen == count:
                break
            if not character.isspace():
                seen += 1
                end = at + 1
        while 0 < end < len(self.text) and is_word(self.text[end - 1]) and is_word(self.text[end]):
            end -= 1
        return self.text[:end].rstrip() if end < len(self.text) else self.text

    def has(self, text: str, taken: str) -> bool:
        """Whether the accepted part of it is still there."""
        if not self.wanted:
            return self.is_done(text)
        return visible(taken) in visible(self.line.text(text))


@dataclass(slots=True)
class _Best:
    """The largest part of a suggestion that the person's own text had at one moment."""

    score: int = 0
    whole: bool = False
    taken: tuple[str, ...] = ()
    time: float = 0.0
    until: int = 0


class _Watch:
    def __init__(self, moment: Moment, edits: tuple[Edit, ...]) -> None:
        self.ended = False
        self._moment = moment
        self._text = moment.text
        self._parts = [_part(moment.text, edit) for edit in edits]
        self._size = sum(len(visible(edit.text)) + len(visible(moment.text[edit.start : edit.end])) for edit in edits)
        inserted = sum(len(edit.text) for edit in edits)
        self._keystrokes = max(KEYSTROKES, round(KEYSTROKES_PER_CHARACTER * inserted))
        self._typed = 0
        self._best = _Best(until=moment.position)
        self._kept: bool | None = None
        self._kept_known = False
        self._gone: tuple[float, Ending] | None = None
        self._ghost = edits[0].start if len(edits) == 1 and edits[0].start == edits[0].end else None
        low, high = (edits[0].start, edits[-1].end) if edits else (0, 0)
        self._lines = Region(line_start(moment.text, low), line_end(moment.text, high))
        self._before = self._lines.text(moment.text)
        shift = self._lines.start
        moved = [Edit(edit.start - shift, edit.end - shift, edit.text) for edit in edits]
        self._after = apply_edits(self._before, moved)
        self._expected: str | None = None
        self._last_time = moment.time

    def see(self, position: int, event: Event) -> bool:
        """Process an event; returns whether the next one matters, too."""
        moment = self._moment
        self._check_kept(event.time)
        in_horizon = event.time - moment.time <= SECONDS or self._typed < self._keystrokes
        if not in_horizon and (not self._best.score or self._kept_known):
            return False
        self._last_time = event.time
        if isinstance(event, Focused) and event.document != moment.document:
            self._hide(event.time, "left")
        if event.document != moment.document:
            return True
        if isinstance(event, Closed):
            self._hide(event.time, "left")
            return False
        if isinstance(event, Selected):
            if self._ghost is not None and _rows_apart(self._text, event.offset, self._parts[0].place):
                self._hide(event.time, "left")
        elif isinstance(event, Changed | Opened):
            self._change(position, event, in_horizon=in_horizon)
        return True

    def _change(self, position: int, event: Changed | Opened, *, in_horizon: bool) -> None:
        if isinstance(event, Changed):
            edits, self._text = trimmed(self._text, event.edits), apply_edits(self._text, event.edits)
            self._typed += event.cause == "typed"
        else:
            edits, self._text = difference(self._text, event.text), event.text
        for part in self._parts:
            part.follow(edits)
        self._lines = self._lines.after(edits)
        if not in_horizon:
            return
        self._expected = self._lines.text(self._text)
        self._compare(position, event.time)
        if self._parts and all(part.is_done(self._text) for part in self._parts):
            self._hide(event.time, "taken")
        elif not all(part.agrees(self._text) for part in self._parts):
            self._hide(event.time, "typed_on")

    def _compare(self, position: int, now: float) -> None:
        """Check whether the person's text has more of it than before."""
        whole = [part.is_done(self._text) for part in self._parts]
        if self._parts and all(whole):
            taken = tuple(part.text for part in self._parts)
            score = self._size
        elif len(self._parts) > 1:
            taken = tuple(part.text if done else "" for part, done in zip(self._parts, whole, strict=True))
            pairs = zip(self._parts, whole, strict=True)
            score = sum(len(part.wanted) + len(part.removed) for part, done in pairs if done)
        elif self._parts:
            taken = (self._parts[0].taken(self._parts[0].done(self._text)),)
            score = len(visible(taken[0]))
        else:
            return
        if score >= LEAST_CHARACTERS and score > self._best.score:
            self._best = _Best(score, all(whole), taken, now, position + 1)

    def _check_kept(self, now: float) -> None:
        """Decide whether the accepted text was kept, if the current text, unchanged until `now`, tells."""
        if self._best.score and not self._kept_known and now > self._best.time + KEPT_SECONDS:
            # More of it may still come; then the minute starts over.
            self._kept = self._stands()
            self._kept_known = True
        if self._kept_known and self._best.time + KEPT_SECONDS > now:
            self._kept, self._kept_known = None, False

    def _stands(self) -> bool:
        parts = zip(self._parts, self._best.taken, strict=True)
        return all(part.has(self._text, taken) for part, taken in parts if taken or not part.wanted)

    def _hide(self, now: float, why: Ending) -> None:
        if self._gone is None:
            self._gone = (now, why)

    def verdict(self) -> Verdict:
        best = self._best
        outcome: Reaction = "accepted" if best.whole else "partly" if best.score else "rejected"
        if self._size < LEAST_CHARACTERS:
            outcome = "too_short"
        took = outcome in {"accepted", "partly"}
        gone, ending = self._gone or (self._last_time, "end_of_log")
        return Verdict(
            outcome=outcome,
            before=self._before,
            after=self._after,
            expected=None if self._expected is None else _as_many_lines(self._expected, self._after, self._before),
            accepted_characters=sum(map(len, best.taken)) if took else 0,
            saved_characters=self._saved() if took else 0,
            kept=self._kept if took and self._kept_known else None,
            visible_seconds=max(0.0, gone - self._moment.time),
            until=best.until if took else self._moment.position,
            given=best.time if took else None,
            ending=ending,
        )

    def _saved(self) -> int:
        parts = zip(self._parts, self._best.taken, strict=True)
        return max(0, sum(_by_hand(taken, indented=part.indented) for part, taken in parts) - ACCEPT_COST)


def _part(text: str, edit: Edit) -> _Part:
    start = line_start(text, edit.start)
    head = text[start : edit.start]
    return _Part(
        text=edit.text,
        place=Region(edit.start, edit.end),
        line=Region(start, edit.end),
        head=visible(head),
        indented=not head.strip(),
        removed=visible(text[edit.start : edit.end]),
        wanted=visible(edit.text),
    )


def _by_hand(text: str, *, indented: bool) -> int:
    """The characters of `text` that a person types: without indentation, which editors insert."""
    text = re.sub(r"(?<=[\r\n])[ \t]+", "", text)
    return len(text.lstrip(" \t") if indented else text)


def _as_many_lines(text: str, *others: str) -> str:
    """The first lines of `text`, as many as the longest of the others has; text written after them does not count."""
    most = max(len(other.split("\n")) for other in others)
    return "\n".join(text.split("\n")[:most])


def _rows_apart(text: str, offset: int, place: Region) -> bool:
    low, high = line_start(text, place.start), line_end(text, place.end)
    return not low <= offset <= high
