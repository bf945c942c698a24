"""Where a run of the snippet goes none of whose lines are the original's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calomel.suggest.apply.alignment import Likeness
from calomel.suggest.apply.anchored import Piece, Reading
from calomel.suggest.apply.snippet import Run
from calomel.suggest.apply.source import Source

# A line that is worth so much as a match is no mere bracket or `return`.
_TELLING: Final = 1.0
# Longer runs that are all new are no lines after a change.
_FEW: Final = 8
_MAIN: Final = "if __name__ =="


class Free:
    """Reads runs without lines of the original.

    Args:
        snippet: what should become of a file.
        original: the file.
        likeness: of both.
        pairs: for each line of the snippet, the original's line that it is.
    """

    def __init__(self, snippet: Source, original: Source, likeness: Likeness, pairs: Sequence[int | None]) -> None:
        self._snippet = snippet
        self._original = original
        self._likeness = likeness
        self._pairs = pairs

    def readings(self, run: Run, low: int, high: int, *, first: bool, final: bool) -> list[Reading]:
        """What a run may mean, likeliest first; none where nothing tells.

        Args:
            run: of the snippet.
            low: the line behind the place of the run before it.
            high: the line at which the place of the run behind it begins.
            first: nothing of the snippet stands before it, not even a marker.
            final: nothing stands behind it.
        """
        redefined = self._redefined(run)
        if redefined is not None:
            return [redefined]
        filled = self._snippet.filled(run.start, run.end)
        container = self._container(run, low, high)
        if container is None:
            return []
        start, end, indent = container
        shift = indent - self._snippet.indents[run.start]
        if all(self._snippet.is_import(line) for line in filled):
            return self._imports(run, filled, start, end, shift)
        replaced = self._replaced(run, filled, start, end, shift)
        if replaced or any(self._known_elsewhere(line) for line in filled):
            # What the original has in another order than the snippet has no place.
            return replaced
        at = low if not run.marked_before and not first else high if not run.marked_after and not final else None
        if at is None:
            at = self._new(run, start, end, first=first, final=final)
        return [] if at is None else [self._inserted(run, at, shift)]

    def _new(self, run: Run, start: int, end: int, *, first: bool, final: bool) -> int | None:
        """Before which line of the original a run between markers is put; None where nothing tells."""
        if first and start == 0:
            return self._top()
        if self._defines(run):
            return self._among(run, start, end)
        return self._last(start, end) if final or self._ends_container(run) else None

    def _redefined(self, run: Run) -> Reading | None:
        """A run that is one definition of the original in another order than there."""
        head = self._head(run)
        if head is None or self._snippet.ends[head] < run.end or run.outside > self._snippet.indents[head]:
            return None
        known = self._likeness.known(head)
        if len(known) != 1:
            return None
        [at] = known
        start = at
        if head > run.start:
            while start > 0 and (self._original.is_decoration(start - 1) or self._original.is_comment(start - 1)):
                start -= 1
        shift = self._original.indents[at] - self._snippet.indents[head]
        return (Piece(start, self._original.ends[at], run.start, run.end, shift),)

    def _head(self, run: Run) -> int | None:
        """The line that introduces the definition with which a run begins."""
        at = run.start
        while at < run.end and (
            self._snippet.blank(at) or self._snippet.is_decoration(at) or self._snippet.is_comment(at)
        ):
            at = max(at + 1, self._snippet.ends[at])
        return at if at < run.end and at in self._snippet.names else None

    def _defines(self, run: Run) -> bool:
        """Whether a run is definitions and nothing else."""
        indent = self._snippet.indents[run.start]
        for at in self._snippet.filled(run.start, run.end):
            if self._snippet.indents[at] > indent or self._snippet.roots[at] != at:
                continue
            if self._snippet.is_decoration(at) or self._snippet.is_comment(at):
                continue
            if at not in self._snippet.names or self._snippet.ends[at] == at + 1:
                return False
        return True

    def _container(self, run: Run, low: int, high: int) -> tuple[int, int, int] | None:
        """The lines that a run may stand among, and how far they are indented."""
        path = self._snippet.path(run.start)
        indent = self._snippet.indents[run.start]
        if path:
            at = self._pairs[path[-1]]
            return None if at is None else self._inside(self._original.roots[at], low, high)
        if not indent:
            return low, high, 0
        for line in (low - 1, high):
            if not 0 <= line < len(self._original.lines) or self._original.blank(line):
                continue
            for head in [*self._original.path(line), self._original.roots[line]]:
                if self._original.indents[head] == indent:
                    parent = self._original.parents[head]
                    return None if parent < 0 else self._inside(self._original.roots[parent], low, high)
        return None

    def _inside(self, head: int, low: int, high: int) -> tuple[int, int, int]:
        end = self._original.ends[head]
        inner = [at for at in self._original.filled(head + 1, end) if self._original.roots[at] != head]
        while end > head + 1 and self._original.roots[end - 1] == head and end - 1 != head:
            end -= 1
        indent = min((self._original.indents[at] for at in inner), default=self._original.indents[head] + 4)
        start = max(head + 1, low)
        return start, max(start, min(end, high)), indent

    def _imports(self, run: Run, filled: list[int], start: int, end: int, shift: int) -> list[Reading]:
        """Each import replaces the one of the same module, or goes behind all of them."""
        pieces: list[Piece] = []
        doubtful = False
        for line in filled:
            target = self._snippet.target(line)
            same = [at for at in self._original.filled(start, end) if target and self._original.target(at) == target]
            if len(same) == 1 and self._original.ends[same[0]] == same[0] + 1:
                doubtful = doubtful or self._likeness.alike(line, same[0]) != "same"
                pieces.append(Piece(same[0], same[0] + 1, line, line + 1, shift))
            else:
                at = self._behind_imports(start, end)
                pieces.append(Piece(at, at, line, line + 1, shift))
        added = self._inserted(run, self._behind_imports(start, end), shift)
        return [tuple(pieces), added] if doubtful else [tuple(pieces)]

    def _behind_imports(self, start: int, end: int) -> int:
        imports = [at for at in self._original.filled(start, end) if self._original.is_import(at)]
        top = [at for at in imports if self._original.indents[at] == 0]
        if not top:
            return self._top() if start == 0 else start
        return self._original.ends[self._original.roots[top[-1]]]

    def _top(self) -> int:
        """Behind what has to come first in a file."""
        original = self._original
        at = 0
        while at < len(original.lines):
            key = original.keys[at]
            if original.blank(at) or original.is_comment(at) or key.startswith(("package ", "'use ", '"use ', "<?")):
                if key.startswith(('"""', "'''")) and key.count(key[:3]) == 1:
                    closing = (end for end in range(at + 1, len(original.lines)) if key[:3] in original.lines[end])
                    at = next(closing, at)
                at += 1
            elif key.startswith("from __future__"):
                at += 1
            else:
                break
        return original.last_filled(at)

    def _replaced(self, run: Run, filled: list[int], start: int, end: int, shift: int) -> list[Reading]:
        """Lines that give a value to what has one in the original, or look like one line of it."""
        if len(filled) > _FEW:
            return []
        near = self._original.filled(start, end)
        found: list[int] = []
        certain = True
        for line in filled:
            kinds = [(at, self._likeness.alike(line, at)) for at in near]
            same = [
                at
                for at, kind in kinds
                if kind in {"equal", "same"} and self._original.indents[at] == self._own(line, shift)
            ]
            like = [at for at, kind in kinds if kind == "like"]
            if len(same) == 1:
                found.append(same[0])
            elif len(like) == 1 and not same:
                found.append(like[0])
                certain = False
            else:
                return []
        if found != list(range(found[0], found[0] + len(found))):
            return []
        readings: list[Reading] = [(Piece(found[0], found[-1] + 1, run.start, run.end, shift),)]
        return readings if certain else [*readings, ()]

    def _known_elsewhere(self, line: int) -> bool:
        return max(self._likeness.weights(line).values(), default=0.0) >= _TELLING

    def _end(self) -> int:
        return len(self._original.lines)

    def _own(self, line: int, shift: int) -> int:
        return self._snippet.indents[line] + shift

    def _among(self, run: Run, start: int, end: int) -> int:
        """Behind the definition that the snippet has before it, else before the one behind it, else at the end."""
        parent = self._snippet.parents[run.start]
        siblings = [line for line in self._snippet.names if self._snippet.parents[line] == parent]
        for line in reversed([line for line in siblings if line < run.start]):
            at = self._pairs[line]
            if at is not None and start <= self._original.ends[at] <= end:
                return self._original.ends[at]
        for line in [line for line in siblings if line >= run.end]:
            at = self._pairs[line]
            if at is not None and start <= at <= end:
                return self._above(at, start)
        return self._last(start, end)

    def _above(self, at: int, start: int) -> int:
        """Before a definition with what is written above it."""
        while at > start and (self._original.is_decoration(at - 1) or self._original.is_comment(at - 1)):
            at -= 1
        return at

    def _last(self, start: int, end: int) -> int:
        """Behind everything, but before what runs a program at its end."""
        for at in range(start, end):
            if self._original.keys[at].startswith(_MAIN) and not self._original.indents[at]:
                return max(start, self._original.last_filled(at))
        return max(start, self._original.last_filled(end))

    def _ends_container(self, run: Run) -> bool:
        """Whether the block that a run is in ends behind it, without a marker between."""
        behind = run.end
        while behind < len(self._snippet.lines) and not self._snippet.keys[behind]:
            if behind in self._snippet.left_out:
                return False
            behind += 1
        return behind < len(self._snippet.lines)

    def _inserted(self, run: Run, at: int, shift: int) -> Reading:
        apart = max(run.blank_before, run.blank_after, self._distance(run, shift)) if self._defines(run) else 0
        before = apart or run.blank_before
        original = self._original
        opens = at > 0 and original.ends[original.roots[at - 1]] > at and not original.blank(at - 1)
        closes = at < len(original.lines) and original.closes(at)
        return (
            Piece(
                at,
                at,
                run.start,
                run.end,
                shift,
                apart_before=0 if opens else before,
                apart_after=0 if closes else max(apart, run.blank_after),
            ),
        )

    def _distance(self, run: Run, shift: int) -> int:
        """How many empty lines the original has before most definitions that are indented as much."""
        indent = self._own(run.start, shift)
        found: list[int] = []
        for at in self._original.names:
            if self._original.indents[at] == indent and self._original.ends[at] > at + 1:
                above, behind = self._above(at, 0), self._original.ends[at]
                filled = self._original.last_filled(above)
                if filled:
                    found.append(above - filled)
                following = next((line for line in range(behind, self._end()) if not self._original.blank(line)), None)
                if following is not None and self._original.indents[following] == indent:
                    found.append(following - behind)
        return max(set(found), key=lambda size: (found.count(size), size)) if found else 1
