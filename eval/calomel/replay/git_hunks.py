"""Hunks of a commit, in the order somebody may have made them: what is defined first, then what uses it.

The order inside a commit is not known, and from top to bottom is wrong for most renames and new parameters. A hunk that
defines a name comes before those that use it; beside that, files stay together, files with tests come last, and a file
is edited downwards. Where names are used in a circle, the topmost hunk is first.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from rapidfuzz.distance import LCSseq

from calomel.suggest.diff import split_lines

_WORD: Final = re.compile(r"[^\W\d]\w+")
# A word of most languages that the name of something new follows, or a name that something is given to.
_DEFINITION: Final = re.compile(
    r"\b(?:def|class|func|fn|fun|function|struct|enum|trait|interface|type|typedef|union|module|mod|namespace|record"
    r"|const|let|var|val|static|macro_rules!|#define|import|from|use|using|package)\s+(?:mut\s+|\*\s*)?([^\W\d]\w+)"
    r"|^\s*(?:[\w.]+[ \t]+)?([^\W\d]\w+)[ \t]*(?::=|=(?!=)|:(?!:))"
    r"|^\s*(?:(?:public|private|protected|internal|static|final|async|export|override|virtual|abstract)\s+)+"
    r"(?:[\w<>\[\]?,.]+\s+)?([^\W\d]\w+)\s*\("
    # A parameter, with its type.
    r"|[(,]\s*(?:\w+\s+)?([^\W\d]\w+)\s*(?=[:,)=])",
    re.MULTILINE,
)
_TEST: Final = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.-]|$)", re.IGNORECASE)
_Node = TypeVar("_Node", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that a commit replaced.

    Attributes:
        path: of the file, after the commit.
        line: the first line before it, from 0.
        start: of that line, in code points of the file before.
        old, new: lines with their ends.
    """

    path: str
    line: int
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def hunks_between(path: str, before: str, after: str) -> list[Hunk]:
    """What differs between two texts of a file, from top to bottom."""
    old, new = split_lines(before), split_lines(after)
    starts = [0]
    for each in old:
        starts.append(starts[-1] + len(each))
    found: list[Hunk] = []
    # Ends that are equal make up most of a file.
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    first, last = old[head : len(old) - tail], new[head : len(new) - tail]
    for block in LCSseq.opcodes(first, last):
        if block.tag == "equal":
            continue
        line = head + block.src_start
        removed = tuple(first[block.src_start : block.src_end])
        added = tuple(last[block.dest_start : block.dest_end])
        if found and found[-1].line + len(found[-1].old) == line:
            # A removal and an insertion at one place are one hunk.
            before_it = found.pop()
            removed, added, line = before_it.old + removed, before_it.new + added, before_it.line
        found.append(Hunk(path, line, starts[line], removed, added))
    return found


def ordered(hunks: Sequence[Hunk]) -> list[Hunk]:
    """All hunks of a commit, in the order somebody may have made them."""
    files: dict[str, list[Hunk]] = {}
    for hunk in sorted(hunks, key=lambda each: (bool(_TEST.search(each.path)), each.path, each.line)):
        files.setdefault(hunk.path, []).append(hunk)
    defined = {path: _union(defines(hunk) for hunk in inside) for path, inside in files.items()}
    used = {path: _union(uses(hunk) for hunk in inside) for path, inside in files.items()}
    order = _definitions_first(list(files), defined, used)
    return [hunk for path in order for hunk in _within(files[path])]


def defines(hunk: Hunk) -> frozenset[str]:
    """Names that the hunk brings in where names are defined; those that stood there before are none."""
    new = "".join(hunk.new)
    old = set(_WORD.findall("".join(hunk.old)))
    return frozenset(name for groups in _DEFINITION.findall(new) for name in groups if name and name not in old)


def uses(hunk: Hunk) -> frozenset[str]:
    """Names that the hunk brings in."""
    return frozenset(_WORD.findall("".join(hunk.new))) - frozenset(_WORD.findall("".join(hunk.old)))


def _within(hunks: Sequence[Hunk]) -> list[Hunk]:
    lines = {hunk.line: hunk for hunk in hunks}
    order = _definitions_first(
        list(lines),
        {line: defines(hunk) for line, hunk in lines.items()},
        {line: uses(hunk) for line, hunk in lines.items()},
    )
    return [lines[line] for line in order]


def _definitions_first(
    nodes: Sequence[_Node], defined: Mapping[_Node, frozenset[str]], used: Mapping[_Node, frozenset[str]]
) -> list[_Node]:
    """The nodes in their order, but each behind those that define what it uses and does not define itself."""
    left = list(nodes)
    found: list[_Node] = []
    while left:
        ready = (
            node
            for node in left
            if not any(defined[other] & (used[node] - defined[node]) for other in left if other != node)
        )
        # In a circle, the first one.
        node = next(ready, left[0])
        left.remove(node)
        found.append(node)
    return found


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)
