"""A parsed file, as the makers of edits read it."""

from __future__ import annotations

from functools import cache, cached_property
from importlib import import_module
from pathlib import Path, PurePosixPath
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
_QUERIES: Final = Path(__file__).with_name("queries")
LANGUAGES: Final = ("python", "typescript", "javascript", "go", "rust")


class Source:
    """One file and its syntax tree; parsed when first needed.

    Nodes count bytes of UTF-8; `span` and `slice` use characters, so that non-ASCII text is handled correctly.

    Attributes:
        path: with forward slashes; ".tsx" has a grammar of its own.
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

    def with_text(self, text: str) -> Source:
        """The same file with another text."""
        return Source(self.path, self.language, text)

    @cached_property
    def encoded(self) -> bytes:
        """The text in UTF-8, which the byte offsets of nodes refer to."""
        return self.text.encode("utf-8", "surrogatepass")

    @cached_property
    def tree(self) -> Tree:
        """The syntax tree."""
        return _parser(self._grammar).parse(self.encoded)

    @property
    def has_error(self) -> bool:
        """Whether the parser had to guess anywhere."""
        return self.tree.root_node.has_error

    def captured(self, capture: str) -> tuple[Node, ...]:
        """The nodes that `queries/LANGUAGE.scm` captures under this name, by position, outer before inner."""
        return self._captures.get(capture, ())

    @cached_property
    def _captures(self) -> dict[str, tuple[Node, ...]]:
        found = QueryCursor(_query(self._grammar)).captures(self.tree.root_node)
        return {
            capture: tuple(sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte)))
            for capture, nodes in found.items()
        }

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
        """All names, by position, whatever their role; with `name`, only those equal to it."""
        return self.captured("name") if name is None else self._by_name.get(name, ())

    @cached_property
    def names(self) -> dict[str, int]:
        """Every name of the file and how often it occurs, in the order of first use."""
        return {name: len(nodes) for name, nodes in self._by_name.items()}

    @cached_property
    def _by_name(self) -> dict[str, tuple[Node, ...]]:
        found: dict[str, list[Node]] = {}
        for node in self.captured("name"):
            found.setdefault(self.slice(node), []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def line_start(self, offset: int) -> int:
        """Where the line of a character offset begins."""
        return self.text.rfind("\n", 0, offset) + 1


@cache
def _language(grammar: str) -> Language:
    module, function = _GRAMMARS[grammar]
    return Language(getattr(import_module(module), function)())


@cache
def _parser(grammar: str) -> Parser:
    return Parser(_language(grammar))


@cache
def _query(grammar: str) -> Query:
    name = grammar.replace("tsx", "typescript")
    return Query(_language(grammar), (_QUERIES / f"{name}.scm").read_text(encoding="utf-8"))
