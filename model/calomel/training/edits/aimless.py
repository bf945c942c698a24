"""Small edits that nothing follows from: another number, another word in a comment, a comment more or less."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Final

from calomel.training.edits.story import Change

_NUMBER: Final = re.compile(r"(?<![\w.\"'])\d{1,4}(?![\w.\"'])")
_WORD: Final = re.compile(r"(?<=\s)[a-z]{3,12}(?=[\s.,]|\Z)")
_COMMENT: Final = {"python": re.compile(r"^[ \t]*# \S")}
_SLASHES: Final = re.compile(r"^[ \t]*// \S")
_WORDS: Final = (
    "always", "cached", "current", "default", "each", "empty", "existing", "first", "given", "initial", "internal",
    "last", "local", "only", "optional", "original", "possible", "previous", "remaining", "required", "whole",
)  # fmt: skip
_NOTES: Final = (
    "TODO: measure this", "keep in sync with the docs", "see above", "the order matters here",
    "not reached in practice",
    "FIXME: handle the empty case", "this is intentional", "cheap enough to do every time", "for older versions",
)  # fmt: skip
_TRIES: Final = 40
_INSERTED_SHARE: Final = 0.5


def aimless_edit(text: str, language: str, rng: random.Random) -> Change | None:
    """Draw one; None where no line of the text offers a place."""
    lines = lines_of(text)
    for _ in range(_TRIES):
        start, end = rng.choice(lines)
        edit = rng.choice(_KINDS)(text[start:end], language, rng)
        if edit is not None:
            return Change(start + edit.start, start + edit.end, edit.text)
    return None


def lines_of(text: str) -> list[tuple[int, int]]:
    """Start and end of every line, without line ends; never empty."""
    spans, start = [], 0
    while (end := text.find("\n", start)) >= 0:
        spans.append((start, end))
        start = end + 1
    return [*spans, (start, len(text))] if start < len(text) or not spans else spans


def is_comment(line: str, language: str) -> bool:
    """Whether a line is a comment of plain words, and nothing else."""
    return _COMMENT.get(language, _SLASHES).match(line) is not None


def marker(language: str) -> str:
    """What a comment of one line begins with."""
    return "#" if language == "python" else "//"


def _number(line: str, _language: str, rng: random.Random) -> Change | None:
    found = list(_NUMBER.finditer(line))
    if not found or is_comment(line, _language):
        return None
    match = rng.choice(found)
    value = int(match[0])
    other = rng.choice((value + 1, value * 2, value * 10, max(0, value - 1), value // 2))
    return None if other == value else Change(match.start(), match.end(), str(other))


def _comment_word(line: str, language: str, rng: random.Random) -> Change | None:
    found = list(_WORD.finditer(line)) if is_comment(line, language) else []
    if not found:
        return None
    match = rng.choice(found)
    word = rng.choice(_WORDS)
    if rng.random() < _INSERTED_SHARE:
        return Change(match.start(), match.start(), word + " ")
    return Change(match.start(), match.end(), word) if word != match[0] else None


def _comment_added(line: str, language: str, rng: random.Random) -> Change | None:
    bare = line.lstrip()
    # Between the lines of a statement or a string a comment may be wrong; before these it is not.
    if not re.match(r"(return|if|for|while|let|const|var)\b", bare):
        return None
    indent = line[: len(line) - len(bare)]
    return Change(0, 0, f"{indent}{marker(language)} {rng.choice(_NOTES)}\n")


def _comment_removed(line: str, language: str, _rng: random.Random) -> Change | None:
    return Change(len(line) - len(line.lstrip()), len(line), "") if is_comment(line, language) else None


_KINDS: Final[tuple[Callable[[str, str, random.Random], Change | None], ...]] = (
    _number,
    _comment_word,
    _comment_word,
    _comment_added,
    _comment_removed,
)
