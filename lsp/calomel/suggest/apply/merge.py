"""Merges a snippet with markers for unchanged code into its file: without a model, and deterministically.

A snippet's blocks are matched with those of the file by what identifies them: the name of a definition, or the text of
a line. Such an anchor must be unique in its block. What is between two anchors replaces what is between them in the
file; what is between an anchor and a marker is added there, or replaces the neighbour that it is a new version of.
The result must parse as well as the file, and define nothing twice. Anything else is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

from rapidfuzz import fuzz

from calomel.suggest.apply.snippet import read_snippet
from calomel.suggest.apply.source import Source, grammar_for, read_source
from calomel.suggest.edit import line_end_of, with_line_ends_of

NO_PLACE: Final = "The update does not match a place in the original code. Here is the original code, unchanged."
TOO_LARGE: Final = "The original code and the update are too long to compare. Here is the original code, unchanged."
BREAKS: Final = (
    "The update would make syntax errors that the original code does not have; the original code is returned."
)
UNDECIDED: Final = "The update fits more than one place in the original code; the original code is returned."


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge.

    Attributes:
        text: the merged file; the original if the merge is not certain.
        warning: why it is not certain; quotes nothing.
    """

    text: str
    warning: str | None = None


_MOST_LINES: Final = 50_000
# Characters; nobody writes such lines by hand, and processing one would block all other requests.
_LONGEST_LINE: Final = 100_000
# A snippet with at least this share of the file is the whole file.
_WHOLE: Final = 0.5
_WHOLE_WITHOUT_DEFINITIONS: Final = 0.7
# Lines with at least this similarity, in percent, are one line before and after a change; those with less than the
# other are two lines. In between, it is unknown.
_ALIKE: Final = 75.0
_UNLIKE: Final = 50.0
_COMPARED: Final = 500
# A block of at most this many lines may become anything; of a longer one, a share of its lines must remain.
_SHORT_BLOCK: Final = 8
_LEAST_SHARE: Final = 0.34
_BOM: Final = "\ufeff"


def merge(original: str, snippet: str) -> Merged:
    """Merge `snippet`, which has markers for what stays, into `original`, the whole file."""
    text, update = original.removeprefix(_BOM), snippet.removeprefix(_BOM)
    if not update.strip():
        return Merged(original, NO_PLACE)
    if _is_too_large(text) or _is_too_large(update):
        return Merged(original, TOO_LARGE)
    try:
        merged = Merged(_Merge(text, update).merged())
    except _RefusedError as error:
        merged = Merged(text, str(error))
    return replace(merged, text=original[: len(original) - len(text)] + merged.text)


def _is_too_large(text: str) -> bool:
    lines = text.split("\n")
    return len(lines) > _MOST_LINES or any(len(line) > _LONGEST_LINE for line in lines)


class _RefusedError(Exception):
    """The snippet cannot be merged; the message says why."""


class _Item(NamedTuple):
    """A line of a block, or a block in it, with the comments and decorators above it.

    Attributes:
        start, end: its lines, `end` excluded.
        head: the line that introduces it.
    """

    start: int
    end: int
    head: int


class _Replacement(NamedTuple):
    """Lines `start` to `end` of the file become these lines."""

    start: int
    end: int
    lines: Sequence[str]


class _Merge:
    def __init__(self, text: str, update: str) -> None:
        self._text = text
        self._grammar = grammar_for(text if text.strip() else update)
        self._file = read_source(text, self._grammar)
        self._snippet, runs = read_snippet(update, self._file, self._grammar)
        # Without markers, every top-level run is by itself.
        self._apart = {run.start for run in runs} if not self._snippet.left_out else set()
        self._pieces: list[_Replacement] = []

    def merged(self) -> str:
        """The merged text. Raises _RefusedError."""
        if not self._snippet.left_out and self._is_whole():
            text = _as_file(self._text, "".join(self._snippet.lines))
            # A file of comments only has no language to check by.
            if not all(map(self._file.is_comment, self._file.filled())):
                self._check(text)
            return text
        shared = set(filter(None, self._snippet.keys)) & set(self._file.keys)
        if shared and not self._snippet.left_out and self._snippet.errors > self._file.errors:
            raise _RefusedError(BREAKS)
        self._block(-1, -1, 0, len(self._file.lines))
        text = self._spliced()
        self._check(text)
        return text

    def _is_whole(self) -> bool:
        """Whether a snippet without markers is the whole file."""
        file, snippet = self._file, self._snippet
        ours, theirs = (Counter(each.keys[at] for at in each.filled()) for each in (snippet, file))
        if not theirs:
            return True
        share = (ours & theirs).total() / theirs.total()
        names = {name for at, name in file.names.items() if file.defines(at)}
        return share >= (_WHOLE if names else _WHOLE_WITHOUT_DEFINITIONS) and names <= set(snippet.names.values())

    def _check(self, text: str) -> None:
        """Raise _RefusedError if a text parses worse than the file, or defines twice what was defined once."""
        found = read_source(text, self._grammar)
        if found.errors > self._file.errors:
            raise _RefusedError(BREAKS)
        allowed = _definitions(self._file) | _definitions(self._snippet)
        if any(count > max(1, allowed[key]) for key, count in _definitions(found).items()):
            raise _RefusedError(NO_PLACE)

    def _block(self, ours: int, theirs: int, low: int, high: int) -> None:
        """Merge the block of the snippet's line `ours` into that of the file's line `theirs`, its lines `low:high`."""
        there = _items(self._file, theirs)
        runs = self._runs(_items(self._snippet, ours), ours)
        anchored = self._anchored([each for run, _, _ in runs for each in run], there)
        place = 0
        for number, (run, marked_before, marked_after) in enumerate(runs):
            anchors = [(index, anchored[each]) for index, each in enumerate(run) if each in anchored]
            if not anchors:
                first, last = number == 0 and not marked_before, number == len(runs) - 1 and not marked_after
                self._without_anchor(run, there, low, high, first=first and marked_after, last=last and marked_before)
                continue
            places = [found for _, found in anchors]
            if places != sorted(places) or places[0] < place:
                raise _RefusedError(NO_PLACE)
            # At the top, a snippet may begin and end anywhere; a block is shown from its beginning to its end.
            skips = (places[0] > place and not marked_before) or (places[-1] + 1 < len(there) and not marked_after)
            if skips and ours >= 0:
                raise _RefusedError(UNDECIDED)
            self._run(run, anchors, there, place)
            place = places[-1] + 1

    def _run(
        self, run: Sequence[_Item], anchors: Sequence[tuple[int, int]], there: Sequence[_Item], place: int
    ) -> None:
        """Put a run into its place: its anchors, what is between them, and what is before and after."""
        lines = self._snippet.lines
        for index, found in anchors:
            self._item(run[index], there[found])
        for (index, found), (following, after) in pairwise(anchors):
            between = lines[run[index].end : run[following].start]
            self._pieces.append(_Replacement(there[found].end, there[after].start, between))
        (first, top), (last, bottom) = anchors[0], anchors[-1]
        if first:
            is_version = top > place and self._is_version(run[first - 1], there[top - 1])
            start = there[top - 1].start if is_version else there[top].start
            self._pieces.append(_Replacement(start, there[top].start, lines[run[0].start : run[first].start]))
        if last + 1 < len(run):
            is_version = bottom + 1 < len(there) and self._is_version(run[last + 1], there[bottom + 1])
            end = there[bottom + 1].end if is_version else there[bottom].end
            self._pieces.append(_Replacement(there[bottom].end, end, lines[run[last].end : run[-1].end]))

    def _anchored(self, here: Sequence[_Item], there: Sequence[_Item]) -> dict[_Item, int]:
        """The place in the file's block of each item of the snippet that is there exactly once."""
        places = {each: at for at, each in enumerate(there)}
        found: dict[_Item, int] = {}
        for key in (Source.identity, Source.target):
            mine, theirs = _by_key(self._snippet, here, key), _by_key(self._file, there, key)
            for name, items in mine.items():
                same = theirs.get(name, ())
                if len(items) == len(same) == 1 and items[0] not in found and same[0] in places:
                    found[items[0]] = places.pop(same[0])
        return found

    def _without_anchor(
        self, run: Sequence[_Item], there: Sequence[_Item], low: int, high: int, *, first: bool, last: bool
    ) -> None:
        """A run of new lines goes to the beginning or the end of the block, if it is there in the snippet."""
        lines = self._snippet.lines[run[0].start : run[-1].end]
        end = there[-1].end if there else high
        if first:
            self._pieces.append(_Replacement(low, low, [*lines, *["\n"] * _blank_after(self._snippet, run[-1].end)]))
        elif last:
            apart = _blank_before(self._snippet, run[0].start)
            if len(there) > 1 and self._snippet.defines(run[0].head):
                apart = max(apart, there[-1].start - there[-2].end)
            self._pieces.append(_Replacement(end, end, [*["\n"] * apart, *lines]))
        else:
            raise _RefusedError(NO_PLACE)

    def _item(self, mine: _Item, theirs: _Item) -> None:
        """An item of the snippet takes the place of the file's; its block is merged if markers are in it."""
        # Comments and decorators that the snippet does not show stay.
        start = theirs.head if mine.start == mine.head else theirs.start
        lines = self._snippet.lines
        if mine.end == mine.head + 1 in self._snippet.left_out and self._file.ends[theirs.head] > theirs.head + 1:
            # A head with a marker below it that is not indented: the block stays.
            self._pieces.append(_Replacement(start, _body(self._file, theirs)[0], lines[mine.start : mine.end]))
            return
        if not any(mine.head < at < mine.end for at in self._snippet.left_out):
            if (mine.end - mine.head) < _LEAST_SHARE * (theirs.end - theirs.head) > _LEAST_SHARE * _SHORT_BLOCK:
                raise _RefusedError(UNDECIDED)
            self._pieces.append(_Replacement(start, theirs.end, lines[mine.start : mine.end]))
            return
        (ours, body), (old, old_body) = _body(self._snippet, mine), _body(self._file, theirs)
        self._pieces.append(_Replacement(start, old, lines[mine.start : ours]))
        self._block(mine.head, theirs.head, old, old_body)
        self._pieces.append(_Replacement(old_body, theirs.end, lines[body : mine.end]))

    def _is_version(self, mine: _Item, theirs: _Item) -> bool:
        """Whether an item of the snippet is a new version of one of the file that has another text.

        Raises _RefusedError if that is unknown.
        """
        if self._snippet.defines(mine.head) or self._file.defines(theirs.head):
            return False
        one, other = self._snippet.keys[mine.head][:_COMPARED], self._file.keys[theirs.head][:_COMPARED]
        likeness = fuzz.ratio(one, other)
        if _UNLIKE <= likeness < _ALIKE:
            raise _RefusedError(UNDECIDED)
        return likeness >= _ALIKE

    def _runs(self, items: Sequence[_Item], head: int) -> list[tuple[list[_Item], bool, bool]]:
        """The items between markers, with whether a marker is before and after each run."""
        snippet = self._snippet
        if not snippet.left_out:
            starts = [at for at, each in enumerate(items) if at == 0 or each.start in self._apart]
            spans = zip(starts, [*starts[1:], len(items)], strict=True)
            return [([*items[a:b]], True, True) for a, b in spans]
        end = _end(snippet, head) if head >= 0 else len(snippet.lines)
        inner = {at for each in items for at in range(each.start, each.end)}
        marks = [at for at in sorted(snippet.left_out) if head < at < end and at not in inner]
        runs: list[tuple[list[_Item], bool, bool]] = []
        for low, high in zip([-1, *marks], [*marks, len(snippet.lines)], strict=True):
            run = [each for each in items if low < each.start < high]
            if run:
                runs.append((run, low in snippet.left_out, high in snippet.left_out))
        return runs

    def _spliced(self) -> str:
        """The file with all pieces in their places, with its own line ends. Raises _RefusedError if two overlap."""
        text, end = self._text, line_end_of(self._text)
        merged: list[str] = []
        at = 0
        for piece in sorted(self._pieces, key=lambda piece: (piece.start, piece.end)):
            if piece.start < at:
                raise _RefusedError(UNDECIDED)
            merged += self._file.lines[at : piece.start]
            if merged and piece.lines and not merged[-1].endswith(("\n", "\r")):
                merged[-1] += end
            merged += [line.rstrip("\r\n") + end for line in piece.lines]
            at = piece.end
        result = "".join([*merged, *self._file.lines[at:]])
        return result if not text or text.endswith(("\n", "\r")) else result.removesuffix(end)


def _items(source: Source, head: int) -> list[_Item]:
    """What is directly in the block of a line, or at the top for -1."""
    found: list[_Item] = []
    start: int | None = None
    filled = source.filled()
    for at, following in zip(filled, [*filled[1:], -1], strict=False):
        if source.roots[at] != at or source.parents[at] != head:
            continue
        # Comments and decorators belong to the definition below them.
        if source.is_above(at) and source.ends[at] == at + 1:
            start = at if start is None else start
            if following == at + 1 and source.parents[following] == head:
                continue
        begin, start = at if start is None else start, None
        found.append(_Item(begin, max(_end(source, at), source.last_filled(source.ends[at])), at))
    return found


def _end(source: Source, head: int) -> int:
    """The line after the block of a line, with the markers at its end."""
    end = source.ends[head]
    for at in range(end, len(source.lines)):
        if at in source.left_out and source.indents[at] > source.indents[head]:
            end = at + 1
        elif not source.blank(at) or at in source.left_out:
            break
    return end


def _by_key(source: Source, items: Sequence[_Item], key: Callable[[Source, int], str | None]) -> dict[str, list[_Item]]:
    """The items of a block by what identifies them."""
    found: dict[str, list[_Item]] = {}
    for each in items:
        name = key(source, each.head)
        if name is not None:
            found.setdefault(name, []).append(each)
    return found


def _body(source: Source, item: _Item) -> tuple[int, int]:
    """The lines of the block of an item. Raises _RefusedError for one of several parts, as `if` and `else`."""
    closers = [at for at in source.filled(item.head + 1, item.end) if source.roots[at] == item.head]
    if not closers:
        return item.head + 1, item.end
    if len(closers) > 1 or closers[0] != item.end - 1:
        # The last line of a head of several lines introduces the block, too.
        inner = [at for at in closers if at != item.end - 1]
        if any(not source.keys[at].startswith((")", "]")) for at in inner) or closers[-1] != item.end - 1:
            raise _RefusedError(NO_PLACE)
        return inner[-1] + 1, closers[-1]
    return item.head + 1, closers[0]


def _blank_after(source: Source, end: int) -> int:
    return next((at - end for at in range(end, len(source.lines)) if source.lines[at].strip()), 0)


def _blank_before(source: Source, start: int) -> int:
    return next((start - at - 1 for at in range(start - 1, -1, -1) if source.lines[at].strip()), 0)


def _definitions(source: Source) -> Counter[tuple[str, ...]]:
    """How often each definition occurs, by the enclosing definitions and its name."""
    found: Counter[tuple[str, ...]] = Counter()
    for line, name in source.names.items():
        if source.defines(line):
            found[*(source.identity(head) for head in source.path(line) if head in source.names), name] += 1
    return found


def _as_file(original: str, update: str) -> str:
    """A new whole file with the line ends of the old one, also at its end."""
    text = with_line_ends_of(update, original) if original else update
    if original.strip() and not original.endswith(("\n", "\r")):
        return text.rstrip("\r\n")
    if original.strip() and not text.endswith(("\n", "\r")):
        return text + with_line_ends_of("\n", original)
    return text
