"""The syntax of open documents: trees that follow the edits, or else indentation, and queries on them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from tree_sitter import Tree

from calomel.code.budget import Budget, SpentError
from calomel.code.definitions import Definition, block_starts, block_starts_by_lines, enclosing
from calomel.code.languages import (
    TABLES,
    Grammar,
    grammar_of,
    is_comment,
    is_string,
    keywords,
    line_comment,
    parser_for,
)
from calomel.code.lines import columns
from calomel.code.trees import Inside, Work, begins_unclosed_string, errors, in_error, inside, way
from calomel.workspace.documents import Document, Origin, TextChange
from calomel.workspace.history import Listener
from calomel.workspace.lazy_tree import LazyTree

# How many lines up the headers of enclosing blocks are searched, and how many lines down their ends.
_REACH: Final = 2_000
_DEEPEST: Final = 12
_HEADER: Final = re.compile(
    r"^[ \t]*(?:[\w@]+[ \t]+){0,4}?"
    r"(?P<kind>class|def|fn|fun|func|function|interface|module|namespace|object|proc|struct|sub|trait|type)\b[ \t]+"
    r"(?P<name>[^\W\d]\w*(?:(?:\.|::)\w+)*)",
    re.MULTILINE,
)
_FUNCTIONS: Final = frozenset({"def", "fn", "fun", "func", "proc", "sub"})
_CLOSER: Final = re.compile(r"[ \t]*(?:[)\]}]|end\b|fi\b|done\b|esac\b)")
_PROSE: Final = frozenset(TABLES["files"]["prose"].split())
# How many characters back the start of a multi-line comment is searched.
_COMMENT_REACH: Final = 4_000


def scopes_by_indentation(document: Document, offset: int) -> tuple[Definition, ...]:
    """The headers above, with ever less indentation, the innermost last."""
    at = document.line_of(offset)
    first = max(0, at - _REACH)
    lines = document.lines(first, at + 1)
    here = lines.pop()
    column = offset - document.line_start(at)
    level = columns(here) if here[:column].strip() else column
    found: list[Definition] = []
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if level == 0 or len(found) >= _DEEPEST:
            break
        if line.strip() and columns(line) < level and not _CLOSER.match(line):
            level = columns(line)
            found.append(_scope(document, first + number))
    return tuple(reversed(found))


def _scope(document: Document, header: int) -> Definition:
    line = document.line(header)
    indent, end = columns(line), header + 1
    for number, below in enumerate(document.lines(header + 1, header + _REACH), header + 1):
        if not below.strip():
            continue
        # The bracket that closes the block belongs to it.
        if columns(below) > indent or (columns(below) == indent and _CLOSER.match(below)):
            end = number + 1
        if columns(below) <= indent:
            break
    name = _HEADER.match(line)
    start, behind = document.line_start(header), document.line_start(end)
    return Definition(
        kind="block" if name is None else "function" if name["kind"] in _FUNCTIONS else name["kind"],
        name="" if name is None else name["name"],
        signature=line.strip(),
        start=start,
        end=behind,
        head=start,
        body=document.line_start(header + 1),
        start_line=header,
        end_line=end - 1,
        body_line=header + 1,
        depth=int(indent > 0),
    )


def outline_by_lines(document: Document) -> tuple[Definition, ...]:
    """Lines that look like the header of a definition."""
    found = _HEADER.finditer(document.text)
    return tuple(_scope(document, document.line_of(match.start("kind"))) for match in found)


def comment_or_string_by_line(document: Document, offset: int) -> Literal["comment", "string"] | None:
    """What the text before `offset` on its line leaves open; prose has neither."""
    if document.language_id in _PROSE:
        return None
    kind, _ = opened_before(document, offset)
    if kind is not None or line_comment(document.language_id) != "//":
        return kind
    above = document.text[max(0, offset - _COMMENT_REACH) : offset]
    return "comment" if above.rfind("/*") > above.rfind("*/") else None


def opened_before(document: Document, offset: int) -> tuple[Literal["comment", "string"] | None, int]:
    """The comment or string that is open at `offset`, by the quotes on its line, and the offset where it begins."""
    number = document.line_of(offset)
    start = document.line_start(number)
    before = document.line(number)[: offset - start]
    comment = line_comment(document.language_id)
    quote, at, opened = "", 0, 0
    while at < len(before):
        character = before[at]
        if quote:
            at += character == "\\"
            quote = "" if character == quote else quote
        elif before.startswith(comment, at):
            return "comment", start + at
        elif character in "\"'`":
            quote, opened = character, at
        at += 1
    return ("string", start + opened) if quote else (None, offset)


WORD: Final = re.compile(r"[^\W\d]\w*")
# Names on the cursor's lines matter most, then those in its function's signature, then those farther away.
_NEAR_LINES: Final = 3
_FAR_LINES: Final = 40
_MOST_IDENTIFIERS: Final = 32
# Characters of these lines, and words that are looked at, before and behind the cursor.
_NEAR: Final = 8_000
_MOST_WORDS: Final = 256
# Of the names near a cursor, those found within this time.
_NAMES_SECONDS: Final = 0.01
# A single letter is a loop counter, not something defined elsewhere.
_SHORTEST: Final = 2
_TEXT: Final = frozenset({"text", "jsx_text"})


def _words(document: Document, offset: int, first: int, end: int, known: frozenset[str]) -> list[tuple[str, int]]:
    """Distinct new words of some lines, the nearest first, each with its offset nearest to the cursor.

    A word whose nearest place is in a comment is not looked for elsewhere.
    """
    low = max(document.line_start(max(0, first)), offset - _NEAR)
    shift = low - offset
    text = document.text[low : min(document.line_start(min(end, document.line_count)), offset + _NEAR)]
    nearest: dict[str, tuple[int, int]] = {}
    for match in WORD.finditer(text):
        word = match[0]
        if len(word) < _SHORTEST or word in known:
            continue
        start = match.start() + shift
        place = (max(start, -start - len(word), 0), start)
        if word not in nearest or place < nearest[word]:
            nearest[word] = place
    words = sorted(nearest.items(), key=lambda item: item[1])
    return [(word, start + offset) for word, (_, start) in words[:_MOST_WORDS]]


def _is_name(tree: Tree | None, start: int, word: str) -> bool:
    """Whether the word is in the code, neither in a comment nor in a string."""
    if tree is None:
        return True
    steps = way(tree, start, start + len(word))
    if not steps:
        return True
    node = steps[-1].node
    return node.is_named and not (is_comment(node.type) or is_string(node.type) or node.type in _TEXT)


def _is_taken_for_name(tree: Tree, start: int, end: int) -> bool:
    """Whether exactly these characters are a name, or nobody knows."""
    steps = way(tree, start, end)
    if not steps:
        return True
    node = steps[-1].node
    return node.type == "identifier" and (node.start_byte, node.end_byte) == (2 * start, 2 * end)


# How long one query may parse; the next query continues an interrupted parse.
_PARSE_SECONDS: Final = 0.008
# How long a query that needs a tree waits for one: a new file of some thousand lines.
_PATIENCE: Final = 0.150
# Beyond this a tree costs more memory and time than a suggestion is worth: about 30,000 lines.
LONGEST_TEXT: Final = 1_000_000


@dataclass(slots=True)
class _State:
    """What is known about one document."""

    document: Document
    grammar: Grammar | None
    revision: int
    # Created when first needed, which is when the grammar is imported.
    tree: LazyTree | None = None
    # The revision whose tree took too long: the questions of one turn do not each go on with it.
    late: int = -1
    # Kept until a change contains a line end: typing within a line moves no block.
    blocks: tuple[int, ...] | None = None


class SyntaxTrees(Listener):
    """A listener of the workspace. Without a tree, every query is answered from lines and indentation.

    Parsing is bounded in seconds of `clock`, which counts the parser's work: if a busy machine left a tree unfinished,
    a syntax error would pass unnoticed.
    """

    def __init__(self, clock: Callable[[], float] | None = None, *, parse_seconds: float = _PARSE_SECONDS) -> None:
        self._clock = clock or Work()
        self._parse_seconds = parse_seconds
        self._states: dict[str, _State] = {}

    def opened(self, document: Document) -> None:
        """The document was opened."""
        grammar = grammar_of(document.language_id, document.path)
        self._states[document.uri] = _State(document, grammar, document.revision)

    def changed(self, document: Document, change: TextChange, origin: Origin) -> None:  # noqa: ARG002 (a listener's)
        """Report a change to the tree, which is parsed again when it is needed."""
        state = self._states.get(document.uri)
        if state is None or state.document is not document:
            return
        if state.revision + 1 != document.revision:
            state.tree = None
        state.revision = document.revision
        if state.tree is not None:
            state.tree.edit(document, change)
        if not {*change.inserted, *change.removed}.isdisjoint("\r\n"):
            state.blocks = None

    def closed(self, document: Document) -> None:
        """Drop the tree."""
        self._states.pop(document.uri, None)

    def tree(self, document: Document, *, seconds: float | None = None) -> Tree | None:
        """The tree of the current text; None without a grammar, for a huge text, and after `seconds`.

        By default, `seconds` are those of one query, and of one only in each revision.
        """
        state = self._state(document)
        if state.grammar is None or len(document) > LONGEST_TEXT:
            return None
        if state.tree is None:
            parser = parser_for(state.grammar)
            if parser is None:
                state.grammar = None
                return None
            state.tree = LazyTree(parser, self._clock)
        if seconds is None and state.late == document.revision:
            return state.tree.current
        found = state.tree.get(document.text, self._parse_seconds if seconds is None else seconds)
        if found is None:
            state.late = document.revision
        return found

    async def parse(self, document: Document, *, seconds: float = _PATIENCE) -> None:
        """Prepare the tree, if that takes no longer; other tasks run every few milliseconds."""
        until = self._clock() + seconds
        state = self._state(document)
        while state.grammar is not None and len(document) <= LONGEST_TEXT and self._clock() < until:
            if state.tree is None:
                await asyncio.to_thread(
                    parser_for, state.grammar
                )  # the first time a grammar is loaded, which takes longer
            await asyncio.sleep(0)
            # The last step also balances the tree, which cannot be interrupted.
            if self.tree(document, seconds=self._parse_seconds / 4) is not None:
                return

    def scopes(self, document: Document, offset: int) -> tuple[Definition, ...]:
        """The definitions that enclose `offset`, the innermost last."""
        return scopes_in(document, self.tree(document), self._state(document).grammar, offset)

    def snapshot(self, document: Document) -> CodeSnapshot:
        """The syntax of the document as it is now."""
        tree, grammar = self.tree(document), self._state(document).grammar
        return CodeSnapshot(document.copy(), None if tree is None else tree.copy(), grammar, self._parse_seconds)

    def identifiers_near(self, document: Document, offset: int) -> tuple[str, ...]:
        """Distinct names without keywords: of the nearest lines, then of enclosing signatures, then of more lines."""
        found: dict[str, None] = {}
        with suppress(SpentError):
            Budget(_NAMES_SECONDS).run(self._collect, document, offset, found)
        return tuple(found)[:_MOST_IDENTIFIERS]

    def _collect(self, document: Document, offset: int, found: dict[str, None]) -> None:
        known, tree = keywords(self._state(document).grammar), self.tree(document)
        line = document.line_of(offset)
        near = _words(document, offset, line - _NEAR_LINES, line + _NEAR_LINES + 1, known)
        found.update((word, None) for word, start in near if _is_name(tree, start, word))
        for scope in reversed(self.scopes(document, offset)):
            words = WORD.findall(scope.signature)
            found.update(dict.fromkeys(word for word in words if word not in known and len(word) >= _SHORTEST))
        if len(found) < _MOST_IDENTIFIERS:
            far = _words(document, offset, line - _FAR_LINES, line + _FAR_LINES + 1, known.union(found))
            names = (word for word, start in far if _is_name(tree, start, word))
            found.update(dict.fromkeys(islice(names, _MOST_IDENTIFIERS - len(found))))

    def block_starts(self, document: Document) -> tuple[int, ...]:
        """Lines that are good beginnings of an excerpt, ascending; the first is 0."""
        state = self._state(document)
        if state.blocks is None:
            tree = self.tree(document)
            if tree is None or state.grammar is None:
                # Not cached: the tree may be there the next time.
                return block_starts_by_lines(document.text)
            state.blocks = block_starts(tree, state.grammar, document.text)
        return state.blocks

    def in_comment_or_string(self, document: Document, offset: int) -> Inside | None:
        """Whether text typed at `offset` goes into a comment or a string."""
        tree = self.tree(document)
        found = "unknown" if tree is None else inside(tree, document.text, offset)
        if found == "unknown":
            return comment_or_string_by_line(document, offset)
        if found is None and tree is not None and tree.root_node.has_error:
            kind, opened = opened_before(document, offset)
            return "string" if kind == "string" and begins_unclosed_string(tree, opened) else None
        return found

    def _state(self, document: Document) -> _State:
        state = self._states.get(document.uri)
        if state is None or state.document is not document or state.revision != document.revision:
            # The caller is no listener, or changes were not reported: start anew.
            self.opened(document)
            state = self._states[document.uri]
        return state


@dataclass(frozen=True, slots=True)
class CodeSnapshot:
    """The syntax of one text, which nobody changes any more.

    Attributes:
        document: a copy of its own.
        tree: None without a grammar, for a huge text, and where parsing took too long.
        parse_seconds: limit of one parse.
    """

    document: Document
    tree: Tree | None
    grammar: Grammar | None
    parse_seconds: float = _PARSE_SECONDS

    def scope(self, offset: int) -> tuple[int, int] | None:
        """Start and end of the innermost function or class around an offset; None if there is none."""
        scopes = scopes_in(self.document, self.tree, self.grammar, offset)
        return next(((each.start, each.end) for each in reversed(scopes) if each.kind != "block"), None)

    def errors(self, start: int, end: int, text: str) -> tuple[int, int] | None:
        """How many syntax errors there are, and how many with `start:end` replaced by a text; None if unknown."""
        tree, grammar, document = self.tree, self.grammar, self.document
        parser = None if tree is None or grammar is None else parser_for(grammar)
        if tree is None or parser is None or grammar is None:
            return None
        before, whole = errors(tree.root_node, grammar), document.text
        if before is None or whole[start:end] == text:
            return None if before is None else (before, before)
        lazy = LazyTree.beginning_with(tree.copy(), parser, Work())
        lazy.edit(document, document.replacing(start, end, text))
        after = lazy.get(whole[:start] + text + whole[end:], self.parse_seconds)
        counted = None if after is None else errors(after.root_node, grammar)
        if after is None or counted is None:
            return None
        words = (each.span() for each in WORD.finditer(text) if each[0] in grammar.reserved)
        return before, counted + sum(_is_taken_for_name(after, start + first, start + last) for first, last in words)


def scopes_in(document: Document, tree: Tree | None, grammar: Grammar | None, offset: int) -> tuple[Definition, ...]:
    """The definitions of a document that enclose `offset`, the innermost last; without a tree, by indentation."""
    if tree is None or grammar is None:
        return scopes_by_indentation(document, offset)
    text = document.text
    line_start = document.line_start(document.line_of(offset))
    blank = not text[line_start:offset].strip()
    # On an empty line, or at the end of one, the tree has already left the block, but the user has not.
    before = max(0, len(text[:offset].rstrip()) - 1)
    at = before if grammar.indented and blank else max(0, offset - grammar.indented)
    scopes = tuple(
        each
        for each in enclosing(tree, grammar, text, at)
        if offset < each.end or not blank or document.place(each.head)[1] < offset - line_start
    )
    return scopes + _unfinished(document, offset, scopes) if in_error(tree, before) else scopes


def _unfinished(document: Document, offset: int, known: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """The scopes by indentation below the last one of a tree that an unfinished statement has confused."""
    last = known[-1].start if known else -1
    return tuple(
        scope
        for scope in scopes_by_indentation(document, offset)
        if scope.start > last and (scope.kind != "block" or document.text[scope.start : scope.start + 1].strip())
    )
