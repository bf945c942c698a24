"""Brackets and quotes of source code without their counterpart: a scanner of a few lines, no parser.

It knows strings and comments as far as they can be known from the middle of a file. Where it is wrong, it is wrong
about a text before and after a change alike.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TRIPLE: Final = r'"""(?:\\.|[^\\])*?"""'
_DOUBLE: Final = r'"(?:\\.|[^"\\\r\n])*"'
_SINGLE: Final = r"'(?:\\.|[^'\\\r\n])*'"
_BACKTICK: Final = r"`(?:\\.|[^`\\])*`"
_BLOCK: Final = r"/\*.*?\*/"
_SLASHES: Final = r"//[^\r\n]*"
_HASH: Final = r"#[^\r\n]*"
# What can stand before a regular expression and not before a division.
_BEFORE_PATTERN: Final = r"(?<=[=(,:\[!&|?{;])\s*"
_PATTERN: Final = _BEFORE_PATTERN + r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\r\n])*\]|[^/\\\[\r\n])+/"
_CHARACTER: Final = r"'(?:\\(?:u\{[^}']*\}|x..|.)|[^'\\\r\n])'"
_RAW: Final = r'\br(?P<raw>#*)".*?"(?P=raw)'


def _scanner(skipped: tuple[str, ...], quotes: str) -> re.Pattern[str]:
    return re.compile(rf"{'|'.join(skipped)}|(?P<bracket>[()\[\]{{}}])|(?P<quote>{quotes})", re.DOTALL)


_C: Final = _scanner((_SLASHES, _BLOCK, _DOUBLE, _SINGLE), r"[\"']")
_TEXT_BLOCKS: Final = _scanner((_SLASHES, _BLOCK, _TRIPLE, _DOUBLE, _SINGLE), r"\"\"\"|[\"']")
# An apostrophe in the text of a tag is no quote, a lone one between letters never is.
_SCRIPT: Final = _scanner(
    (_PATTERN, _SLASHES, _BLOCK, _DOUBLE, _SINGLE, _BACKTICK), r"[\"`]|(?<![^\W\d_])'|'(?![^\W\d_])"
)
_GO: Final = _scanner((_SLASHES, _BLOCK, _DOUBLE, _SINGLE, r"`[^`]*`"), r"[\"'`]")
_RUST: Final = _scanner((_SLASHES, _BLOCK, _RAW, r'"(?:\\.|[^"\\])*"', _CHARACTER), r"\"")
_PYTHON: Final = _scanner((_HASH, _TRIPLE, r"'''(?:\\.|[^\\])*?'''", _DOUBLE, _SINGLE), r"\"\"\"|'''|[\"']")
_JSON: Final = _scanner((_SLASHES, _BLOCK, _DOUBLE), '"')

_SCANNERS: Final = {
    "python": _PYTHON,
    **dict.fromkeys(("javascript", "javascriptreact", "javascript.jsx"), _SCRIPT),
    **dict.fromkeys(("typescript", "typescriptreact", "typescript.tsx"), _SCRIPT),
    "go": _GO,
    "rust": _RUST,
    **dict.fromkeys(("c", "cpp", "c++", "cuda", "cuda-cpp", "objective-c", "objective-cpp"), _C),
    **dict.fromkeys(("java", "kotlin", "scala", "csharp", "cs", "swift", "dart"), _TEXT_BLOCKS),
    **dict.fromkeys(("json", "jsonc"), _JSON),
}
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


class Loose(NamedTuple):
    """Counts of what has no counterpart."""

    opening: int
    closing: int
    quotes: int


def loose(text: str, language_id: str) -> Loose | None:
    """What has no counterpart in `text`; None for a language that the scanner does not know."""
    scanner = _SCANNERS.get(language_id)
    if scanner is None:
        return None
    waiting: list[str] = []
    closing = quotes = 0
    for found in scanner.finditer(text):
        kind = found.lastgroup
        if kind == "bracket":
            character = found[0]
            if character in _CLOSING:
                waiting.append(_CLOSING[character])
            elif waiting and waiting[-1] == character:
                waiting.pop()
            else:
                closing += 1
        elif kind == "quote":
            quotes += 1
    return Loose(len(waiting), closing, quotes)


def inside_of_string(text: str, at: int, language_id: str) -> int | None:
    """Behind the string or comment of several lines that `at` is in; `at` itself when it is in none.

    None when it does not end any more. Counted, not parsed.
    """
    ends = ('"""', "'''") if language_id == "python" else ("`",) if language_id == "go" else ()
    for mark in ends:
        if text.count(mark, 0, at) % 2:
            end = text.find(mark, at)
            return None if end < 0 else end + len(mark)
    if language_id != "python" and text.rfind("/*", 0, at) > text.rfind("*/", 0, at):
        end = text.find("*/", at)
        return None if end < 0 else end + 2
    return at
