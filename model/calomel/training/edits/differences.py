"""What changed between two versions of a file: hunks of lines, and which of them were made for the same."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


# A name changed in more hunks than this ties things together that have nothing to do with each other.
MAX_HUNKS = 12
MIN_NAME = 3
# Names that everybody's code is full of say nothing about an intent.
_COMMON = frozenset(
    {
        *("self", "cls", "this", "args", "kwargs", "str", "int", "bool", "float", "bytes", "list", "dict"),
        *("set", "tuple", "None", "True", "False", "null", "undefined", "string", "number", "boolean"),
        *("any", "object", "err", "error", "nil", "Some", "Ok", "Err", "Self", "String", "Vec", "Option"),
        *("Result", "usize", "u8", "u32", "u64", "i32", "i64", "len", "isinstance", "type", "Any", "Optional"),
        *("Union", "super", "print", "range", "result", "value", "name", "key", "data", "index", "test"),
        *("assert", "Error", "context", "ctx"),
    }
)
# What stands before a name is looked at, not taken: it may be before another one, as in `const fn name`.
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


@dataclass(frozen=True, slots=True)
class NamedHunk:
    """A hunk and the code names (no words of comments or strings) that it took away and brought."""

    hunk: LineHunk
    removed: frozenset[str]
    added: frozenset[str]


def named(hunk: LineHunk, before: Iterable[str], after: Iterable[str]) -> NamedHunk:
    """Return the hunk with its changed names, given the code names in it before and after."""
    old, new = Counter(map(_telling, before)), Counter(map(_telling, after))
    return NamedHunk(hunk, frozenset(old - new) - {""}, frozenset(new - old) - {""})


def intents(hunks: Sequence[NamedHunk]) -> Iterator[tuple[NamedHunk, ...]]:
    """Yield each group of two or more hunks that share changed names: where it is defined first, then top to bottom."""
    holders: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for index, hunk in enumerate(hunks):
        for name in sorted(hunk.removed):
            holders["-", name].append(index)
        for name in sorted(hunk.added):
            holders["+", name].append(index)
    shared = {key: at for key, at in holders.items() if 1 < len(at) <= MAX_HUNKS}
    for group in _connected(len(hunks), shared.values()):
        for part in [group] if len(group) <= MAX_HUNKS else _by_name(group, shared.values()):
            names = [name for (_, name), at in shared.items() if len(set(at).intersection(part)) > 1]
            yield _definition_first([hunks[index] for index in part], names)


def definition_first(hunks: Sequence[NamedHunk]) -> tuple[NamedHunk, ...]:
    """Return the hunks, one that defines a name which several change first, the others from top to bottom."""
    counts = Counter(name for hunk in hunks for name in hunk.removed | hunk.added)
    return _definition_first(hunks, [name for name, count in sorted(counts.items()) if count > 1])


def replaced_names(hunk: LineHunk) -> Mapping[str, str]:
    """Return what a hunk renames when that is all it does, once or more often: old name to new."""
    changes = hunk.changes()
    pairs = {(hunk.before[c.start - hunk.before_start : c.end - hunk.before_start], c.text) for c in changes}
    if len(changes) > 1 and len(pairs) == 1:
        return dict(pairs)
    return {}


def _definition_first(hunks: Sequence[NamedHunk], names: Iterable[str]) -> tuple[NamedHunk, ...]:
    first = _definition(hunks, names)
    return tuple(sorted(hunks, key=lambda hunk: (hunk is not first, _place(hunk))))


def _telling(name: str) -> str:
    return "" if len(name) < MIN_NAME or name in _COMMON else name


def _place(hunk: NamedHunk) -> int:
    return hunk.hunk.before_start


def _connected(count: int, ties: Iterable[Sequence[int]]) -> Iterator[list[int]]:
    group_of = list(range(count))

    def root(index: int) -> int:
        while group_of[index] != index:
            index = group_of[index]
        return index

    for tie in ties:
        for other in tie[1:]:
            group_of[root(other)] = root(tie[0])
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for index in range(count):
        groups[root(index)].append(index)
    yield from (group for group in groups.values() if len(group) > 1)


def _by_name(group: Iterable[int], ties: Iterable[Sequence[int]]) -> Iterator[list[int]]:
    """Split a group too large for one intent: the hunks of the most shared name, then of the next, and so on."""
    left = set(group)
    for tie in sorted(ties, key=len, reverse=True):
        part = [index for index in tie if index in left]
        if len(part) > 1:
            left.difference_update(part)
            yield part


def _definition(hunks: Sequence[NamedHunk], names: Iterable[str]) -> NamedHunk | None:
    """Return the hunk that defines one of the shared names, or None."""
    wanted = frozenset(names)
    return next((hunk for hunk in hunks if not wanted.isdisjoint(_defined(hunk.hunk.after))), None)


def _defined(text: str) -> Iterator[str]:
    """Yield the names that lines of code define: of functions, types and values, fields and parameters."""
    for definition in _DEFINITIONS:
        yield from definition.findall(text)
    for parameters in _PARAMETERS.findall(text):
        yield from _PARAMETER.findall(parameters)
