"""The syntax of open documents: trees that follow the edits, and what is asked of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tree_sitter import Node, Tree

from calomel.workspace.blocks import block_starts
from calomel.workspace.clock import Clock
from calomel.workspace.definitions import Definition, definitions_in, enclosing, in_error
from calomel.workspace.documents import Document, RangeChange, TextChange
from calomel.workspace.history import Origin
from calomel.workspace.identifiers import identifiers_near
from calomel.workspace.indentation import (
    block_starts_by_lines,
    comment_or_string_by_line,
    opened_before,
    outline_by_lines,
    scopes_by_indentation,
)
from calomel.workspace.inside import Inside, begins_unclosed_string, inside
from calomel.workspace.languages import Grammar, grammar_of, keywords, parser_for
from calomel.workspace.lazy_tree import LONGEST_TEXT, LazyTree, parse_within, parser_text
from calomel.workspace.position import Encoding
from calomel.workspace.scope import OutlineItem, Scope

# What one question may spend on parsing; an interrupted parse goes on with the next question.
_PARSE_SECONDS: Final = 0.010
# For texts that are looked at once, such as a file with a suggestion in it.
_LONGEST_ONCE: Final = 200_000


@dataclass(slots=True)
class _State:
    """What is known of one document."""

    document: Document
    grammar: Grammar | None
    revision: int
    # Made when it is first asked for, which is when the grammar is imported.
    tree: LazyTree | None = None
    # Kept until a change has a line end in it: typing within a line moves no block.
    blocks: tuple[int, ...] | None = None
    outline: tuple[int, tuple[OutlineItem, ...]] | None = None


class SyntaxTrees:
    """A listener of the workspace. Every question has an answer by lines and indentation where there is no tree."""

    def __init__(self, clock: Clock = time.monotonic, *, parse_seconds: float = _PARSE_SECONDS) -> None:
        self._clock = clock
        self._parse_seconds = parse_seconds
        self._states: dict[str, _State] = {}

    def opened(self, document: Document) -> None:
        """The document was opened."""
        grammar = grammar_of(document.language_id, document.path)
        self._states[document.uri] = _State(document, grammar, document.revision)

    def changed(self, document: Document, change: TextChange, origin: Origin) -> None:  # noqa: ARG002 (a listener's)
        """The document was changed: the tree is told of it; it is parsed again when it is asked for."""
        state = self._states.get(document.uri)
        if state is None or state.document is not document:
            return
        if state.revision + 1 != document.revision:
            state.tree = None
        state.revision = document.revision
        if state.tree is not None:
            state.tree.edit(document, change)
        if _has_line_end(change.inserted) or _has_line_end(change.removed):
            state.blocks = None

    def saved(self, document: Document) -> None:
        """Nothing changes by saving."""

    def closed(self, document: Document) -> None:
        """The tree is let go."""
        self._states.pop(document.uri, None)

    def tree(self, document: Document) -> Tree | None:
        """The tree of the text as it is now; None without a grammar, for a huge text, and when time runs out."""
        state = self._state(document)
        if state.grammar is None or len(document) > LONGEST_TEXT:
            return None
        if state.tree is None:
            parser = parser_for(state.grammar)
            if parser is None:
                state.grammar = None
                return None
            state.tree = LazyTree(parser, self._clock)
        return state.tree.get(document.text, self._parse_seconds)

    def scopes(self, document: Document, offset: int) -> tuple[Scope, ...]:
        """The definitions that enclose `offset`, the innermost last."""
        tree, grammar = self.tree(document), self._state(document).grammar
        if tree is None or grammar is None:
            return scopes_by_indentation(document, offset)
        text = document.text
        line_start = document.line_start(document.line_of(offset))
        blank = not text[line_start:offset].strip()
        # On an empty line, or at the end of one, the tree has left the block already, and the user has not.
        before = max(0, len(text[:offset].rstrip()) - 1)
        at = before if grammar.indented and blank else max(0, offset - grammar.indented)
        found = [
            each
            for each in enclosing(tree, grammar, text, at)
            if offset < each.end or not blank or _column(document, each) < offset - line_start
        ]
        scopes = tuple(each.scope(text) for each in found)
        return scopes + _unfinished(document, offset, scopes) if in_error(tree, before) else scopes

    def identifiers_near(self, document: Document, offset: int, limit: int = 32) -> tuple[str, ...]:
        """Distinct identifiers around `offset`, the nearest first, without keywords."""
        grammar = self._state(document).grammar
        tree = self.tree(document)
        return identifiers_near(document, offset, self.scopes(document, offset), tree, keywords(grammar), limit)

    def block_starts(self, document: Document) -> tuple[int, ...]:
        """Lines at which an excerpt may begin well, ascending; the first is 0."""
        state = self._state(document)
        if state.blocks is None:
            tree = self.tree(document)
            if tree is None or state.grammar is None:
                # Not kept: the tree may be there the next time.
                return block_starts_by_lines(document.text)
            state.blocks = block_starts(tree, state.grammar, document.text)
        return state.blocks

    def block_ranges(self, document: Document, start_line: int, end_line: int) -> tuple[tuple[int, int], ...]:
        """The blocks within the lines from `start_line` up to `end_line`, as (first, end) lines, one behind another."""
        inner = [line for line in self.block_starts(document) if start_line < line < end_line]
        cuts = [start_line, *inner, end_line]
        return tuple((one, other) for one, other in pairwise(cuts) if one < other)

    def in_comment_or_string(self, document: Document, offset: int) -> Inside | None:
        """Whether text that is typed at `offset` goes into a comment or a string."""
        tree = self.tree(document)
        found = "unknown" if tree is None else inside(tree, document.text, offset)
        if found == "unknown":
            return comment_or_string_by_line(document, offset)
        if found is None and tree is not None and tree.root_node.has_error:
            kind, opened = opened_before(document, offset)
            return "string" if kind == "string" and begins_unclosed_string(tree, opened) else None
        return found

    def outline(self, document: Document) -> tuple[OutlineItem, ...]:
        """What the document defines, in file order, outer before inner."""
        state = self._state(document)
        if state.outline is None or state.outline[0] != document.revision:
            tree = self.tree(document)
            if tree is None or state.grammar is None:
                return outline_by_lines(document)
            text = document.text
            items = tuple(each.item(text) for each in definitions_in(tree, state.grammar, text))
            state.outline = document.revision, items
        return state.outline[1]

    def error_count(self, text: str, language_id: str, *, seconds: float = 0.050) -> int | None:
        """How many places of `text` its grammar does not understand; None without a grammar or in time."""
        grammar = grammar_of(language_id)
        parser = None if grammar is None or len(text) > _LONGEST_ONCE else parser_for(grammar)
        if parser is None:
            return None
        tree = parse_within(parser, parser_text(text), None, self._clock() + seconds, self._clock)
        return None if tree is None else errors(tree.root_node)

    def errors_after(self, document: Document, start: int, end: int, text: str) -> tuple[int, int] | None:
        """Errors of the document, and with its characters from `start` to `end` replaced by `text`.

        Costs a small part of two calls of `error_count`, since the tree is there. None as there.
        """
        tree, state = self.tree(document), self._state(document)
        parser = None if tree is None or state.grammar is None else parser_for(state.grammar)
        if tree is None or parser is None:
            return None
        trial = Document(document.uri, document.language_id, None, document.text, encoding=Encoding.UTF32)
        at = (trial.position_at(start), trial.position_at(end))
        change = trial.apply(RangeChange(*at, text))
        before = errors(tree.root_node)
        if change is None:
            return before, before
        lazy = LazyTree.beginning_with(tree.copy(), parser, self._clock)
        lazy.edit(trial, change)
        after = lazy.get(trial.text, self._parse_seconds)
        return None if after is None else (before, errors(after.root_node))

    def _state(self, document: Document) -> _State:
        state = self._states.get(document.uri)
        if state is None or state.document is not document or state.revision != document.revision:
            # Somebody asks who is no listener, or changes were not told: start anew.
            self.opened(document)
            state = self._states[document.uri]
        return state


def _column(document: Document, definition: Definition) -> int:
    return definition.head - document.line_start(document.line_of(definition.head))


def _unfinished(document: Document, offset: int, known: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """What indentation knows below the last scope of a tree that an unfinished statement has confused."""
    last = known[-1].start if known else -1
    return tuple(
        scope
        for scope in scopes_by_indentation(document, offset)
        if scope.start > last and (scope.kind != "block" or document.text[scope.start : scope.start + 1].strip())
    )


def _has_line_end(text: str) -> bool:
    return "\n" in text or "\r" in text


def errors(root: Node) -> int:
    """How many errors and missing pieces a tree has. Only the parts with an error are visited."""
    count, left = 0, [root]
    while left:
        node = left.pop()
        if node.is_error or node.is_missing:
            count += 1
        if node.has_error:
            left.extend(node.children)
    return count
