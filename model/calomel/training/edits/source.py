"""A parsed file of a commit."""

from __future__ import annotations

from functools import cache, cached_property
from importlib import import_module
from pathlib import PurePosixPath
from typing import Final

from tree_sitter import Language, Parser

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


class Source:
    """One file; parsed when first needed.

    Attributes:
        path: with forward slashes; ".tsx" has a grammar of its own.
        language: one of `LANGUAGES`.
        text: the file's text.
    """

    def __init__(self, path: str, language: str, text: str) -> None:
        if language not in LANGUAGES:
            raise ValueError(f"{language!r} is not one of {', '.join(LANGUAGES)}")
        self.path = path
        self.language = language
        self.text = text

    def with_text(self, text: str) -> Source:
        """The same file with another text."""
        return Source(self.path, self.language, text)

    @cached_property
    def has_error(self) -> bool:
        """Whether the parser had to guess anywhere."""
        grammar = "tsx" if PurePosixPath(self.path).suffix.lower() == ".tsx" else self.language
        return _parser(grammar).parse(self.text.encode("utf-8", "surrogatepass")).root_node.has_error


@cache
def _parser(grammar: str) -> Parser:
    module, function = _GRAMMARS[grammar]
    return Parser(Language(getattr(import_module(module), function)()))
