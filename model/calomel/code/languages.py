"""Which grammar parses a document or a file, and its names for what matters here; the tables are `languages.toml`.

A grammar is imported only when it is first used, and so is tree-sitter: a machine that only trains has none.
"""

from __future__ import annotations

import builtins
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tree_sitter import Language, Parser

TABLES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))

# Variables count where the whole file sees them, and where they hold a function or a class.
VARIABLES: Final = frozenset({"assignment", "variable_declarator", "const_spec", "var_spec"})
# A mere mention has the same node kind as the definition, but no body.
WITH_BODY_ONLY: Final = frozenset({"enum_specifier", "struct_specifier", "union_specifier", "class_specifier"})
# The members of these are blocks of their own.
CONTAINERS: Final = frozenset({"class", "interface", "struct", "impl", "trait", "module", "enum", "union"})
# Values that make a variable a function or a class, wherever it stands.
CALLABLE_VALUES: Final = frozenset({"arrow_function", "function_expression", "generator_function", "class"})
# Words that grammars give a node kind of their own, as if they were identifiers.
CONSTANTS: Final = frozenset(TABLES["words"]["constants"].split())
TYPES: Final = frozenset(TABLES["words"]["types"].split())
# What nobody calls anything, in the most common languages.
RESERVED: Final = TYPES.union(TABLES["words"]["reserved"].split())
COMMON_KEYWORDS: Final = CONSTANTS.union(*(TABLES["words"][kind].split() for kind in ("reserved", "keywords")))

_LINE_COMMENTS: Final[dict[str, str]] = {
    name: mark for mark, names in TABLES["comments"].items() for name in names.split()
}
_INTERPOLATION: Final = ("interpolation", "substitution", "expansion")
# Parts of strings are recognised by their kind's name; these have other names.
_STRINGS: Final = frozenset({
    "attribute_value", "char_literal", "character_literal", "heredoc_body", "heredoc_content", "regex", "rune_literal",
})  # fmt: skip
# Several strings, and code between them.
_GROUPS: Final = frozenset({"chained_string", "concatenated_string", "string_array"})
# Keywords of a grammar are at most this long.
_LONGEST_KEYWORD: Final = 20
_LOOKED_AT: Final = 4000


@dataclass(frozen=True, slots=True)
class Grammar:
    """One grammar, and what it parses.

    Attributes:
        name: ours, the key in `languages.toml`.
        module, function: of the wheel that contains it.
        ids: the language ids of the protocol, and Neovim's file types where they differ.
        suffixes: of file names, with the dot.
        indented: whether indentation determines where a block ends.
        definitions: kind of a node → kind of the definition.
        places: queries of the variables that count.
        top_places: the same, at the top level only.
        misplaced: kinds of nodes that the language does not allow at the top level.
        builtins: names that the language has without an import.
        reserved: words that are not names, although the grammar accepts them as names.
    """

    name: str
    module: str
    ids: tuple[str, ...]
    suffixes: tuple[str, ...]
    function: str = "language"
    indented: bool = False
    definitions: Mapping[str, str] = field(default_factory=dict, compare=False)
    places: tuple[str, ...] = ()
    top_places: tuple[str, ...] = ()
    misplaced: frozenset[str] = frozenset()
    builtins: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()


def _grammars(tables: Mapping[str, Any]) -> tuple[Grammar, ...]:
    found: dict[str, Grammar] = {}
    for name, table in tables.items():
        like = found.get(table.get("like", ""), Grammar(name, "", (), ()))
        kinds = {node: kind for kind, nodes in table.get("definitions", {}).items() for node in nodes.split()}
        misplaced = table.get("misplaced", "").replace("statements", TABLES["words"]["statements"]).split()
        own = dir(builtins) if name == "python" else ()
        found[name] = Grammar(
            name,
            table["module"],
            tuple(table["ids"]),
            tuple(table["suffixes"]),
            table.get("function", "language"),
            table.get("indented", False),
            {**like.definitions, **kinds},
            tuple(table.get("places", like.places)),
            tuple(table.get("top_places", like.top_places)),
            like.misplaced.union(misplaced),
            like.builtins.union(table.get("builtins", "").split(), own),
            like.reserved.union(table.get("reserved", "").split()),
        )
    return tuple(found.values())


GRAMMARS: Final = _grammars(TABLES["grammar"])
_BY_ID: Final = {language_id: grammar for grammar in GRAMMARS for language_id in grammar.ids}
_BY_SUFFIX: Final = {suffix: grammar for grammar in GRAMMARS for suffix in grammar.suffixes}


def grammar_of(language_id: str | None, path: str | None = None) -> Grammar | None:
    """The grammar of a language id; for an unknown id, that of the file name's suffix; None without one."""
    found = _BY_ID.get(language_id or "")
    if found is None and path is not None:
        found = _BY_SUFFIX.get(PurePath(path).suffix.lower())
    return found


def language_by_look(text: str) -> Grammar | None:
    """The grammar of a text without a name, by the look of its last part; None if it looks like none or like two."""
    seen = sorted((len(look.findall(text[-_LOOKED_AT:])), name) for name, look in _looks().items())
    (second, _), (first, name) = seen[-2:]
    return _BY_ID[name] if first > second else None


@cache
def _looks() -> dict[str, re.Pattern[str]]:
    return {
        name: re.compile(rf"^[ \t]*(?:{'|'.join(table['heads'])})|{'|'.join(table['marks'])}", re.MULTILINE)
        for name, table in TABLES["looks"].items()
    }


@cache
def load(grammar: Grammar) -> Language | None:
    """The grammar itself, imported on the first call; None when its wheel is missing or does not fit this library."""
    from tree_sitter import Language

    try:
        return Language(getattr(import_module(grammar.module), grammar.function)())
    except (ImportError, AttributeError, ValueError):
        return None


def parser_for(grammar: Grammar) -> Parser | None:
    """A new parser; None when the grammar is not available."""
    from tree_sitter import Parser

    language = load(grammar)
    return None if language is None else Parser(language)


@cache
def keywords(grammar: Grammar | None) -> frozenset[str]:
    """The language's keywords. Without a grammar, those that most languages share."""
    language = None if grammar is None else load(grammar)
    if language is None:
        return COMMON_KEYWORDS
    kinds = (
        language.node_kind_for_id(number)
        for number in range(language.node_kind_count)
        if not language.node_kind_is_named(number)
    )
    own = {kind for kind in kinds if kind is not None and kind.isidentifier() and len(kind) <= _LONGEST_KEYWORD}
    return CONSTANTS.union(own)


@lru_cache(maxsize=64)
def builtin_names(language_id: str, path: str | None) -> frozenset[str] | None:
    """The names that a language has without an import, including its keywords; None if they are unknown."""
    grammar = grammar_of(language_id, path)
    return None if grammar is None or not grammar.builtins else grammar.builtins | keywords(grammar)


def line_comment(language_id: str) -> str:
    """What starts a comment that ends with its line."""
    return _LINE_COMMENTS.get(language_id, "//")


def is_comment(kind: str) -> bool:
    """Whether a node of this kind is a comment, in any of the grammars."""
    return "comment" in kind


def is_string(kind: str) -> bool:
    """Whether a node of this kind is a string or a part of one, in any of the grammars."""
    return kind in _STRINGS or ("string" in kind and kind not in _GROUPS and not is_interpolation(kind))


def is_interpolation(kind: str) -> bool:
    """Whether a node of this kind is code within a string."""
    return kind.endswith(_INTERPOLATION)
