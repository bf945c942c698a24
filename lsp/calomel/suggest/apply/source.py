"""A text as lines in blocks, told by indentation: for files, and for snippets that no parser could read."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

from calomel.suggest.apply.grammars import error_count, parse
from calomel.suggest.diff import split_lines
from calomel.workspace.definitions import definitions_in
from calomel.workspace.languages import Grammar

_TAB: Final = 4
# A line that ends or goes on with the block of the last line that is indented as much.
_CLOSER: Final = re.compile(
    r"[)\]}]|</|\{\s*$|(?:end|fi|done|esac)[;,)\s]*$|(?:then|do)\s*$"
    r"|(?:else|elif|elsif|elseif|except|catch|finally|rescue|ensure)(?=[\s:({]|$)"
)
_NAMED: Final = re.compile(
    r"\b(?:def|function\*?|func|fn|fun|class|interface|struct|enum|trait|impl|type|module|namespace|sub|procedure"
    r"|protocol|extension|object|record|mod)\s+(?:[\w.:]+[.:])?([\w$?!]+)"
)
_ASSIGNED: Final = re.compile(
    r"^(?:(?:export|const|let|var|local|static|public|private|final|readonly|pub)\s+)*"
    r"([\w.$\-\"']+)\s*(?::[^=]+)?[:=](?!=)"
)
_COMMENT: Final = re.compile(r"//|#(?!\[|!\[|include|define|if|endif|pragma)|--|/\*|\*|<!--|;|%|\"\"\"")
_DECORATION: Final = re.compile(r"@\w|\#!?\[|\[[A-Z]\w*[\](]")
_IMPORT: Final = re.compile(
    r"(?:from\s+\S+\s+)?import\b|#\s*include\b|(?:pub\s+)?use\s+[\w:{]|using\s+[\w.]+\s*;|require(?:_relative)?\b"
    r"|(?:const|let|var)\s+.{1,200}=\s*require\("
)
_MODULE: Final = re.compile(r"^from (\S+) import\b|\bfrom\s*[\"']([^\"']+)[\"']")


@dataclass(slots=True)
class Source:
    """The lines of a text.

    Attributes:
        lines: with their ends.
        keys: without indentation and with one space for any.
        indents: in columns.
        parents: the line that introduces the block of each; -1 at the top.
        roots: the line that a closing line belongs to; itself for all others.
        ends: of the block that a line introduces, the line behind its last; behind itself without a block.
        names: what a line defines.
        left_out: lines that are markers; they belong to no block.
        errors: places that the grammar could not read.
    """

    lines: list[str]
    keys: list[str]
    indents: list[int]
    left_out: frozenset[int] = frozenset()
    parents: list[int] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    errors: int = 0

    def blank(self, line: int) -> bool:
        """Whether a line is empty, or a marker."""
        return not self.keys[line] or line in self.left_out

    def path(self, line: int) -> list[int]:
        """The lines that introduce the blocks around a line, the outermost first."""
        found = []
        at = self.parents[self.roots[line]]
        while at >= 0:
            at = self.roots[at]
            found.append(at)
            at = self.parents[at]
        return found[::-1]

    def identity(self, line: int) -> str:
        """What a line that introduces a block is known by: the name that it defines, or its text."""
        name = self.names.get(line)
        return self.keys[line] if name is None else f"\0{name}"

    def closes(self, line: int) -> bool:
        """Whether a line ends or goes on with a block."""
        return _CLOSER.match(self.keys[line]) is not None

    def is_comment(self, line: int) -> bool:
        """Whether a line looks like a comment."""
        return _COMMENT.match(self.keys[line]) is not None

    def is_decoration(self, line: int) -> bool:
        """Whether a line belongs to the definition below it."""
        return _DECORATION.match(self.keys[line]) is not None

    def is_import(self, line: int) -> bool:
        """Whether a line names another file."""
        return _IMPORT.match(self.keys[line]) is not None

    def target(self, line: int) -> str | None:
        """What a line gives a value to, or the module that it imports from."""
        module = _MODULE.search(self.keys[line]) if self.is_import(line) else None
        if module is not None:
            return f"\0{module.group(1) or module.group(2)}"
        found = _ASSIGNED.match(self.keys[line])
        return None if found is None else found.group(1)

    def filled(self, start: int, end: int) -> list[int]:
        """The lines from `start` up to `end` that are not blank."""
        return [line for line in range(start, end) if not self.blank(line)]

    def last_filled(self, end: int) -> int:
        """The line behind the last one before `end` that is not blank; 0 where there is none."""
        while end > 0 and self.blank(end - 1):
            end -= 1
        return end


def columns(line: str) -> int:
    """How far a line is indented."""
    body = line.lstrip(" \t")
    return len(line[: len(line) - len(body)].expandtabs(_TAB))


def read_source(text: str, grammar: Grammar | None, left_out: frozenset[int] = frozenset()) -> Source:
    """The lines of `text` and their blocks; `left_out` says which lines are markers."""
    lines = split_lines(text)
    keys = ["" if at in left_out else " ".join(line.split()) for at, line in enumerate(lines)]
    source = Source(lines, keys, [columns(line) for line in lines], left_out)
    _blocks(source)
    readable = "".join("\n" if at in left_out else line for at, line in enumerate(lines))
    _name(source, readable, grammar)
    return source


def _blocks(source: Source) -> None:
    count = len(source.lines)
    source.parents, source.roots, source.ends = [-1] * count, list(range(count)), [at + 1 for at in range(count)]
    stack: list[int] = []
    last = 0
    for at in range(count):
        indent = source.indents[at]
        if not source.keys[at]:
            # A marker may stand for the end of every block that is indented as much, and for the head of another.
            if at in source.left_out:
                while stack and source.indents[stack[-1]] >= indent:
                    source.ends[source.roots[stack.pop()]] = last
            continue
        while stack and source.indents[stack[-1]] > indent:
            source.ends[source.roots[stack.pop()]] = last
        if stack and source.indents[stack[-1]] == indent:
            before = stack.pop()
            root = source.roots[before]
            source.ends[root] = last
            if source.closes(at):
                source.roots[at] = root
        source.parents[at] = stack[-1] if stack else -1
        stack.append(at)
        last = at + 1
    for at in stack:
        source.ends[source.roots[at]] = last


def _name(source: Source, text: str, grammar: Grammar | None) -> None:
    tree = parse(text, grammar)
    if tree is not None and grammar is not None:
        source.errors = error_count(tree, grammar)
        starts = [0]
        for each in split_lines(text):
            starts.append(starts[-1] + len(each))
        for found in definitions_in(tree, grammar, text):
            line = bisect_right(starts, found.head) - 1
            if found.name and line < len(source.lines) and line not in source.names:
                source.names[line] = found.name
        return
    for at, key in enumerate(source.keys):
        found_name = None if source.is_comment(at) else _NAMED.search(key)
        if found_name is not None and source.roots[at] == at:
            source.names[at] = found_name.group(1)
