"""An answer about related code, and for how long it stands: the model's cache of a prompt lives as long as it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.prompts.parts import Excerpt
from calomel.workspace.candidates import Source
from calomel.workspace.index import Index
from calomel.workspace.scope import Scope

# The cursor may go so far within its function, and outside of any, before other code matters.
_WITHIN: Final = 60
_OUTSIDE: Final = 30
# Between two functions, or while a statement that is being typed hides its function from the parser.
_BESIDE: Final = 3
# While the index grows, and after that, an answer is as old as this before a better one may come.
_WHILE_GROWING: Final = 5.0
_SETTLED: Final = 30.0
# An answer that ran out of time is tried again.
_UNFINISHED: Final = 1.0


@dataclass(frozen=True, slots=True)
class RankedExcerpt:
    """An excerpt, and why it is there.

    Attributes:
        excerpt: of another file than the cursor's.
        source: what led to it; of several the strongest.
        score: comparable within one answer alone; higher is better.
    """

    excerpt: Excerpt
    source: Source
    score: float


@dataclass(frozen=True, slots=True)
class Taken:
    """What of the index an excerpt was made of: it is stale once these lines are others."""

    path: str
    start: int
    lines: tuple[str, ...]


@dataclass(slots=True)
class Answer:
    """One answer, and the state it was made in.

    Attributes:
        scopes: kinds and names around the cursor.
        line: of the cursor; follows edits above it.
        elsewhere: of other documents, what the user did there.
        whole: everything was asked within the time.
    """

    excerpts: tuple[RankedExcerpt, ...]
    taken: tuple[Taken, ...]
    scopes: tuple[tuple[str, str], ...]
    line: int
    time: float
    generation: int
    complete: bool
    elsewhere: tuple[int, int]
    limit: int
    whole: bool

    def stands(self, scopes: tuple[tuple[str, str], ...], line: int) -> bool:
        """Whether the cursor is still where the answer was made for."""
        distance = abs(line - self.line)
        if distance <= _BESIDE:
            return True
        return scopes == self.scopes and distance <= (_WITHIN if scopes else _OUTSIDE)

    def is_current(self, index: Index, now: float, elsewhere: tuple[int, int], *, complete: bool) -> bool:
        """Whether the files are still what they were, as far as it matters."""
        age = now - self.time
        if elsewhere != self.elsewhere or (not self.whole and age >= _UNFINISHED):
            return False
        if self.complete != complete and complete:
            return False
        if self.generation == index.generation:
            return True
        if age >= (_SETTLED if complete else _WHILE_GROWING):
            return False
        # That something else has changed is looked at when the answer has become old.
        return all(_unchanged(index, each) for each in self.taken)


def _unchanged(index: Index, taken: Taken) -> bool:
    place = index.place(taken.path)
    if place is None:
        return False
    lines = place.segment.lines(place.number, taken.start, taken.start + len(taken.lines))
    return tuple(lines) == taken.lines


def keys(scopes: Sequence[Scope]) -> tuple[tuple[str, str], ...]:
    """What identifies the scopes while the text in and above them changes."""
    return tuple((scope.kind, scope.name) for scope in scopes if scope.kind != "block")


def in_order(found: Sequence[RankedExcerpt], before: Answer | None) -> tuple[RankedExcerpt, ...]:
    """The best last; but those of the answer before stay in front, in their order, since the model has read them."""
    ranked = sorted(found, key=lambda each: (each.score, each.excerpt.path, each.excerpt.start_line))
    if before is None:
        return tuple(ranked)
    known = {each.excerpt: at for at, each in enumerate(before.excerpts)}
    stayed = sorted((each for each in ranked if each.excerpt in known), key=lambda each: known[each.excerpt])
    return (*stayed, *(each for each in ranked if each.excerpt not in known))
