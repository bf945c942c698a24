"""A parsed file: what the makers of edits read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from pathlib import PurePosixPath
from typing import Final

from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

# The wheel of each grammar, and the function in it.
_GRAMMARS: Final = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
}
LANGUAGES: Final = ("python", "typescript", "javascript", "go", "rust")
# What grammars call a name, by its role.
_NAMES: Final = (
    "identifier",
    "property_identifier",
    "private_property_identifier",
    "shorthand_property_identifier",
    "shorthand_property_identifier_pattern",
    "statement_identifier",
    "field_identifier",
    "type_identifier",
    "package_identifier",
    "label_name",
    "shorthand_field_identifier",
)


class Source:
    """One file and its syntax tree; nothing is parsed before it is asked for.

    Nodes count bytes of UTF-8; `span` and `slice` answer in characters, so that other text than ASCII is no trap.

    Attributes:
        path: with forward slashes; ".tsx" is read by a grammar of its own.
        language: one of `LANGUAGES`.
        text: the file's text.
    """

    def __init__(self, path: str, language: str, text: str) -> None:
        if language not in LANGUAGES:
            raise ValueError(f"{language!r} is none of {', '.join(LANGUAGES)}")
        self.path = path
        self.language = language
        self.text = text
        self._grammar = "tsx" if PurePosixPath(path).suffix.lower() == ".tsx" else language
        self._walked: dict[tuple[str, ...], tuple[Node, ...]] = {}

    def with_text(self, text: str) -> Source:
        """The same file with another text."""
        return Source(self.path, self.language, text)

    @cached_property
    def encoded(self) -> bytes:
        """The text in UTF-8: what byte offsets of nodes speak of."""
        return self.text.encode("utf-8", "surrogatepass")

    @cached_property
    def tree(self) -> Tree:
        """The syntax tree."""
        return _parser(self._grammar).parse(self.encoded)

    @property
    def root(self) -> Node:
        """The node of the whole file."""
        return self.tree.root_node

    @property
    def has_error(self) -> bool:
        """Whether the parser had to guess anywhere."""
        return self.root.has_error

    def walk(self, *kinds: str) -> Iterator[Node]:
        """All nodes of these kinds, by position, outer before inner. Kinds that the grammar lacks are passed over."""
        found = self._walked.get(kinds)
        if found is None:
            query = _query(self._grammar, kinds)
            captured = QueryCursor(query).captures(self.root).get("node", []) if query is not None else []
            found = tuple(sorted(captured, key=lambda node: (node.start_byte, -node.end_byte)))
            self._walked[kinds] = found
        return iter(found)

    def span(self, node: Node) -> tuple[int, int]:
        """Start and end of a node, in characters."""
        return self.offset(node.start_byte), self.offset(node.end_byte)

    def slice(self, node: Node) -> str:
        """The text of a node."""
        return self.encoded[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")

    def offset(self, byte: int) -> int:
        """Characters before a byte offset."""
        return byte if self._characters is None else self._characters[byte]

    @cached_property
    def _characters(self) -> list[int] | None:
        if self.text.isascii():
            return None
        counts = []
        for number, character in enumerate(self.text):
            counts.extend([number] * len(character.encode("utf-8", "surrogatepass")))
        return [*counts, len(self.text)]

    def identifiers(self, name: str | None = None) -> tuple[Node, ...]:
        """All names, by position, whatever their role; with `name`, those that read so."""
        return self._all_names if name is None else self._by_name.get(name, ())

    @cached_property
    def names(self) -> dict[str, int]:
        """Every name of the file and how often it stands there, in the order of first use."""
        return {name: len(nodes) for name, nodes in self._by_name.items()}

    @cached_property
    def _all_names(self) -> tuple[Node, ...]:
        return tuple(self.walk(*_NAMES))

    @cached_property
    def _by_name(self) -> dict[str, tuple[Node, ...]]:
        found: dict[str, list[Node]] = {}
        for node in self._all_names:
            found.setdefault(self.slice(node), []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def line_start(self, offset: int) -> int:
        """Where the line of a character offset begins."""
        return self.text.rfind("\n", 0, offset) + 1

    def indent(self, offset: int) -> str:
        """The blanks at the front of the line of a character offset."""
        start = end = self.line_start(offset)
        while end < len(self.text) and self.text[end] in " \t":
            end += 1
        return self.text[start:end]


@cache
def _language(grammar: str) -> Language:
    module, function = _GRAMMARS[grammar]
    return Language(getattr(import_module(module), function)())


@cache
def _parser(grammar: str) -> Parser:
    return Parser(_language(grammar))


@cache
def _query(grammar: str, kinds: tuple[str, ...]) -> Query | None:
    language = _language(grammar)
    known = [kind for kind in kinds if language.id_for_node_kind(kind, True) is not None]
    return Query(language, "[" + " ".join(f"({kind})" for kind in known) + "] @node") if known else None


# Share of the larger files that are read whole all the same, so that far-away uses are met too.
WHOLE_SHARE = 0.3
# Characters. Larger files take long to read, and their uses lie further apart than a story may reach.
WHOLE_CHARACTERS = 40_000


def window(source: Source, rng: random.Random, characters: int) -> Source:
    """Return the source itself when it is small, else some of its top-level pieces, drawn, about `characters` long."""
    size = len(source.text)
    if size <= characters or (size <= WHOLE_CHARACTERS and rng.random() < WHOLE_SHARE):
        return source
    starts = [0, *(source.offset(child.start_byte) for child in source.root.children), size]
    starts = sorted({source.line_start(start) if start < size else size for start in starts})
    first = rng.randrange(len(starts) - 1)
    last = max((i for i, start in enumerate(starts) if start - starts[first] <= characters), default=first)
    # From the end of the file go back as far as fits, or the last window would be a short one.
    if last == len(starts) - 1:
        first = min(i for i, start in enumerate(starts) if size - start <= characters or i == first)
    return source.with_text(source.text[starts[first] : starts[max(last, first + 1)]])
