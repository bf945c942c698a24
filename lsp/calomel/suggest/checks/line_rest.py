"""What follows the cursor on its line, and how much of an answer may stand before it."""

from __future__ import annotations

import re
from typing import Final

# Closing brackets and quotes, then at most one of : { ; , - what editors close by themselves, or what ends a statement.
# The same heuristic is used by Copilot and cursortab.
_INERT: Final = re.compile(r"""\s*[)>}\]"'`]*\s*[:{;,]?\s*""")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_WORD: Final = re.compile(r"\w")


def line_rest(suffix: str) -> str:
    """The part of `suffix` up to the end of the cursor's line."""
    found = _LINE_END.search(suffix)
    return suffix[: found.start()] if found else suffix


def is_inert(rest: str) -> bool:
    """Whether the rest of a line says nothing yet, so that an answer before it may have several lines."""
    return _INERT.fullmatch(rest) is not None


def splits_word(prefix: str, suffix: str) -> bool:
    """Whether the cursor stands inside a word: a character of a word on both sides."""
    return bool(prefix) and bool(suffix) and bool(_WORD.match(prefix[-1])) and bool(_WORD.match(suffix[0]))


def within_line(text: str, rest: str) -> str:
    """`text`, cut to its first line if something that counts follows the cursor on its line."""
    if is_inert(rest):
        return text
    found = _LINE_END.search(text)
    return text[: found.start()] if found else text
