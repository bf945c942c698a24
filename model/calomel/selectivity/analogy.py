"""The line that similar blocks have at the cursor's place, with the numbers and names of the cursor's own block.

Blocks that repeat one another differ by what their headers name: `def handler_0049` and `def handler_0050`,
`test_add_user` and `test_add_order`. The text of one is the text of the other with these words exchanged, in any case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final

from calomel.code.lines import LINE_END, head_of
from calomel.selectivity.proposal import Proposal

# Characters on either side of the cursor: about a hundred lines.
_WINDOW: Final = 6_000
_SIBLINGS: Final = 6
# Longer lines are data.
_LONGEST_LINE: Final = 240
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|\s+|.")
_WORD: Final = re.compile(r"\d+|[A-Za-z]+")
_PHRASE: Final = re.compile(r"[A-Za-z]+(?:[_-][A-Za-z]+)*")
# Two numbers in a row continue by one; more, by their difference.
_SEQUENCE: Final = 3

# A word of a line at [start, end), and its replacement.
_Slot = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Expected:
    """What the cursor's line is expected to be.

    Attributes:
        line: all of it, or the known beginning.
        slots: where it has a word of the cursor's own block, and which other words its neighbours have there.
        votes: neighbours that agree.
        siblings: all neighbours that were considered.
    """

    line: str
    slots: tuple[tuple[int, int, frozenset[str]], ...]
    votes: int
    siblings: int

    def names_neighbour(self, line: str) -> bool:
        """Whether `line` equals this one but for a word of another block: any other number, or a neighbour's name."""
        if self.votes == 1 < self.siblings:
            return False
        at = _alike(self.line, line)
        for start, end, others in self.slots:
            word = _WORD.match(line, start) if start <= at <= end else None
            if word is not None and word[0] != self.line[start:end]:
                return word[0].isdecimal() or any(line.startswith(other, start) for other in others)
        return False


def names_neighbour(proposal: Proposal) -> bool:
    """Whether a text at the cursor has a neighbour's number or name where the common pattern asks for its own."""
    if proposal.kind != "fill" or len(proposal.edits) != 1:
        return False
    start, _, new = proposal.edits[0]
    before, after = proposal.text[max(0, start - _WINDOW) : start], proposal.text[start : start + _WINDOW]
    head = head_of(before, len(before))
    for line in LINE_END.split(new):
        found = _expected(before, after)
        if found is not None and found.names_neighbour(head + line):
            return True
        before, head = f"{before}{line}\n", ""
    return False


def expected(text: str, offset: int) -> Expected | None:
    """The expected line of `offset`, which begins like the current one; None if no neighbour suggests one."""
    return _expected(text[max(0, offset - _WINDOW) : offset], text[offset : offset + _WINDOW])


@lru_cache(maxsize=8)
def _expected(before: str, after: str) -> Expected | None:
    above = LINE_END.split(before)
    lines = _Lines(above + LINE_END.split(after)[1:], len(above) - 1)
    head = above[-1]
    for header in lines.headers():
        own = [line for line in lines.texts[header + 1 : lines.row] if line.strip()]
        found = []
        for sibling, names in islice(lines.siblings(header), _SIBLINGS):
            body = [_adapted(line, names) for line in lines.body(sibling, header)]
            if (at := _place([line for line, _ in body], own, head)) is not None:
                found.append(body[at])
        if found:
            return _voted(found, head)
    return _next(lines) if head.strip() else None


class _Lines:
    """Lines around that of the cursor, `row`, which ends at the cursor; a blank one has indentation -1."""

    def __init__(self, texts: Sequence[str], row: int) -> None:
        self.texts, self.row = texts, row
        self.indents = [len(text) - len(rest) if (rest := text.lstrip()) else -1 for text in texts]

    def headers(self) -> Iterator[int]:
        """The line above, those that the cursor's line is indented under, and the first one of its paragraph."""
        level = self.indents[self.row]
        level = _LONGEST_LINE if level < 0 else level
        above = self.row - 1
        paragraph = self.row
        while paragraph and self.indents[paragraph - 1] >= 0:
            paragraph -= 1
        for at in range(above, -1, -1):
            if 0 <= self.indents[at] < level or (at == above and self.indents[at] == level):
                level = self.indents[at]
                yield at
            if not level and at < paragraph:
                break
        if paragraph < above and self.indents[paragraph] == level:
            yield paragraph

    def siblings(self, header: int) -> Iterator[tuple[int, Mapping[str, str]]]:
        """Lines of the header's shape, the nearest first, and the words that differ from the header's."""
        indent = self.indents[header]
        rows = [at for at, other in enumerate(self.indents) if other == indent and at not in {header, self.row}]
        for at in sorted(rows, key=lambda at: abs(at - header)):
            if names := _differing(self.texts[at], self.texts[header]):
                yield at, names

    def body(self, sibling: int, header: int) -> Iterator[str]:
        """The filled lines of the block that a line begins, except the cursor's own."""
        level, blank = self.indents[sibling], False
        for at in range(sibling + 1, len(self.texts)):
            indent, line = self.indents[at], self.texts[at]
            if indent < 0:
                blank = blank or at != self.row
                continue
            ends = indent < level or (indent == level and (blank or bool(_differing(line, self.texts[sibling]))))
            if ends or at in {header, self.row}:
                return
            yield line


@lru_cache(maxsize=4096)
def _differing(theirs: str, ours: str) -> Mapping[str, str]:
    """Words and numbers of one line and the other's counterparts; none if the two differ in shape."""
    a, b = _parts(theirs), _parts(ours)
    if len(a) == len(b):
        pairs = [(one, other) for one, other in zip(a, b, strict=True) if one != other]
    else:
        front = _alike(a, b)
        back = min(_alike(a[::-1], b[::-1]), len(a) - front, len(b) - front)
        pairs = [("".join(a[front : len(a) - back]), "".join(b[front : len(b) - back]))]
    found: dict[str, str] = {}
    for one, other in pairs:
        numbers = one.isdecimal() and other.isdecimal()
        if not numbers and not (_PHRASE.fullmatch(one) and _PHRASE.fullmatch(other)):
            return {}
        if found.setdefault(one, other) != other:
            return {}
    same = {part for part in a if part in b and _WORD.match(part)}
    return found if len(found) <= len(same) and same.isdisjoint(found) else {}


@lru_cache(maxsize=4096)
def _parts(line: str) -> list[str]:
    return _PART.findall(line.strip()[:_LONGEST_LINE])


def _adapted(line: str, names: Mapping[str, str]) -> tuple[str, list[_Slot]]:
    """A neighbour's line with our words, and where these are."""
    pattern, ours = _exchange(tuple(names.items()))
    new, at = "", 0
    slots: list[_Slot] = []
    for match in pattern.finditer(line[:_LONGEST_LINE]):
        old = match[0]
        word = ours.get(old) or ours[str(int(old))].zfill(len(old))
        new += line[at : match.start()] + word
        slots.append((len(new) - len(word), len(new), old))
        at = match.end()
    return new + line[at:], slots


@lru_cache(maxsize=256)
def _exchange(names: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern that finds words and numbers in any case or width, and the replacement of each."""
    ours: dict[str, str] = {}
    patterns: list[str] = []
    for old, new in names:
        if old.isdecimal():
            ours |= {str(int(old)): str(int(new)), old: new}
            patterns.append(rf"(?<!\d)0*{int(old)}(?!\d)")
            continue
        for one, other in zip(_cases(old), _cases(new), strict=True):
            ours.setdefault(one, other)
        ours[old] = new
    for word in sorted((word for word in ours if not word.isdecimal()), key=len, reverse=True):
        upper = len(word) > 1 and word.isupper()
        before = "A-Z" if word[0].isupper() and not upper else "A-Za-z"
        patterns.append(rf"(?<![{before}]){word}" + ("(?![A-RT-Za-z]|S[A-Za-z])" if upper else "(?![a-rt-z]|s[a-z])"))
    return re.compile("|".join(patterns)), ours


def _cases(phrase: str) -> tuple[str, ...]:
    words = [part.lower() for part in _PART.findall(phrase) if part.isalpha()]
    camel = "".join(map(str.capitalize, words))
    return "_".join(words), "-".join(words), words[0] + camel[len(words[0]) :], camel, "_".join(words).upper()


def _place(body: Sequence[str], own: Sequence[str], head: str) -> int | None:
    """Which line of a block corresponds to the cursor's: it begins like it, and the previous lines are equal."""
    fits = [
        at
        for at, line in enumerate(body)
        if line.startswith(head)
        and line.strip() != head.strip()
        and (body[at - 1] == own[-1] if own and at else at == len(own))
    ]
    return min(fits, key=lambda at: abs(at - len(own)), default=None)


def _voted(found: Sequence[tuple[str, list[_Slot]]], head: str) -> Expected | None:
    """The line that most of them have, the nearest of several; if no two agree, what the first two begin with."""
    lines = [line for line, _ in found]
    line = max(lines, key=lines.count)
    votes = lines.count(line)
    if votes == 1 and len(lines) > 1:
        one, other = (_PART.findall(line) for line in lines[:2])
        line = "".join(one[: _alike(one, other)])
        if len(line) <= len(head):
            return None
    alike = [slots for other, slots in found if other.startswith(line)]
    places = sorted({(start, end) for slots in alike for start, end, _ in slots if end <= len(line)})
    return Expected(
        line,
        tuple((*span, frozenset(old for slots in alike for *at, old in slots if tuple(at) == span)) for span in places),
        votes,
        len(found),
    )


def _next(lines: _Lines) -> Expected | None:
    """The next line after those above that differ by numbers: with the number that was typed, or else the next one.

    If that one exists already, or another number is being typed, only the part before it is known.
    """
    head, indent = lines.texts[lines.row], lines.indents[lines.row]
    typed = _PART.findall(head)[:-1]
    shape = _shape(head, len(typed))
    rows = (at for at in range(lines.row - 1, -1, -1) if lines.indents[at] == indent)
    above = list(islice((line for at in rows if _shape(line := lines.texts[at], len(typed)) == shape), _SEQUENCE))
    changes = [_differing(older, newer) for newer, older in pairwise(above)]
    steps = {tuple(int(new) - int(old) for old, new in each.items() if old.isdecimal()) for each in changes}
    if not changes or not changes[0] or not any(steps):
        return None
    numbers = {
        old: new
        for old, new in zip(_PART.findall(above[0]), typed, strict=False)
        if old != new and old in changes[0].values()
    }
    if not numbers:
        step = steps.pop()
        if steps or len(set(step)) > 1 or (len(changes) == 1 and step != (1,)):
            return None
        numbers = {new: str(int(new) + step[0]).zfill(len(new)) for new in changes[0].values() if new.isdecimal()}
    line, slots = _adapted(above[0], numbers)
    # What else changes from one to the next is unknown.
    words = [new for new in changes[0].values() if not new.isdecimal()]
    line = line[: min((at for word in words if (at := line.find(word)) >= 0), default=len(line))]
    if line in lines.texts or not line.startswith(head):
        line = line[: next((start for start, _, _ in slots), 0)]
    spans = ((start, min(end, len(line)), frozenset({old})) for start, end, old in slots if start <= len(line))
    return Expected(line, tuple(spans), len(changes), len(changes)) if line.strip() else None


def _shape(line: str, count: int) -> list[str]:
    return ["0" if part.isdecimal() else part for part in _PART.findall(line)[:count]]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many leading characters or parts both have in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
