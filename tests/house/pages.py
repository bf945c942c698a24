"""The pages of the documentation, and what stands in them."""

from __future__ import annotations

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
