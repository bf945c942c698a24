"""Where the answer of a model ends that only continues the text before a hole: what follows the hole decides.

Within a line the answer is the rest of a statement. On a blank line at the end of a block it may be several statements,
up to a blank line; before more statements of the same block it is one. A statement goes on while a bracket of it is
open, and with a block of its own unless that block follows the hole already. What the text after the hole closes, the
answer does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from calomel.code.languages import grammar_of
from calomel.code.lines import columns
from calomel.code.scan import CLOSING, marks, unmatched
from calomel.infer.fitting import is_inert, line_rest
from calomel.prompts.parts import PromptParts

_LINE: Final = re.compile(r"^[ \t]*(\S[^\r\n]*)", re.MULTILINE)
# What tokenizers do not know how to split before they have read on: a word or a run of signs with the space before it,
# or the last blank of an indentation.
_LAST_PIECE: Final = re.compile(r" ?(?:\w+|[^\w\s]+)\Z|\s\Z")
_LONGEST_PIECE: Final = 64
# Characters considered around a hole.
_BEFORE: Final = 24_000
_BEHIND: Final = 8_000


@dataclass(frozen=True, slots=True)
class Continuation:
    """The surroundings of a hole, as far as they tell where an answer ends.

    Attributes:
        language_id: for strings and comments, whose brackets do not count; empty if unknown.
        indent: columns before the cursor's line; before the cursor if the line is blank up to there.
        blank: the line is blank up to the cursor.
        within: more than closers follows the cursor on its line.
        tail: what follows on the cursor's line, up to the first bracket there that closes one before the cursor.
        waiting: what closes the brackets that are open at the cursor and that the text after the hole leaves open, the
            innermost last.
        owed: how many of them were opened on the cursor's line: the answer has to close these.
        following: the next line with text after the hole, without its indentation.
        below: columns before that line; -1 at the end of the file.
    """

    language_id: str
    indent: int
    blank: bool
    within: bool
    tail: str
    waiting: tuple[str, ...]
    owed: int
    following: str
    below: int

    def end(self, text: str) -> int | None:
        """The length of the beginning of `text` that belongs into the hole; None while more of it may."""
        waiting = list(self.waiting)
        for at, mark in marks(text, self.language_id):
            if mark in CLOSING:
                waiting.append(CLOSING[mark])
            elif mark != "\n":
                if not waiting or waiting.pop() != mark:
                    again = self.tail.endswith(mark) and text[: at + 1].endswith(self.tail)
                    return at + 1 - len(self.tail) if again else _trimmed(text, at)
            elif self.within or self._is_over(text, at, waiting):
                line = text[:at].rstrip()
                again = self.tail[-1:] not in CLOSING.values() and line.endswith(self.tail)
                return len(line) - len(self.tail) if again else at
        return None

    def _is_over(self, text: str, at: int, waiting: Sequence[str]) -> bool:
        """Whether the answer ends at a line end."""
        if len(waiting) > len(self.waiting) - self.owed or (self.blank and not text[:at].strip()):
            return False
        match = _LINE.search(text, at + 1)
        if match is None:
            return bool(text[:at].strip()) and text.count("\n", at) > 1
        line, depth = match[1], columns(match[0])
        if line == self.following or (text.count("\n", at, match.start()) > 1 and text[:at].strip()):
            return True
        if waiting and line.startswith(waiting[-1]):
            return False
        if depth > self.indent:
            return self.below > self.indent
        return depth < self.indent or not self.blank or self.below >= self.indent


def continuation(parts: PromptParts) -> Continuation:
    """For the hole of `parts`."""
    return _continuation(parts.prefix[-_BEFORE:], parts.suffix[:_BEHIND], parts.path)


@lru_cache(maxsize=8)
def _continuation(prefix: str, suffix: str, path: str | None) -> Continuation:
    grammar = grammar_of(None, path) if path else None
    language_id = "" if grammar is None else grammar.ids[0]
    start = prefix.rfind("\n") + 1
    line, rest = prefix[start:], line_rest(suffix)
    opened, _ = unmatched(prefix, language_id)
    owed = len(unmatched(line, language_id)[0])
    _, closed = unmatched(suffix, language_id)
    first = next((at for at, mark in marks(rest, language_id) if unmatched(rest[: at + 1], language_id)[1]), len(rest))
    waiting = tuple(closer for _, closer in opened[min(len(closed), len(opened)) :])
    following = _LINE.search(suffix, len(rest))
    return Continuation(
        language_id,
        columns(line),
        not line.strip(),
        not is_inert(rest),
        rest[: first + 1].rstrip(),
        waiting,
        min(owed, len(waiting)),
        "" if following is None else following[1].rstrip(),
        -1 if following is None else columns(following[0]),
    )


def last_piece(prefix: str, stops: Sequence[str]) -> str:
    """The end of a prefix that may be half of a token, for a model to write again; none with a stop string."""
    match = _LAST_PIECE.search(prefix, len(prefix) - _LONGEST_PIECE)
    text = "" if match is None else match[0]
    return "" if any(stop and (stop in text or text.endswith(stop[0])) for stop in stops) else text


def _trimmed(text: str, at: int) -> int:
    """`at`, or the end of the line before if there is nothing before `at` on its line."""
    kept = text[:at].rstrip(" \t")
    return len(kept.rstrip()) if kept.endswith("\n") else at
