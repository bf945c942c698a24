"""A text as lines in blocks, found by indentation: for files, and for snippets that no parser can read."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from tree_sitter import Node, Tree

from calomel.code.definitions import definitions_in
from calomel.code.languages import GRAMMARS, Grammar
from calomel.code.lines import columns, split_lines
from calomel.code.tokens import is_comment, is_import
from calomel.code.trees import errors, parse

# A line that closes or continues the block of the last line with the same indentation.
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
_DECORATION: Final = re.compile(r"@\w|\#!?\[|\[[A-Z]\w*[\](]")
_MODULE: Final = re.compile(r"^from (\S+) import\b|\bfrom\s*[\"']([^\"']+)[\"']")


@dataclass(slots=True)
class Source:
    """The lines of a text.

    Attributes:
        lines: with their line ends.
        keys: the lines without indentation and with white space reduced to single spaces.
        indents: in columns.
        left_out: lines that are markers; they belong to no block.
        parents: per line, the line that introduces its block; -1 at the top.
        roots: the line that a closing line belongs to; for all others the line itself.
        ends: the line after the last one of the block that a line introduces; without a block, after the line itself.
        names: the names that lines define.
        errors: number of syntax errors.
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
        """Whether a line is empty or a marker."""
        return not self.keys[line]

    def defines(self, line: int) -> bool:
        """Whether a line introduces the block of a definition."""
        return line in self.names and self.ends[line] > line + 1

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
        """What identifies a line that introduces a block: the name that it defines, or its text."""
        name = self.names.get(line)
        return self.keys[line] if name is None else f"\0{name}"

    def closes(self, line: int) -> bool:
        """Whether a line closes or continues a block."""
        return _CLOSER.match(self.keys[line]) is not None

    def is_comment(self, line: int) -> bool:
        """Whether a line looks like a comment."""
        return is_comment(self.keys[line])

    def is_import(self, line: int) -> bool:
        """Whether a line is an import."""
        return is_import(self.keys[line])

    def is_above(self, line: int) -> bool:
        """Whether a line is a decorator or a comment, which belong to the definition below them."""
        return self.is_comment(line) or _DECORATION.match(self.keys[line]) is not None

    def target(self, line: int) -> str | None:
        """What a line assigns to, or the module that it imports from."""
        module = _MODULE.search(self.keys[line]) if self.is_import(line) else None
        if module is not None:
            return f"\0{module.group(1) or module.group(2)}"
        found = _ASSIGNED.match(self.keys[line])
        return None if found is None else found.group(1)

    def filled(self, start: int = 0, end: int | None = None) -> list[int]:
        """The lines from `start` up to `end` that are not blank."""
        return [line for line in range(start, len(self.lines) if end is None else end) if not self.blank(line)]

    def last_filled(self, end: int) -> int:
        """The line after the last non-blank one before `end`; 0 if there is none."""
        while end > 0 and self.blank(end - 1):
            end -= 1
        return end


def read_source(text: str, grammar: Grammar | None, left_out: frozenset[int] = frozenset()) -> Source:
    """The lines of `text` and their blocks; `left_out` are the lines that are markers."""
    lines = split_lines(text)
    keys = ["" if at in left_out else " ".join(line.split()) for at, line in enumerate(lines)]
    source = Source(lines, keys, [columns(line) for line in lines], left_out)
    _blocks(source)
    _name(source, "".join("\n" if at in left_out else line for at, line in enumerate(lines)), grammar)
    return source


def _blocks(source: Source) -> None:
    count = len(source.lines)
    source.parents, source.roots, source.ends = [-1] * count, list(range(count)), [at + 1 for at in range(count)]
    stack: list[int] = []
    last = 0
    for at, indent in enumerate(source.indents):
        marker = at in source.left_out
        if not source.keys[at] and not marker:
            continue
        # A marker may stand for the end of every block with this indentation, and for the head of another.
        while stack and source.indents[stack[-1]] >= indent + (not marker):
            source.ends[source.roots[stack.pop()]] = last
        if marker:
            continue
        if stack and source.indents[stack[-1]] == indent:
            root = source.roots[stack.pop()]
            source.ends[root] = last
            if source.closes(at):
                source.roots[at] = root
        source.parents[at] = stack[-1] if stack else -1
        stack.append(at)
        last = at + 1
    for at in stack:
        source.ends[source.roots[at]] = last


def _name(source: Source, text: str, grammar: Grammar | None) -> None:
    tree = parse(text, grammar, _SECONDS)
    if tree is not None and grammar is not None:
        source.errors = _error_count(tree, grammar)
        starts = list(accumulate(map(len, split_lines(text)), initial=0))
        for found in definitions_in(tree, grammar, text):
            line = bisect_right(starts, found.head) - 1
            if found.name and line < len(source.lines):
                source.names.setdefault(line, found.name)
        return
    for at, key in enumerate(source.keys):
        named = None if source.is_comment(at) or source.roots[at] != at else _NAMED.search(key)
        if named is not None:
            source.names[at] = named.group(1)


# Strictest first: of two grammars that parse a text equally well, the one that accepts less is right.
_ORDER: Final = (
    "python", "go", "rust", "java", "c_sharp", "typescript", "tsx", "javascript", "c", "cpp", "ruby", "json", "css",
    "bash", "html",
)  # fmt: skip
_BY_NAME: Final = {grammar.name: grammar for grammar in GRAMMARS}
# Characters at the start of a file that show its language.
_LOOKED_AT: Final = 20_000
_SECONDS: Final = 2.0
# With more errors per line than this, it is another language, or none.
_MOST_ERRORS: Final = 0.1
_FEW_ERRORS: Final = 0.02
# The count for a text with too many errors to count.
_COUNTLESS: Final = 10_000
# Suffixes of the node kinds that contain statements in the Python grammar.
_COMPOUND: Final = ("_statement", "_clause", "_definition", "block")
_NO_STATEMENTS: Final = frozenset({"comment", "line_continuation"})


def grammar_for(text: str) -> Grammar | None:
    """The grammar that parses `text` with the fewest errors; None if none does well."""
    head = text if len(text) <= _LOOKED_AT else text[: text.rfind("\n", 0, _LOOKED_AT) + 1]
    lines = head.count("\n") + 1
    best: tuple[tuple[int, int, int], Grammar] | None = None
    for place, name in enumerate(_ORDER):
        tree = parse(head, grammar := _BY_NAME[name], _SECONDS)
        if tree is None:
            continue
        wrong, defined = _error_count(tree, grammar), len(definitions_in(tree, grammar, head))
        # A file in progress has an error or two; a grammar that accepts anything, as text, finds no definitions.
        few = defined and wrong <= _FEW_ERRORS * lines
        rank = (0 if few else wrong, -defined, place)
        best = (rank, grammar) if best is None or rank < best[0] else best
        if defined and not wrong:
            break
    return None if best is None or best[0][0] > _MOST_ERRORS * lines else best[1]


def _error_count(tree: Tree, grammar: Grammar) -> int:
    """How many syntax errors a text has, with those that the grammar misses.

    The grammar for Python accepts any indentation, empty blocks and a lone `try`, which Python does not.
    """
    root = tree.root_node
    found = errors(root) if root.has_error else 0
    count = _COUNTLESS if found is None else found
    return count + (_misplaced_lines(root) if grammar.name == "python" else 0)


def _misplaced_lines(root: Node) -> int:
    """The number of misindented statements, empty blocks and lone `try` of Python code."""
    count = 0
    # Each node with the column of the statement that it belongs to, and the line on which the previous node ends.
    left: list[tuple[Node, int, int]] = [(root, -1, -1)]
    while left:
        node, margin, row = left.pop()
        is_block = node.type in {"module", "block"}
        column: int | None = None
        # Whether the node lacks what it needs: a statement or a handler.
        lacking = node.type in {"block", "try_statement"}
        for child in node.children:
            begin, kind = child.start_point, child.type
            if is_block and child.is_named and kind not in _NO_STATEMENTS:
                lacking = False
                if begin.row > row:
                    column = max(begin.column, margin + 1) if column is None else column
                    count += begin.column != column
            elif not is_block and kind.startswith(("except", "finally", "ERROR")):
                lacking = False
            if kind.endswith("_clause") and kind != "case_clause" and begin.row > node.start_point.row:
                count += begin.column != margin
            if kind.endswith(_COMPOUND):
                left.append((child, margin if kind == "block" else begin.column, row))
            row = child.end_point.row
        count += lacking
    return count
