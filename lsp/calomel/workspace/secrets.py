"""Finds what looks like a secret in source code, fast enough for every keystroke.

Most of a text is the same as a moment ago, so that what is known about a line is kept; only new lines are looked at,
together, and blocks that go over lines are put together from what their lines may be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from calomel.workspace.secret_blocks import SHORTEST_MARKED, Mark, find_blocks, mark
from calomel.workspace.secret_shapes import find_phrases, find_shapes
from calomel.workspace.secret_values import find_values

Span = tuple[int, int, str]
# What is known about a line: its own secrets, and what it may be of a block.
_Known = tuple[tuple[Span, ...], Mark | None]

_CLEAN: Final[_Known] = ((), None)
_MASK: Final = "*"
# About ten large files; a line is kept once however often it occurs.
_KEPT_LINES: Final = 40_000
# A line beyond this is no source code, and would fill the memory.
_LONGEST_KEPT: Final = 2_000
# Looked at in one go: a search in more would hold up the other threads for too long.
_PIECE: Final = 65_536
# No secret is longer, with what announces it.
_OVERLAP: Final = 6_144
# The same text is asked for several times between two keystrokes.
_KEPT_TEXTS: Final = 8
_KEPT_CHARACTERS: Final = 2_000_000


class SecretFinder:
    """Finds secrets, and remembers what it has seen. May be used from several threads."""

    def __init__(self) -> None:
        self._lines: dict[str, _Known] = {}
        self._texts: OrderedDict[str, tuple[tuple[Span, ...], str]] = OrderedDict()

    def spans(self, text: str) -> tuple[Span, ...]:
        """The secrets in `text` as (start, end, kind), ascending and apart; none goes over a line end."""
        return self._answer(text)[0]

    def mask(self, text: str) -> str:
        """The text with every character of a secret replaced; the very same object when there is none."""
        return self._answer(text)[1]

    def _answer(self, text: str) -> tuple[tuple[Span, ...], str]:
        kept = self._texts.get(text)
        if kept is not None:
            return kept
        spans = self._find(text)
        answer = spans, masked(text, spans)
        if len(text) <= _KEPT_CHARACTERS // _KEPT_TEXTS:
            self._texts[text] = answer
            while len(self._texts) > _KEPT_TEXTS:
                try:
                    self._texts.popitem(last=False)
                except KeyError:  # another thread was faster
                    break
        return answer

    def _find(self, text: str) -> tuple[Span, ...]:
        lines = (text.replace("\r", "\n") if "\r" in text else text).split("\n")
        known = self._known(lines)
        if known is None:
            return ()
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        found = [
            (starts[number] + start, starts[number] + end, kind)
            for number, (secrets, _) in known
            for start, end, kind in secrets
        ]
        marks = [(number, at) for number, (_, at) in known if at is not None]
        if marks:
            found += [
                (starts[n] + start, starts[n] + end, "private_key") for n, start, end in find_blocks(lines, marks)
            ]
        return joined(found)

    def _known(self, lines: list[str]) -> list[tuple[int, _Known]] | None:
        """What is known about those lines that are not clean; None when all of them are."""
        cache = self._lines
        each = list(map(cache.get, lines))
        if each.count(_CLEAN) == len(each):
            return None
        notable = [(number, known) for number, known in enumerate(each) if known is not _CLEAN]
        learned = learn({lines[number] for number, known in notable if known is None})
        if len(cache) + len(learned) > _KEPT_LINES:
            cache.clear()
        cache.update((line, known) for line, known in learned.items() if len(line) <= _LONGEST_KEPT)
        whole = ((number, learned[lines[number]] if known is None else known) for number, known in notable)
        return [(number, known) for number, known in whole if known is not _CLEAN] or None


_FINDER: Final = SecretFinder()


def spans(text: str) -> list[Span]:
    """The secrets in `text`, ascending and apart; what is known about its lines is kept for the next time."""
    return list(_FINDER.spans(text))


def mask(text: str) -> str:
    """The text with every character of a secret replaced by `*`, line ends kept; the very same object without any."""
    return _FINDER.mask(text)


def masked(text: str, spans: tuple[Span, ...]) -> str:
    """The text with these spans replaced by asterisks."""
    if not spans:
        return text
    parts = []
    at = 0
    for start, end, _ in spans:
        parts += [text[at:start], _MASK * (end - start)]
        at = end
    return "".join([*parts, text[at:]])


def joined(found: list[Span]) -> tuple[Span, ...]:
    """Spans in order, those that overlap or touch made one; the first kind names it."""
    spans: list[Span] = []
    for start, end, kind in sorted(found):
        if spans and start <= spans[-1][1]:
            if end > spans[-1][1]:
                spans[-1] = (spans[-1][0], end, spans[-1][2])
        elif end > start:
            spans.append((start, end, kind))
    return tuple(spans)


def learn(lines: Iterable[str]) -> dict[str, _Known]:
    """What is to be known about lines, each seen alone."""
    known: dict[str, _Known] = {}
    batch: list[str] = []
    size = 0
    for line in lines:
        if len(line) > _PIECE:
            known[line] = _learn_long(line)
            continue
        if size + len(line) > _PIECE:
            known.update(_learn(batch))
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    return known | _learn(batch)


def _learn_long(line: str) -> _Known:
    """As `learn`, for one line in pieces: an edge may cut a secret, which the next piece has whole."""
    found: list[Span] = []
    for start in range(0, len(line), _PIECE - _OVERLAP):
        piece = line[start : start + _PIECE]
        own, _ = _learn([piece])[piece]
        found += [(start + first, start + end, kind) for first, end, kind in own]
    return joined(found), mark(line)


def _learn(lines: list[str]) -> dict[str, _Known]:
    known = dict.fromkeys(lines, _CLEAN)
    text = "\n".join(lines)
    lower = text.replace("\u0130", "I").lower()  # the only letter whose lower case has another length
    found = [*find_shapes(text), *find_phrases(text, lower), *find_values(text, lower)]
    own: dict[int, list[Span]] = {}
    if found:
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        for start, end, kind in found:
            number = bisect_right(starts, start) - 1
            own.setdefault(number, []).append((start - starts[number], end - starts[number], kind))
    for number, spans in own.items():
        known[lines[number]] = (joined(spans), None)
    for line in lines:
        if len(line) >= SHORTEST_MARKED and (at := mark(line)):
            known[line] = (known[line][0], at)
    return known
