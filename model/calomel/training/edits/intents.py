"""Groups the hunks of a file by what they were made for: those that change the same names belong together."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from calomel.training.edits.differences import LineHunk

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
