"""Phrases that read like a translation, and where pages and messages have them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.house.pages import ROOT, prose, told

PHRASES: Final = {
    "is no, is none": r"(?:is|are|was|were) (?:no|none)",
    "none of": r"none of",
    "stands": r"(?:stands?|stood)",
    "anew": r"anew",
    "whatever, whoever": r"(?:what|who)ever",
    "goes on": r"(?:goes|go|went) on",
    "behind (after)": r"behind",
    "beside (next to)": r"beside",
    "alone (only)": r"alone",
    "says, tells (show, list)": r"(?:says|tells|told)",
}
_GENERATED: Final = re.compile(r"<!-- (\w+) -->.*?<!-- /\1 -->", re.DOTALL)
_SPAN: Final = re.compile(r"`[^`\n]+`|\]\([^)]*\)")
_STRING: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
_COMMENT: Final = re.compile(r"^\s*(?://|--|/?\*).*$", re.MULTILINE)
# As many words as a message has at least; names and patterns have fewer.
_FEWEST: Final = 3


def pages() -> Iterator[tuple[str, str]]:
    """The prose of pages for readers, and the help of Neovim's plugin; decisions are history."""
    found = [path for path in told() if "decisions" not in path.parts]
    for path in (*found, *(ROOT / "editors/neovim/doc").glob("*.txt")):
        yield path.relative_to(ROOT).as_posix(), _SPAN.sub("X", _GENERATED.sub("", prose(path)))


def messages() -> Iterator[tuple[str, str]]:
    """Texts of three words or more in the programs; help of commands with them, other docstrings not."""
    for folder in ("server", "lsp", "model", "eval"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for text in _python(tree):
                yield path.relative_to(ROOT).as_posix(), text
    for path in (*(ROOT / "editors/vscode/src").rglob("*.ts"), *(ROOT / "editors/neovim").rglob("*.lua")):
        for match in _STRING.finditer(_COMMENT.sub("", path.read_text(encoding="utf-8"))):
            yield path.relative_to(ROOT).as_posix(), match[1] or match[2] or ""
    package = ROOT / "editors/vscode/package.json"
    for match in _STRING.finditer(package.read_text(encoding="utf-8")):
        yield package.relative_to(ROOT).as_posix(), match[1]


def _python(tree: ast.Module) -> Iterator[str]:
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value
        if isinstance(node, ast.FunctionDef) and any("command" in ast.dump(each) for each in node.decorator_list):
            yield ast.get_docstring(node) or ""


def places(texts: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    """By phrase, where it is."""
    found: dict[str, list[str]] = {name: [] for name in PHRASES}
    for file, text in texts:
        if len(text.split()) < _FEWEST:
            continue
        for name, pattern in PHRASES.items():
            for match in re.finditer(rf"\b{pattern}\b", text, re.IGNORECASE):
                around = text[max(0, match.start() - 40) : match.end() + 30]
                found[name].append(f"{file}: …{' '.join(around.split())}…")
    return found
