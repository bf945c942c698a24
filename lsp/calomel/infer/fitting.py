"""The text around a hole, and where the end of an answer may be cut off before it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import regex

from calomel.code.lines import LINE_END
from calomel.code.names import is_word
from calomel.code.scan import CLOSING, has_to_go_on, knows, loose, scan


def is_blank(text: str) -> bool:
    """Whether a text is empty or white space only."""
    return not text.strip()


def changes_only_space(removed: str, text: str) -> bool:
    """Whether an edit changes nothing but white space."""
    return "".join(removed.split()) == "".join(text.split())


# Closing brackets and quotes, then at most one of : { ; , - what editors close automatically, or what ends a statement.
# The same heuristic is used by Copilot and cursortab.
_INERT: Final = re.compile(r"""\s*+[)>}\]"'`]*+\s*+[:{;,]?+\s*+""")


def line_rest(suffix: str) -> str:
    """The part of `suffix` up to the end of the cursor's line."""
    match = LINE_END.search(suffix)
    return suffix[: match.start()] if match else suffix


def is_inert(rest: str) -> bool:
    """Whether the rest of a line is only such closers, so that an answer before it may have several lines."""
    return _INERT.fullmatch(rest) is not None


def splits_word(prefix: str, suffix: str) -> bool:
    """Whether the cursor is inside a word: word characters on both sides."""
    return is_word(prefix[-1:]) and is_word(suffix[:1])


_LONGEST_WORD: Final = 256
_HALF: Final = regex.compile(r"[^\W\d]\w*\Z")


def is_half_word(prefix: str, suffix: str) -> bool:
    """Whether the word before the cursor occurs nowhere else, so it is probably incomplete."""
    # From any start but the last, the expression reads to the end of the word.
    match = None if is_word(suffix[:1]) else _HALF.search(prefix, max(0, len(prefix) - _LONGEST_WORD))
    if match is None:
        return False
    other = re.compile(rf"\b{re.escape(match[0])}\b")
    return other.search(prefix, 0, match.start()) is None and other.search(suffix) is None


_CLOSING: Final = frozenset(CLOSING.values())
_QUOTES: Final = frozenset("\"'`")
# End an item or a statement, once.
_ENDS: Final = frozenset(";,")
# What closes or ends something.
CLOSERS: Final = _CLOSING | _QUOTES | _ENDS
# Fewer letters than this may be intended: "a" before "a" is not a repetition.
_MIN_LETTERS: Final = 3
_LINE_ENDS: Final = frozenset("\r\n")


def without_overlap(text: str, suffix: str) -> str:
    """`text` without an end that is also the start of `suffix`.

    Words are cut off if three or more letters repeat, or whole lines, or all that is left of the line. Brackets and
    quotes are cut off only if the answer closes something that it did not open, since `g()` in `f(|)` is right.
    """
    for size in range(min(len(text), len(suffix)), 0, -1):
        if text.endswith(suffix[:size]) and _repeats(text, suffix, size):
            return text[:-size]
    return _without_closers(text, suffix)


def _repeats(text: str, suffix: str, size: int) -> bool:
    shared = suffix[:size]
    behind, ahead = suffix[size : size + 1], text[len(text) - size - 1 : len(text) - size]
    if (is_word(shared[-1:]) and is_word(behind)) or (is_word(ahead) and is_word(shared[:1])):
        return False  # within a word: "print" before "printer" repeats nothing
    letters = sum(map(str.isalnum, shared))
    if letters >= _MIN_LETTERS:
        return True
    whole_lines = shared[0] in _LINE_ENDS and (not behind or behind in _LINE_ENDS or shared[-1] in _LINE_ENDS)
    if whole_lines:
        return letters > 0
    rest = line_rest(suffix)
    return any(map(str.isalnum, rest)) and shared.startswith(rest) and size < len(text)


def _without_closers(text: str, suffix: str) -> str:
    """`text` without what closes at its end what it did not open, and what follows the cursor anyway."""
    rest = line_rest(suffix).strip()
    unopened = _unopened(text)
    size = 0
    while size < min(len(rest), len(text)) and rest[size] in CLOSERS:
        size += 1
    for count in range(size, 0, -1):
        end = text[len(text) - count :]
        left = text[:-count]
        if end == rest[:count] and all(len(left) + at in unopened for at in range(count)):
            return text if is_blank(left) and end[0] in _ENDS else left
    return text


def _unopened(text: str) -> frozenset[int]:
    """Offsets of closing brackets and quotes that `text` did not open, and of `;` and `,` outside of any."""
    open_brackets: list[str] = []
    quote = ""
    quote_at = 0
    places: list[int] = []
    for at, character in enumerate(text):
        if quote:
            if character == quote:
                quote = ""
        elif character in _QUOTES:
            quote, quote_at = character, at
        elif character in CLOSING:
            open_brackets.append(CLOSING[character])
        elif character in _CLOSING:
            if open_brackets and open_brackets[-1] == character:
                open_brackets.pop()
            else:
                places.append(at)
        elif character in _ENDS and not open_brackets:
            places.append(at)
    if quote:
        # An unmatched quote closes the one before the cursor; brackets after it were not inside a string.
        places = [*places, quote_at, *(quote_at + 1 + at for at in _unopened(text[quote_at + 1 :]))]
    return frozenset(places)


_PIECE: Final = regex.compile(r"\w+|[^\w\s]")


def places(line: str, language_id: str) -> list[int]:
    """Where a line may be cut, last place first: after a word, a bracket or a string, with nothing left open.

    Empty for a line with mismatched brackets, which is wrong, not unfinished.
    """
    if not knows(language_id):
        return []
    if loose(line, language_id).brackets:
        return []
    return [end for end in reversed(list(_ends(line, language_id))) if not has_to_go_on(line[:end])]


def _ends(line: str, language_id: str) -> Iterator[int]:
    at = depth = 0
    for kind, start, end in scan(line, language_id):
        if depth == 0:
            yield from (match.end() for match in _PIECE.finditer(line, at, start))
        if kind == "bracket":
            depth = depth + 1 if line[start] in "([{" else max(0, depth - 1)
        elif kind != "skipped":
            return
        if depth == 0:
            yield end
        at = end
    if depth == 0:
        yield from (match.end() for match in _PIECE.finditer(line, at))
