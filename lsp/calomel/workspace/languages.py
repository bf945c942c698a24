"""Which grammar reads a document or a file. A grammar is imported when it is first used, and only then."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import PurePath
from typing import Final

from tree_sitter import Language, Parser


@dataclass(frozen=True, slots=True)
class Grammar:
    """One grammar, and what it reads.

    Attributes:
        name: ours, the key of `calomel.workspace.node_kinds`.
        module, function: of the wheel that carries it.
        ids: the language ids of the protocol, and Neovim's file types where they differ.
        suffixes: of file names, with the dot.
        indented: whether indentation says where a block ends.
    """

    name: str
    module: str
    ids: tuple[str, ...]
    suffixes: tuple[str, ...]
    function: str = "language"
    indented: bool = False


GRAMMARS: Final = (
    Grammar("python", "tree_sitter_python", ("python",), (".py", ".pyi", ".pyw"), indented=True),
    Grammar(
        "javascript",
        "tree_sitter_javascript",
        ("javascript", "javascriptreact", "javascript.jsx"),
        (".js", ".jsx", ".mjs", ".cjs"),
    ),
    Grammar(
        "typescript",
        "tree_sitter_typescript",
        ("typescript",),
        (".ts", ".mts", ".cts"),
        function="language_typescript",
    ),
    Grammar("tsx", "tree_sitter_typescript", ("typescriptreact", "typescript.tsx"), (".tsx",), function="language_tsx"),
    Grammar("go", "tree_sitter_go", ("go",), (".go",)),
    Grammar("rust", "tree_sitter_rust", ("rust",), (".rs",)),
    Grammar("java", "tree_sitter_java", ("java",), (".java",)),
    Grammar("c", "tree_sitter_c", ("c",), (".c", ".h")),
    Grammar(
        "cpp",
        "tree_sitter_cpp",
        ("cpp", "c++", "cuda-cpp", "cuda"),
        (".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".cu", ".cuh"),
    ),
    Grammar("c_sharp", "tree_sitter_c_sharp", ("csharp", "cs"), (".cs",)),
    Grammar("ruby", "tree_sitter_ruby", ("ruby",), (".rb", ".rake")),
    Grammar("bash", "tree_sitter_bash", ("shellscript", "sh", "bash", "zsh"), (".sh", ".bash")),
    Grammar("json", "tree_sitter_json", ("json", "jsonc"), (".json",)),
    Grammar("html", "tree_sitter_html", ("html",), (".html", ".htm")),
    Grammar("css", "tree_sitter_css", ("css",), (".css",)),
)
_BY_ID: Final = {language_id: grammar for grammar in GRAMMARS for language_id in grammar.ids}
_BY_SUFFIX: Final = {suffix: grammar for grammar in GRAMMARS for suffix in grammar.suffixes}
# A word of a grammar's own; what it holds shorter or longer than this is no keyword.
_LONGEST_KEYWORD: Final = 20


def grammar_of(language_id: str | None, path: str | None = None) -> Grammar | None:
    """The grammar of a language id; where the id is unknown, that of the file name's suffix; None without one."""
    found = _BY_ID.get(language_id or "")
    if found is None and path is not None:
        found = _BY_SUFFIX.get(PurePath(path).suffix.lower())
    return found


@cache
def load(grammar: Grammar) -> Language | None:
    """The grammar itself, imported on the first call; None when its wheel is absent or does not fit this library."""
    try:
        return Language(getattr(import_module(grammar.module), grammar.function)())
    except (ImportError, AttributeError, ValueError):
        return None


@cache
def keywords(grammar: Grammar | None) -> frozenset[str]:
    """The words of the language itself. Without a grammar, those that most languages share."""
    language = None if grammar is None else load(grammar)
    if language is None:
        return COMMON_KEYWORDS
    kinds = (
        language.node_kind_for_id(number)
        for number in range(language.node_kind_count)
        if not language.node_kind_is_named(number)
    )
    own = {kind for kind in kinds if kind is not None and kind.isidentifier() and len(kind) <= _LONGEST_KEYWORD}
    return frozenset(own | CONSTANTS)


def parser_for(grammar: Grammar) -> Parser | None:
    """A new parser; None when the grammar cannot be had."""
    language = load(grammar)
    return None if language is None else Parser(language)


# Words that grammars give a name of its own, as if they were identifiers.
CONSTANTS: Final = frozenset({
    "True", "False", "None", "true", "false", "null", "nil", "undefined", "NULL", "nullptr",
    "self", "cls", "this", "super", "_",
})  # fmt: skip
COMMON_KEYWORDS: Final = CONSTANTS | frozenset({
    "abstract", "and", "as", "assert", "async", "await", "begin", "bool", "boolean", "break", "by", "case", "catch",
    "char", "class", "const", "continue", "def", "default", "defer", "delete", "do", "double", "elif", "else", "elsif",
    "end", "enum", "except", "export", "extends", "extern", "final", "finally", "float", "fn", "for", "from", "func",
    "function", "global", "goto", "if", "impl", "implements", "import", "in", "include", "inline", "instanceof", "int",
    "interface", "is", "lambda", "let", "local", "long", "loop", "match", "mod", "module", "mut", "namespace", "new",
    "not", "or", "override", "package", "pass", "private", "protected", "pub", "public", "raise", "range", "ref",
    "require", "return", "select", "short", "signed", "sizeof", "static", "string", "struct", "switch", "template",
    "then", "throw", "throws", "trait", "try", "type", "typedef", "typename", "typeof", "unless", "unsafe", "unsigned",
    "until", "use", "using", "val", "var", "virtual", "void", "volatile", "when", "where", "while", "with", "yield",
})  # fmt: skip
