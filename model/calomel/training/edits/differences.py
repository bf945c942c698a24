"""What changed between two versions of a file: hunks of whole lines, and the characters changed in each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, groupby

from rapidfuzz import fuzz
from rapidfuzz.distance import Editops, LCSseq

from calomel.training.edits.story import Change

# Percent. Lines less alike than this were not made from one another.
ALIKE = 50.0

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_TRAILING_COMMA = re.compile(r",(?=[)\]}])")


@dataclass(frozen=True, slots=True)
class LineHunk:
    """Neighbouring whole lines that were replaced; offsets are characters of each version's text."""

    before_start: int
    before_end: int
    after_start: int
    after_end: int
    before: str
    after: str

    def changes(self) -> tuple[Change, ...]:
        """Return the hunk in offsets of the text before: one change, or one for each place of a renamed name."""
        before, after = _TOKEN.findall(self.before), _TOKEN.findall(self.after)
        pairs = list(zip(before, after, strict=False))
        differing = {(old, new) for old, new in pairs if old != new}
        if len(before) == len(after) and len(differing) == 1 and all(_is_name(*names) for names in differing):
            return tuple(self._replaced_names(pairs))
        return (self._trimmed(before, after),)

    def _replaced_names(self, pairs: list[tuple[str, str]]) -> Iterator[Change]:
        offset = self.before_start
        for old, new in pairs:
            if old != new:
                yield Change(offset, offset + len(old), new)
            offset += len(old)

    def _trimmed(self, before: list[str], after: list[str]) -> Change:
        head = _common(before, after)
        tail = _common(before[head:][::-1], after[head:][::-1])
        start = self.before_start + sum(map(len, before[:head]))
        end = self.before_end - sum(map(len, before[len(before) - tail :]))
        return Change(start, end, "".join(after[head : len(after) - tail]))


def line_hunks(before: str, after: str, *, fewest: bool = False) -> tuple[LineHunk, ...]:
    """Return the hunks that make `after` of `before`, top to bottom.

    A run of lines replaced by as many similar lines is one hunk a line: so a person would change them. What stays is
    the longest runs of lines, or with `fewest` as many lines as possible: as good for small changes, and quick.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    old_starts, new_starts = _starts(old), _starts(new)
    hunks: list[LineHunk] = []
    for span in _replaced(old, new, fewest=fewest):
        for a, b, c, d in _by_line(old, new, span):
            texts = "".join(old[a:b]), "".join(new[c:d])
            hunks.append(LineHunk(old_starts[a], old_starts[b], new_starts[c], new_starts[d], *texts))
    return tuple(hunks)


def is_formatting(hunk: LineHunk) -> bool:
    """Tell whether only white space, quotes or a trailing comma differ."""
    return _bare(hunk.before) == _bare(hunk.after)


def _bare(text: str) -> str:
    return _TRAILING_COMMA.sub("", "".join(text.split()).replace("'", '"'))


def _starts(lines: list[str]) -> list[int]:
    return list(accumulate(map(len, lines), initial=0))


_Span = tuple[int, int, int, int]


def _replaced(old: list[str], new: list[str], *, fewest: bool) -> Iterator[_Span]:
    """Yield each replaced run of lines: where it begins and ends in `old`, then in `new`."""
    matcher = LCSseq.editops(old, new) if fewest else SequenceMatcher(None, old, new, autojunk=False)
    blocks = matcher.as_matching_blocks() if isinstance(matcher, Editops) else matcher.get_matching_blocks()
    i = j = 0
    for block in blocks:
        if (block.a, block.b) != (i, j):
            yield i, block.a, j, block.b
        i, j = block.a + block.size, block.b + block.size


def _by_line(old: list[str], new: list[str], span: _Span) -> Iterator[_Span]:
    """Yield a replaced run of as many lines line by line, where most of them are alike; any other as it is."""
    i, i_end, j, j_end = span
    alike = list(map(_alike, old[i:i_end], new[j:j_end]))
    if i_end - i != j_end - j or 2 * sum(alike) < len(alike):
        yield span
        return
    for same, run in groupby(range(len(alike)), alike.__getitem__):
        lines = list(run)
        for part in [[line] for line in lines] if same else [lines]:
            yield i + part[0], i + part[-1] + 1, j + part[0], j + part[-1] + 1


def _alike(old: str, new: str) -> bool:
    return bool(old.strip()) and fuzz.ratio(old, new) >= ALIKE


def _is_name(old: str, new: str) -> bool:
    return old.isidentifier() and new.isidentifier()


def _common(one: list[str], other: list[str]) -> int:
    """Return how many tokens both begin with."""
    for count, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return count
    return min(len(one), len(other))
