"""A moment of a story that was asked about, and what was said and proposed."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from calomel.bench.moments import Moment


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that became others: [start, end) of a document, counted from 0, and what stands there then."""

    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class EditCase:
    """One question for the next edit.

    Attributes:
        moment: what was done, and what is to come.
        result: the document behind the suggestion; None where nothing was shown.
        proposed: the documents behind all that was proposed, shown or not.
    """

    moment: Moment
    result: str | None
    proposed: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """The suggestion is right, or the silence."""
        return self.moment.silent if self.result is None else self.moment.right(self.result)

    @property
    def right_proposed(self) -> bool:
        """A right one was among the proposals."""
        return any(map(self.moment.right, self.proposed))

    @cached_property
    def wanted(self) -> str:
        """The document with all that is to come."""
        text = self.moment.text
        for change in reversed(self.moment.coming):
            text = change.apply(text)
        return text

    @cached_property
    def wanted_blocks(self) -> tuple[Block, ...]:
        """The lines that are to change."""
        return blocks(self.moment.text, self.wanted)

    @cached_property
    def made_blocks(self) -> tuple[Block, ...]:
        """The lines that the suggestion changes; none where there is no suggestion."""
        return () if self.result is None else blocks(self.moment.text, self.result)


def blocks(before: str, after: str) -> tuple[Block, ...]:
    """The lines of `before` that `after` has otherwise; one by one where they stay as many."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    found: list[Block] = []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if j - i == m - k:
            found += [Block(i + at, i + at + 1, (new[k + at],)) for at in range(j - i)]
        else:
            found.append(Block(i, j, tuple(new[k:m])))
    return tuple(found)
