"""How much of a suggestion takes back what the user has just done.

Counted in characters, as Zed's reversal ratio is: those it deletes of what was just written, and those it brings back
where they were just deleted. Completing a word, or a word that was made longer, takes nothing back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rapidfuzz.distance import LCSseq

from calomel.selectivity.proposal import Edit, Proposal, Recent

# Characters of white space between where something was deleted and where it comes back.
_APART: Final = 200
# What is longer is compared by its ends alone.
_LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class Done:
    """What the user did, without what it left as it was: `written` stands at `start:end` where `gone` stood."""

    start: int
    end: int
    gone: str
    written: str


class Undone(NamedTuple):
    """Characters that a suggestion deletes and inserts, and how many of them take something back.

    Attributes:
        deleted: all that it deletes.
        typed: of them, what was just written.
        inserted: all that it inserts.
        restored: of them, what was just deleted there.
    """

    deleted: int
    typed: int
    inserted: int
    restored: int

    @property
    def share(self) -> float:
        """Of the suggestion, what takes back; 0 to 1."""
        total = self.deleted + self.inserted
        return (self.typed + self.restored) / total if total else 0.0


def trimmed(text: str, edits: Sequence[tuple[int, int, str]]) -> list[Edit]:
    """The edits without what they leave as it is."""
    bare = []
    for start, end, new in edits:
        front, back = _shared(text[start:end], new)
        if start + front < end - back or front < len(new) - back:
            bare.append(Edit(start + front, end - back, new[front : len(new) - back]))
    return bare


def done(recent: Sequence[Recent]) -> Iterator[Done]:
    """What was done, bare: replacing `get` by `getter` wrote `ter` and deleted nothing."""
    for each in recent:
        front, back = _shared(each.removed, each.inserted)
        gone = each.removed[front : len(each.removed) - back]
        written = each.inserted[front : len(each.inserted) - back]
        if gone or written:
            yield Done(each.start + front, each.end - back, gone, written)


def undone(proposal: Proposal) -> Undone:
    """What a suggestion takes back, all its edits and all that was done lately together."""
    deleted = typed = inserted = restored = 0
    past = list(done(proposal.recent))
    for start, end, new in trimmed(proposal.text, proposal.edits):
        deleted += end - start
        inserted += len(new)
        typed += min(
            end - start, sum(max(0, min(end, each.end) - max(start, each.start)) for each in past if each.written)
        )
        back = (common(each.gone, new) for each in past if each.gone and start <= each.end and each.start <= end)
        restored += min(len(new), max(back, default=0))
    return Undone(deleted, typed, inserted, restored)


def near(proposal: Proposal, at: int, place: int) -> bool:
    """Whether two places have nothing but white space between them."""
    first, last = sorted((at, place))
    return last - first <= _APART and not proposal.text[first:last].strip()


def common(one: str, other: str) -> int:
    """Characters that two texts have in the same order, counted only where they are most of one of them."""
    if len(one) > _LONGEST or len(other) > _LONGEST:
        front, back = _shared(one, other)
        return front + back
    # Of unrelated code a third is common by chance.
    length = int(LCSseq.similarity(one, other))
    return length if 2 * length > min(len(one), len(other)) else 0


def _shared(one: str, other: str) -> tuple[int, int]:
    """Lengths of the common beginning, and of the common end behind it."""
    most = min(len(one), len(other))
    front = 0
    while front < most and one[front] == other[front]:
        front += 1
    back = 0
    while back < most - front and one[-1 - back] == other[-1 - back]:
        back += 1
    return front, back
