"""An answer that repeats what stands before or behind the cursor already: the repetition is taken off."""

from __future__ import annotations

import re
from typing import Final

from calomel.suggest.checks.line_rest import line_rest

_OPENING: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSING: Final = frozenset(_OPENING.values())
_QUOTES: Final = frozenset("\"'`")
# Fewer letters than this may well be meant: "a" before "a" is no repetition yet.
_MIN_LETTERS: Final = 3
_LINE_ENDS: Final = frozenset("\r\n")
_LAST_WORD: Final = re.compile(r"(?<!\w)([^\W\d]\w*)(?P<space>[ \t]*)\Z")
_OWN: Final = re.compile(r"(?<!\w)((?:self|this|cls)\.)\Z")
# `not not x`, `long long x`.
_TWICE: Final = frozenset({"not", "long"})


def without_echo(prefix: str, text: str) -> str:
    """`text` without a beginning that is also the last word of `prefix`: `return` behind `return `, or directly so."""
    near = prefix[-200:]
    own = _OWN.search(near)
    if own is not None:
        return text.removeprefix(own[1])
    last = _LAST_WORD.search(near)
    if last is None or last[1] in _TWICE or (not last["space"] and len(last[1]) < _MIN_LETTERS):
        return text
    again = re.match(last[1] + (r"(?:[ \t]+|\Z)" if last["space"] else r"(?!\w)"), text)
    return text if again is None else text[again.end() :]


def without_overlap(text: str, suffix: str) -> str:
    """`text` without an end that is also the beginning of `suffix`.

    Words are taken off when three or more letters repeat, or whole lines, or all that is left of the line. Brackets and
    quotes are taken off only if the answer closes something that it did not open, for `f(|)` wants `g()` as it is.
    """
    for size in range(min(len(text), len(suffix)), 0, -1):
        if text.endswith(suffix[:size]) and _repeats(text, suffix, size):
            return text[:-size]
    return _without_closers(text, suffix)


def _repeats(text: str, suffix: str, size: int) -> bool:
    shared = suffix[:size]
    behind, ahead = suffix[size : size + 1], text[len(text) - size - 1 : len(text) - size]
    if _continues(shared[-1:], behind) or _continues(ahead, shared[:1]):
        return False  # in the middle of a word: "print" before "printer" repeats nothing
    letters = sum(map(str.isalnum, shared))
    if letters >= _MIN_LETTERS:
        return True
    whole_lines = shared[0] in _LINE_ENDS and (not behind or behind in _LINE_ENDS or shared[-1] in _LINE_ENDS)
    if whole_lines:
        return letters > 0
    rest = line_rest(suffix)
    return any(map(str.isalnum, rest)) and shared.startswith(rest) and size < len(text)


def _continues(first: str, second: str) -> bool:
    return bool(first) and bool(second) and (first.isalnum() or first == "_") and (second.isalnum() or second == "_")


def _without_closers(text: str, suffix: str) -> str:
    """`text` without closing brackets at its end that it never opened and that follow the cursor anyway."""
    rest = line_rest(suffix).strip()
    unopened = _unopened(text)
    size = 0
    while size < min(len(rest), len(text)) and rest[size] in (_CLOSING | _QUOTES):
        size += 1
    for count in range(size, 0, -1):
        end = text[len(text) - count :]
        if end == rest[:count] and all(len(text) - count + at in unopened for at in range(count)):
            return text[:-count]
    return text


def _unopened(text: str) -> frozenset[int]:
    """Offsets of closing brackets and quotes in `text` whose beginning is not in it."""
    open_brackets: list[str] = []
    quote = ""
    quote_at = 0
    found: list[int] = []
    for at, character in enumerate(text):
        if quote:
            if character == quote:
                quote = ""
        elif character in _QUOTES:
            quote, quote_at = character, at
        elif character in _OPENING:
            open_brackets.append(_OPENING[character])
        elif character in _CLOSING:
            if open_brackets and open_brackets[-1] == character:
                open_brackets.pop()
            else:
                found.append(at)
    if quote:
        # A quote that stays open closes the one before the cursor; brackets behind it were not inside a string.
        found = [*found, quote_at, *(quote_at + 1 + at for at in _unopened(text[quote_at + 1 :]))]
    return frozenset(found)
