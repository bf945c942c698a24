"""The places of a snippet's runs in the original."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise, product
from typing import Final, NamedTuple

from calomel.suggest.apply.alignment import Likeness
from calomel.suggest.apply.snippet import Run, head_of
from calomel.suggest.apply.source import Source, columns
from calomel.suggest.edit import line_end_of


class Piece(NamedTuple):
    """One replacement.

    Attributes:
        start, end: lines of the original to remove, `end` excluded.
        first, last: lines of the snippet to insert, `last` excluded.
        shift: columns to indent them further.
        apart_before, apart_after: empty lines wanted next to it if the original has none.
    """

    start: int
    end: int
    first: int
    last: int
    shift: int = 0
    apart_before: int = 0
    apart_after: int = 0


# One interpretation of a run of the snippet.
Reading = tuple[Piece, ...]
# For each line of the snippet, the matching line of the original.
Pairs = Sequence[int | None]


_TAB: Final = 4


def splice(original: Source, snippet: Source, pieces: Iterable[Piece]) -> str | None:
    """The merged text; None if two pieces replace the same lines. Line ends are those of the original."""
    text = "".join(original.lines)
    end = line_end_of(text)
    tabs = any(line.startswith("\t") for line in original.lines)
    merged: list[str] = []
    at = 0
    for piece in sorted(pieces, key=lambda piece: (piece.start, piece.first)):
        if piece.start < at:
            return None
        merged += original.lines[at : piece.start]
        if merged and not merged[-1].endswith(("\n", "\r")):
            merged[-1] += end
        filled = next((count for count, line in enumerate(reversed(merged)) if line.strip()), None)
        if filled is not None:
            merged += [end] * (piece.apart_before - filled)
        for line in snippet.lines[piece.first : piece.last]:
            merged.append(_shifted(line.rstrip("\r\n"), piece.shift, tabs=tabs) + end)
        at = piece.end
        if piece.apart_after and at < len(original.lines) and not original.blank(at):
            merged += [end] * piece.apart_after
    result = "".join([*merged, *original.lines[at:]])
    return result if not text or text.endswith(("\n", "\r")) else result.removesuffix(end)


def _shifted(line: str, shift: int, *, tabs: bool) -> str:
    body = line.lstrip(" \t")
    if not shift or not body:
        return line
    width = max(0, columns(line) + shift)
    return ("\t" * (width // _TAB) + " " * (width % _TAB) if tabs else " " * width) + body


# A block of at most this many lines may become anything; of a longer one, a share of its lines should remain.
_SHORT_BLOCK: Final = 8
_LEAST_SHARE: Final = 0.34
# Dropping more lines than this between two lines of a snippet is doubtful.
_DROPPED: Final = 12
# Limit of the readings of one run.
_READINGS: Final = 8
_LEAST_ALIKE: Final = 2
# A line whose match is worth this much is not just a bracket or a `return`.
_TELLING: Final = 1.0
_MAIN: Final = "if __name__ =="
# What may precede all code of a file, besides comments.
_TOP: Final = ("package ", "'use ", '"use ', "<?", "from __future__")


class Places:
    """Finds the readings of runs.

    Args:
        snippet: the change.
        original: the file.
        likeness: compares both.
        pairs: for each line of the snippet, the matching line of the original.
    """

    def __init__(self, snippet: Source, original: Source, likeness: Likeness, pairs: Pairs) -> None:
        self._snippet = snippet
        self._original = original
        self._likeness = likeness
        self._pairs = pairs

    def matches(self, run: Run) -> list[tuple[int, int]]:
        """The matched lines of a run, each with its line of the original."""
        filled = self._snippet.filled(run.start, run.end)
        return [(line, at) for line in filled if (at := self._pairs[line]) is not None]

    def anchored(self, run: Run, low: int, high: int) -> list[Reading]:
        """The readings of a run with matched lines, likeliest first.

        Its place is between the lines `low` and `high` of the original.
        """
        matches = self.matches(run)
        cuts = list(pairwise(matches))
        line, at = matches[0]
        above = self._original.filled(low, at)[::-1]
        starts = self._replaced(self._snippet.filled(run.start, line), above, matches[0], at, 0)
        ends = self._ends(run, matches[-1], high)
        # How much further the original indents the lines, if all of them agree.
        shifts = {self._original.indents[at] - self._snippet.indents[line] for line, at in matches}
        shift = shifts.pop() if len(shifts) == 1 else 0
        splits = [(False, True) if self._doubtful(one, other) else (False,) for one, other in cuts]
        found = []
        for low_end, end, *keeps in islice(product(starts, ends, *splits), _READINGS):
            kept = [pair for pair, keep in zip(cuts, keeps, strict=True) if keep]
            # Lines of the original between the two of a kept pair stay.
            tops = [(low_end, run.start), *((at, line) for _, (line, at) in kept)]
            bottoms = [*((at + 1, line) for (_, at), (line, _) in kept), (end, run.end)]
            edges = zip(tops, bottoms, strict=True)
            found.append(tuple(Piece(start, stop, first, last, shift) for (start, first), (stop, last) in edges))
        return found

    def _ends(self, run: Run, last: tuple[int, int], high: int) -> list[int]:
        """The lines up to which a run may replace the original, likeliest first."""
        line, at = last
        new = self._snippet.filled(line + 1, run.end)
        head = self._completed(run)
        if head is not None:
            end = max(self._original.ends[self._root(head)], at + 1)
            if end == at + 1 or (new and self._plausible(head, end, run)):
                return [end]
            if new:
                return [end, at + 1]
            # The run ends with nothing new: most likely the snippet just stops there. It may mean to remove what
            # follows only if that is little and no marker stands for it.
            left, shown = self._original.filled(at + 1, end), self._snippet.filled(head, run.end)
            goes_on = run.marked_after or head < run.start or len(left) >= len(shown)
            return [at + 1] if goes_on else [end, at + 1]
        found = self._replaced(new, self._original.filled(at + 1, high), last, at + 1, 1)
        if new and self._snippet.left_out and not run.marked_after and self._original.filled(found[0]):
            # If there are markers elsewhere but not at the end, the file may end with what is new.
            return [*found, len(self._original.lines)]
        return found

    def _replaced(self, new: list[int], near: list[int], match: tuple[int, int], edge: int, behind: int) -> list[int]:
        """New lines at the edge of a run replace similar lines next to it, or are inserted next to them."""
        shift = self._original.indents[match[1]] - self._snippet.indents[match[0]]
        found, certain = edge, True
        for at in near[: len(new)]:
            kinds = {self._likeness.alike(line, at) for line in new}
            if not kinds & {"equal", "same", "like"}:
                break
            if self._original.indents[at] < shift + min(self._snippet.indents[line] for line in new):
                break
            certain = certain and bool(kinds & {"equal", "same"})
            found = at + behind
        return [found] if certain or found == edge else [found, edge]

    def _root(self, head: int) -> int:
        at = self._pairs[head]
        return -1 if at is None else self._original.roots[at]

    def _completed(self, run: Run) -> int | None:
        """The snippet's head of the outermost block of the original that this run shows to its end."""
        last = run.end - 1
        for head in [*self._snippet.path(last), self._snippet.roots[last]]:
            at = self._root(head)
            shown = self._snippet.indents[head] >= run.outside and self._snippet.ends[head] > head + 1
            if at >= 0 and shown and not any(map(self._original.defines, range(at + 1, self._original.ends[at]))):
                return head
        return None

    def _plausible(self, head: int, end: int, run: Run) -> bool:
        """Whether a block's new text is more than the start of the old one."""
        size = len(self._original.filled(self._root(head), end))
        shown = len(self._snippet.filled(head, run.end))
        inside = any(line in self._snippet.left_out for line in range(head, run.end))
        return size <= _SHORT_BLOCK or inside or shown >= _LEAST_SHARE * size

    def _doubtful(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether lines missing between two lines of a run may have been left out by mistake."""
        dropped = self._original.filled(one[1] + 1, other[1])
        if len(dropped) < _LEAST_ALIKE:
            return False
        names = set(self._snippet.names.values())
        lost = sum(self._original.defines(at) and self._original.names[at] not in names for at in dropped)
        new = self._snippet.filled(one[0] + 1, other[0])
        if lost or self._snippet.closes(other[0]):
            return lost >= _LEAST_ALIKE or (lost > 0 and self._snippet.closes(other[0]))
        return len(dropped) > max(_DROPPED, 3 * len(new))

    def free(self, run: Run, low: int, high: int, *, first: bool, final: bool) -> list[Reading]:
        """The readings of a run without matched lines, likeliest first; empty if nothing shows its place.

        Args:
            run: of the snippet.
            low: the line after the place of the run before it.
            high: the line at which the place of the next run starts.
            first: nothing of the snippet precedes it, not even a marker.
            final: nothing follows it.
        """
        redefined = self._redefined(run)
        if redefined is not None:
            return [(redefined,)]
        filled = self._snippet.filled(run.start, run.end)
        container = self._container(run, low, high)
        if container is None:
            return []
        start, end, indent = container
        shift = indent - self._snippet.indents[run.start]
        if all(self._snippet.is_import(line) for line in filled):
            return self._imports(run, filled, start, end, shift)
        same = self._same(filled, start, end, shift)
        if same or any(max(self._likeness.weights[line].values(), default=0.0) >= _TELLING for line in filled):
            # Lines that the original has in another order have no place.
            return [(Piece(same[0], same[-1] + 1, run.start, run.end, shift),)] if same else []
        if not run.marked_before and not first:
            at = low
        elif not run.marked_after and not final:
            at = high
        elif first and start == 0:
            at = self._top()
        elif self._defines(run) or final:
            at = self._last(start, end)
        else:
            return []
        return [(self._inserted(run, at, shift),)]

    def _redefined(self, run: Run) -> Piece | None:
        """The reading of a run that redefines one definition of the original, in another order than there."""
        head = head_of(self._snippet, run.start, run.end)
        known = [] if head is None else self._likeness.known(head)
        if head is None or len(known) != 1:
            return None
        if self._snippet.ends[head] < run.end or run.outside > self._snippet.indents[head]:
            return None
        [at] = known
        start = self._original.top_of(at) if head > run.start else at
        shift = self._original.indents[at] - self._snippet.indents[head]
        return Piece(start, self._original.ends[at], run.start, run.end, shift)

    def _defines(self, run: Run) -> bool:
        """Whether a run consists of definitions only."""
        snippet, indent = self._snippet, self._snippet.indents[run.start]
        return all(
            snippet.indents[at] > indent or snippet.roots[at] != at or snippet.is_above(at) or snippet.defines(at)
            for at in snippet.filled(run.start, run.end)
        )

    def _container(self, run: Run, low: int, high: int) -> tuple[int, int, int] | None:
        """The range of lines in which a run may be placed, and their indentation."""
        path, original = self._snippet.path(run.start), self._original
        if not path:
            return None if self._snippet.indents[run.start] else (low, high, 0)
        head = self._root(path[-1])
        if head < 0:
            return None
        end = original.ends[head]
        inner = [at for at in original.filled(head + 1, end) if original.roots[at] != head]
        while end > head + 1 and original.roots[end - 1] == head:
            end -= 1
        indent = min((original.indents[at] for at in inner), default=original.indents[head] + _TAB)
        start = max(head + 1, low)
        return start, max(start, min(end, high)), indent

    def _imports(self, run: Run, filled: list[int], start: int, end: int, shift: int) -> list[Reading]:
        """Each import replaces the one of the same module, or goes after all of them."""
        original = self._original
        top = [at for at in original.filled(start, end) if original.is_import(at) and not original.indents[at]]
        behind = original.ends[original.roots[top[-1]]] if top else start or self._top()
        pieces: list[Piece] = []
        certain = True
        for line in filled:
            target = self._snippet.target(line)
            same = [at for at in original.filled(start, end) if target and original.target(at) == target]
            if len(same) == 1 and original.ends[same[0]] == same[0] + 1:
                certain = certain and self._likeness.alike(line, same[0]) == "same"
                pieces.append(Piece(same[0], same[0] + 1, line, line + 1, shift))
            else:
                pieces.append(Piece(behind, behind, line, line + 1, shift))
        return [tuple(pieces)] if certain else [tuple(pieces), (self._inserted(run, behind, shift),)]

    def _top(self) -> int:
        """The line after what has to come first in a file."""
        original = self._original
        at = 0
        while at < len(original.lines) and (
            original.blank(at) or original.is_comment(at) or original.keys[at].startswith(_TOP)
        ):
            quotes = original.keys[at][:3]
            if quotes in {'"""', "'''"} and original.keys[at].count(quotes) == 1:
                at = next((end for end in range(at + 1, len(original.lines)) if quotes in original.lines[end]), at)
            at += 1
        return original.last_filled(at)

    def _same(self, filled: list[int], start: int, end: int, shift: int) -> list[int]:
        """Consecutive lines of the original that assign the same things."""

        def fits(line: int, at: int) -> bool:
            indent = self._snippet.indents[line] + shift
            return self._original.indents[at] == indent and self._likeness.alike(line, at) in {"equal", "same"}

        spans = [range(at, at + len(filled)) for at in range(start, end - len(filled) + 1)]
        found = [span for span in spans if all(map(fits, filled, span))]
        return [*found[0]] if len(found) == 1 else []

    def _last(self, start: int, end: int) -> int:
        """The line after everything, but before the code at the end that runs a program."""
        main = next((at for at in range(start, end) if self._original.lines[at].startswith(_MAIN)), end)
        return max(start, self._original.last_filled(main))

    def _inserted(self, run: Run, at: int, shift: int) -> Piece:
        original = self._original
        apart = max(run.blank_before, run.blank_after, self._distance(run, shift)) if self._defines(run) else 0
        opens = at > 0 and original.ends[original.roots[at - 1]] > at and not original.blank(at - 1)
        closes = at < len(original.lines) and original.closes(at)
        before, after = 0 if opens else apart or run.blank_before, 0 if closes else max(apart, run.blank_after)
        return Piece(at, at, run.start, run.end, shift, before, after)

    def _distance(self, run: Run, shift: int) -> int:
        """How many empty lines the original usually has before definitions with this indentation."""
        original = self._original
        indent = self._snippet.indents[run.start] + shift
        found: list[int] = []
        for at in original.names:
            if original.defines(at) and original.indents[at] == indent:
                top, end = original.top_of(at), original.ends[at]
                above = original.last_filled(top)
                below = next((line for line in range(end, len(original.lines)) if not original.blank(line)), None)
                found += [top - above] if above else []
                found += [below - end] if below is not None and original.indents[below] == indent else []
        return max(set(found), key=lambda size: (found.count(size), size)) if found else 1
