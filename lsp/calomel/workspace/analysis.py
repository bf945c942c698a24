"""What one file contributes to the index. Pure: text in, numbers out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from calomel.prompts.differences import split_lines
from calomel.workspace.blocks import block_starts
from calomel.workspace.definitions import Definition, definitions_in
from calomel.workspace.documents import Document
from calomel.workspace.indentation import block_starts_by_lines, outline_by_lines
from calomel.workspace.languages import Grammar, grammar_of, parser_for
from calomel.workspace.lazy_tree import parse_within, parser_text
from calomel.workspace.words import count_numbers, words_in

# Long enough to hold a function, short enough to be about one thing (Zed's retrieval uses the same).
CHUNK_LINES: Final = 40
_SHORTEST_CHUNK: Final = 15
# A file that takes longer is read by its lines.
_PARSE_SECONDS: Final = 2.0
_KINDS: Final = ("other", "class", "enum", "function", "interface", "method", "module", "trait", "type", "variable")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some lines of a file.

    Attributes:
        line, end: first line, and the one behind the last.
        words: how often the number of each word occurs.
    """

    line: int
    end: int
    words: dict[int, int]


@dataclass(frozen=True, slots=True)
class Named:
    """A definition, as the index keeps it; lines as in `OutlineItem`, `end` is behind the last."""

    name: str
    kind: str
    line: int
    end: int
    body: int
    depth: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """One file.

    Attributes:
        lines: with their line ends.
        starts: lines at which an excerpt may begin well.
    """

    lines: list[str]
    starts: tuple[int, ...]
    chunks: tuple[Chunk, ...]
    definitions: tuple[Named, ...]


def analyse(text: str, path: str) -> Analysis:
    """Read a file's text; `path` tells its language."""
    starts, definitions = _structure(text, path)
    lines = split_lines(text)
    if not lines[-1]:
        lines.pop()
    return Analysis(lines, starts, _chunks(lines, starts), definitions)


def _structure(text: str, path: str) -> tuple[tuple[int, ...], tuple[Named, ...]]:
    grammar = grammar_of(None, path)
    parser = None if grammar is None else parser_for(grammar)
    if grammar is not None and parser is not None:
        deadline = time.monotonic() + _PARSE_SECONDS
        tree = parse_within(parser, parser_text(text), None, deadline, time.monotonic)
        if tree is not None:
            found = definitions_in(tree, grammar, text)
            return block_starts(tree, grammar, text), tuple(map(_named, found))
    document = Document("", "", None, text)
    items = outline_by_lines(document)
    named = (
        Named(each.name, each.kind, each.start_line, each.end_line + 1, each.body_line, each.depth) for each in items
    )
    return block_starts_by_lines(text), tuple(named)


def _named(found: Definition) -> Named:
    return Named(found.name, found.kind, found.start_line, found.end_line + 1, found.body_line, found.depth)


def _chunks(lines: list[str], starts: tuple[int, ...]) -> tuple[Chunk, ...]:
    """Runs of at most `CHUNK_LINES` lines that begin at good places where there are some."""
    found = []
    line, at = 0, 0
    while line < len(lines):
        end = min(line + CHUNK_LINES, len(lines))
        while at < len(starts) and starts[at] <= end:
            at += 1
        if end < len(lines) and at > 0 and starts[at - 1] >= line + _SHORTEST_CHUNK:
            end = starts[at - 1]
        found.append(Chunk(line, end, count_numbers(words_in("".join(lines[line:end])))))
        line = end
    return tuple(found)


def kind_number(kind: str) -> int:
    """A kind of definition as the index keeps it."""
    return _KINDS.index(kind) if kind in _KINDS else 0


def kind_name(number: int) -> str:
    """The kind of a number; "other" for those that nobody asks for."""
    return _KINDS[number]


def family_of(path: str) -> str:
    """The language of a file, with those in one that call each other."""
    grammar: Grammar | None = grammar_of(None, path)
    name = path.rpartition(".")[2] if grammar is None else grammar.name
    return {"typescript": "javascript", "tsx": "javascript", "cpp": "c"}.get(name, name)
