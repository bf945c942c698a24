"""The pages of the documentation, and what stands in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_FENCE: Final = re.compile(
    r"^(?P<fence>```+)(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=fence)\s*$", re.MULTILINE | re.DOTALL
)
_INDENTED: Final = re.compile(r"(?:^(?: {4}|\t)[^\n]*\n)+", re.MULTILINE)
_SPAN: Final = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
_LINK: Final = re.compile(
    r"(?<!\\)!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]+(?:\([^()\s]*\)[^()\s]*)?)>?(?:\s+\"[^\"]*\")?\s*\)"
)
_HEADING: Final = re.compile(r"^#{1,6} +(.+?)\s*#*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """Code between fences, or indented."""

    language: str
    text: str


def pages() -> list[Path]:
    """Every page that a user may read."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("editors/*/*.md"), *ROOT.glob("model/**/*.md")]
    return sorted(path for path in found if "node_modules" not in path.parts)


def told() -> list[Path]:
    """Those that say how things are now: not the history, and no recorded results."""
    return [path for path in pages() if path.name != "CHANGELOG.md" and "results" not in path.parts]


def name(path: Path) -> str:
    """For test ids."""
    return path.relative_to(ROOT).as_posix()


def prose(path: Path) -> str:
    """The page without its code blocks."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    return _INDENTED.sub("\n", text)


def blocks(path: Path) -> Iterator[Block]:
    """The code blocks of a page."""
    text = path.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        yield Block(match["language"], match["body"])
    for match in _INDENTED.finditer(_FENCE.sub("", text)):
        yield Block("", "\n".join(line.removeprefix("\t").removeprefix("    ") for line in match[0].splitlines()))


def spans(path: Path) -> list[str]:
    """What stands between backticks in a line of text."""
    return [" ".join(match[1].split()) for match in _SPAN.finditer(prose(path))]


def links(path: Path) -> list[str]:
    """The targets of links and pictures."""
    return [match[1] for match in _LINK.finditer(_SPAN.sub("", prose(path)))]


def anchors(path: Path) -> set[str]:
    """Of the headings, as code hosts name them."""
    found: set[str] = set()
    for match in _HEADING.finditer(_FENCE.sub("", path.read_text(encoding="utf-8"))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 0
        while (candidate := slug if number == 0 else f"{slug}-{number}") in found:
            number += 1
        found.add(candidate)
    return found


# Phrases that read like a translation, and where pages and messages have them.
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
_CODE_OR_TARGET: Final = re.compile(r"`[^`\n]+`|\]\([^)]*\)")
_STRING: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
_COMMENT: Final = re.compile(r"^\s*(?://|--|/?\*).*$", re.MULTILINE)
# As many words as a message has at least; names and patterns have fewer.
_FEWEST: Final = 3


def reading() -> Iterator[tuple[str, str]]:
    """The prose of pages for readers, and the help of Neovim's plugin; decisions are history."""
    found = [path for path in told() if "decisions" not in path.parts]
    for path in (*found, *(ROOT / "editors/neovim/doc").glob("*.txt")):
        yield path.relative_to(ROOT).as_posix(), _CODE_OR_TARGET.sub("X", _GENERATED.sub("", prose(path)))


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
