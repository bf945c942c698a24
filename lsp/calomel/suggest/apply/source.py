"""A text as lines in blocks, told by indentation: for files, and for snippets that no parser could read."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node, Tree

from calomel.suggest.edit import split_lines
from calomel.workspace.definitions import definitions_in
from calomel.workspace.languages import GRAMMARS, Grammar, grammar_of, parser_for
from calomel.workspace.lazy_tree import parse_within, parser_text

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


# Strictest first: of two grammars that read a text equally well, the one that reads less else is right.
_ORDER: Final = (
    "python", "go", "rust", "java", "c_sharp", "typescript", "tsx", "javascript", "c", "cpp", "ruby", "json", "css",
    "bash", "html",
)  # fmt: skip
# Of these a text may become another by what is added to it.
_DIALECTS: Final = (("typescript", "tsx", "javascript"), ("c", "cpp"))
_BY_NAME: Final = {grammar.name: grammar for grammar in GRAMMARS}
# The beginning of a file tells its language.
_LOOKED_AT: Final = 20_000
_SECONDS: Final = 2.0
# More errors than this for each line: it is another language, or none.
_MOST_ERRORS: Final = 0.1
_FEW_ERRORS: Final = 0.02
_AT_MARGIN: Final = re.compile(r"^(?=[^\W\d])", re.MULTILINE)
# Kinds of nodes of the grammar for Python.
_BLOCKS: Final = frozenset({"module", "block"})
_NO_STATEMENTS: Final = frozenset({"comment", "line_continuation"})
_CLAUSES: Final = frozenset({"elif_clause", "else_clause", "except_clause", "except_group_clause", "finally_clause"})
_HANDLERS: Final = frozenset({"except_clause", "except_group_clause", "finally_clause", "ERROR"})
_COMPOUND: Final = _CLAUSES | {
    "block", "case_clause", "class_definition", "decorated_definition", "for_statement", "function_definition",
    "if_statement", "match_statement", "try_statement", "while_statement", "with_statement",
}  # fmt: skip


def grammar_for(text: str, language_id: str | None = None, path: str | None = None) -> Grammar | None:
    """The grammar of a language id or a path; without either, the one that reads `text` with fewest errors."""
    named = grammar_of(language_id, path)
    if named is not None or language_id or (path and "." in path.rpartition("/")[2]):
        return named
    head = text[:_LOOKED_AT]
    if len(text) > _LOOKED_AT:
        # Not within a statement, which would be an error in every language but those that know none.
        cut = max((found.start() for found in _AT_MARGIN.finditer(head)), default=0)
        head = head[: cut if cut > len(head) // 2 else head.rfind("\n") + 1]
    lines = head.count("\n") + 1
    best: tuple[float, int, int] | None = None
    found: Grammar | None = None
    for place, name in enumerate(_ORDER):
        grammar = _BY_NAME[name]
        tree = parse(head, grammar)
        if tree is None:
            continue
        errors = error_count(tree, grammar, most=50)
        defined = len(definitions_in(tree, grammar, head))
        # A file that is being worked on has a mistake or two; what reads anything, as text, defines nothing.
        few = bool(defined) and errors <= _FEW_ERRORS * lines
        rank = (0 if few else errors, -defined, place)
        if best is None or rank < best:
            best, found = rank, grammar
        if defined and not errors:
            break
    return found if best is not None and best[0] <= _MOST_ERRORS * lines else None


def parse(text: str, grammar: Grammar | None) -> Tree | None:
    """The tree of a text; None without a grammar, or when it takes too long."""
    parser = None if grammar is None else parser_for(grammar)
    if parser is None:
        return None
    return parse_within(parser, parser_text(text), None, time.monotonic() + _SECONDS, time.monotonic)


def error_count(tree: Tree, grammar: Grammar | None, most: int = 1000) -> int:
    """How many places the grammar could not read, or should not have; counting ends at `most`.

    The one for Python reads lines at any indentation, blocks without a line and `try` alone, which Python does not.
    """
    count = _misplaced_lines(tree.root_node, most) if grammar is not None and grammar.name == "python" else 0
    open_nodes = [tree.root_node] if tree.root_node.has_error else []
    while open_nodes and count < most:
        node = open_nodes.pop()
        if node.is_error or node.is_missing:
            count += 1
        open_nodes += [child for child in _children(node) if child.has_error or child.is_missing]
    return count


def dialects(grammar: Grammar | None) -> tuple[Grammar, ...]:
    """Of what other languages a text may turn out to be when it goes on."""
    names = next((names for names in _DIALECTS if grammar is not None and grammar.name in names), ())
    return tuple(_BY_NAME[name] for name in names if grammar is not _BY_NAME[name])


def _misplaced_lines(root: Node, most: int) -> int:
    """Statements of Python that do not begin where their block does, blocks without a statement, `try` alone."""
    count = 0
    # With each node the column of the statement that it belongs to, and the line on which what is before it ends.
    left: list[tuple[Node, int, int]] = [(root, -1, -1)]
    while left and count < most:
        node, margin, row = left.pop()
        is_block, is_try = node.type in _BLOCKS, node.type == "try_statement"
        column: int | None = None
        # Something that the node needs: a statement, or a handler.
        lacking = is_try or (is_block and node is not root)
        for child in _children(node):
            begin = child.start_point
            if is_block and child.is_named and child.type not in _NO_STATEMENTS:
                lacking = False
                if begin.row > row:
                    column = max(begin.column, margin + 1) if column is None else column
                    count += begin.column != column
            elif is_try and child.type in _HANDLERS:
                lacking = False
            if child.type in _CLAUSES and begin.row > node.start_point.row:
                count += begin.column != margin
            if child.type in _COMPOUND:
                left.append((child, margin if child.type == "block" else begin.column, row))
            row = child.end_point.row
        count += lacking
    return count


def _children(node: Node) -> Iterator[Node]:
    """One after another: of a long file, the library would make all of them while nothing else runs."""
    cursor = node.walk()
    more = cursor.goto_first_child()
    while more:
        if cursor.node is not None:
            yield cursor.node
        more = cursor.goto_next_sibling()
