"""What changed between two versions of a file: hunks of lines, and which of them belong to one intent."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, takewhile

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from calomel.prompts.parts import Edit
from calomel.training.edits.naming import WORDS, keywords
from calomel.training.edits.scene import marker

# Percent. Less similar lines were not made from one another.
ALIKE = 50.0

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_TRAILING_COMMA = re.compile(r",(?=[)\]}])")


@dataclass(frozen=True, slots=True)
class LineHunk:
    """Consecutive whole lines that were replaced; offsets are characters of the older text."""

    before_start: int
    before_end: int
    before: str
    after: str

    def changes(self) -> tuple[Edit, ...]:
        """Return the hunk in offsets of the text before: one change, or one per place of a renamed name."""
        before, after = _TOKEN.findall(self.before), _TOKEN.findall(self.after)
        pairs = list(zip(before, after, strict=False))
        differing = {(old, new) for old, new in pairs if old != new}
        if len(before) == len(after) and len(differing) == 1 and all(_is_name(*names) for names in differing):
            return tuple(self._replaced(pairs))
        return (self._trimmed(before, after),)

    def renames(self) -> bool:
        """Tell whether it only replaces one name by another, more than once."""
        changes = self.changes()
        olds = {self.before[c.start - self.before_start : c.end - self.before_start] for c in changes}
        return len(changes) > 1 and len(olds) == 1

    def _replaced(self, pairs: list[tuple[str, str]]) -> Iterator[Edit]:
        offset = self.before_start
        for old, new in pairs:
            if old != new:
                yield Edit(offset, offset + len(old), new)
            offset += len(old)

    def _trimmed(self, before: list[str], after: list[str]) -> Edit:
        head = _common(before, after)
        tail = _common(before[head:][::-1], after[head:][::-1])
        start = self.before_start + sum(map(len, before[:head]))
        end = self.before_end - sum(map(len, before[len(before) - tail :]))
        return Edit(start, end, "".join(after[head : len(after) - tail]))


def line_hunks(before: str, after: str) -> tuple[LineHunk, ...]:
    """Return the hunks that turn `before` into `after`, top to bottom; as many lines as possible stay.

    A run of lines replaced by as many similar lines is one hunk per line, as a person would change them.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = list(accumulate(map(len, old), initial=0))
    hunks: list[LineHunk] = []
    for span in _replaced_runs(old, new):
        for a, b, c, d in _by_line(old, new, span):
            hunks.append(LineHunk(starts[a], starts[b], "".join(old[a:b]), "".join(new[c:d])))
    return tuple(hunks)


def is_formatting(hunk: LineHunk) -> bool:
    """Tell whether only whitespace, quotes or a trailing comma differ."""
    return _bare(hunk.before) == _bare(hunk.after)


def _bare(text: str) -> str:
    return _TRAILING_COMMA.sub("", "".join(text.split()).replace("'", '"'))


_Span = tuple[int, int, int, int]


def _replaced_runs(old: list[str], new: list[str]) -> Iterator[_Span]:
    """Yield each replaced run of lines: its start and end in `old`, then in `new`."""
    i = j = 0
    for block in LCSseq.editops(old, new).as_matching_blocks():
        if (block.a, block.b) != (i, j):
            yield i, block.a, j, block.b
        i, j = block.a + block.size, block.b + block.size


def _by_line(old: list[str], new: list[str], span: _Span) -> Iterator[_Span]:
    """Yield a replaced run line by line if it has as many lines and most are similar; any other as it is."""
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
    """Return how many leading tokens both have in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


# A name changed in more hunks than this connects unrelated changes.
MAX_HUNKS = 12
MIN_NAME = 3
# Names that are common in all code say nothing about an intent.
_COMMON = frozenset(WORDS["common_names"].split())
_WORD = re.compile(r"[^\W\d]\w*")
# What follows a keyword is in a look-ahead, as it may be another keyword: `const fn name`.
_DEFINITIONS = (
    re.compile(
        r"\b(?:def|class|function|func|fn|const|let|var|static|struct|enum|type|interface|trait|mod|macro_rules!)"
        r"(?=\s+(?:\([^()]*\)\s*)?(?:mut\s+)?(\w+))"
    ),
    re.compile(
        r"^\s*(?:(?:(?:pub|public|private|protected|readonly)\b|self\.)\s*)*(\w+)\s*(?::(?!=)|=(?!=)|:=)", re.MULTILINE
    ),
    # A field of Go: name, type, tag.
    re.compile(r"^\s*(\w+)[ \t]+[*\[\]\w.]+[ \t]*(?:`[^`]*`)?$", re.MULTILINE),
)
_PARAMETERS = re.compile(r"\b(?:def|fn|func|function)\s+\w+[^\n(]*(\([^\n]*)")
_PARAMETER = re.compile(r"[(,\s](\w+)")


def intents(hunks: Sequence[LineHunk], language: str) -> Iterator[tuple[LineHunk, ...]]:
    """Yield groups of 2 to MAX_HUNKS hunks that share changed names: where one is defined first, then top to bottom."""
    holders: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for index, hunk in enumerate(hunks):
        before, after = (Counter(_names(text, language)) for text in (hunk.before, hunk.after))
        for sign, names in (("-", before - after), ("+", after - before)):
            for name in sorted(names):
                holders[sign, name].append(index)
    shared = {key: set(at) for key, at in holders.items() if 1 < len(at) <= MAX_HUNKS}
    groups: list[set[int]] = []
    for tied in sorted(shared.values(), key=len, reverse=True):
        joined = tied.union(*(group for group in groups if group & tied))
        # A name that would make too large a group is ignored.
        if len(joined) <= MAX_HUNKS:
            groups = [joined, *(group for group in groups if not group & tied)]
    for group in groups:
        part = [hunks[index] for index in sorted(group)]
        tying = {name for (_, name), tied in shared.items() if len(group & tied) > 1}
        first = next((hunk for hunk in part if not tying.isdisjoint(_defined(hunk.after))), part[0])
        yield first, *(hunk for hunk in part if hunk is not first)


def _names(text: str, language: str) -> list[str]:
    """Return the distinctive names of some lines, as far as they can be found without parsing."""
    code = re.sub(rf"{marker(language)}.*", "", text)
    reserved = keywords(language) | _COMMON
    return [name for name in _WORD.findall(code) if len(name) >= MIN_NAME and name not in reserved]


def _defined(text: str) -> Iterator[str]:
    """Yield the names that lines of code define: of functions, types and values, fields and parameters."""
    for definition in _DEFINITIONS:
        yield from definition.findall(text)
    for parameters in _PARAMETERS.findall(text):
        yield from _PARAMETER.findall(parameters)
