"""Numbers about the place of a suggestion and about its words, which tell a right one from a wrong one without a model.

Published filters for code completion live on such numbers; the list follows what cursortab asks its users for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.suggest.planned import Planned

_WORD: Final = re.compile(r"[^\W\d]\w{2,}")
_WORD_BEFORE: Final = re.compile(r"\w*\Z")
_LONGEST_WORD: Final = 64
# More words than that tell nothing new, and each is looked for in the whole text.
_WORDS: Final = 8
_CLASSES: Final = {
    **dict.fromkeys("([{", "open"),
    **dict.fromkeys(")]}", "close"),
    **dict.fromkeys("\"'`", "quote"),
    **dict.fromkeys(",;", "comma"),
    ".": "dot",
    ":": "colon",
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the cursor stands, and how new the words of a suggestion are there.

    Attributes:
        line_before: characters before the cursor on its line, without indentation.
        line_after: characters behind it on its line, without white space.
        word_before: letters directly before it.
        before: the kind of character before it, white space left out: `word`, `open`, `close`, `quote`, `comma`, `dot`,
            `colon`, `operator`, or `start` of the line.
        known_words: share of the suggestion's words that the document has already; None when it has none.
        repeats: how often its first line stands in the document already, up to 5.
    """

    line_before: int
    line_after: int
    word_before: int
    before: str
    known_words: float | None
    repeats: int


def surroundings(text: str, cursor: int, edits: Sequence[Planned]) -> Surroundings:
    """Of `edits` of `text`."""
    start = max(text.rfind("\n", 0, cursor), text.rfind("\r", 0, cursor)) + 1
    ends = [at for at in (text.find("\n", cursor), text.find("\r", cursor)) if at >= 0]
    head, rest = text[start:cursor], text[cursor : min(ends, default=len(text))]
    word = _WORD_BEFORE.search(head[-_LONGEST_WORD:])
    return Surroundings(
        line_before=len(head.strip()),
        line_after=len("".join(rest.split())),
        word_before=0 if word is None else len(word[0]),
        before=_class(head),
        known_words=_known(text, edits),
        repeats=_repeats(text, edits),
    )


def _class(head: str) -> str:
    last = head.rstrip()[-1:]
    if not last:
        return "start"
    if last.isalnum() or last == "_":
        return "word"
    return _CLASSES.get(last, "operator")


def _known(text: str, edits: Sequence[Planned]) -> float | None:
    words = list(dict.fromkeys(word for edit in edits for word in _WORD.findall(edit.text)))[:_WORDS]
    return sum(word in text for word in words) / len(words) if words else None


def _repeats(text: str, edits: Sequence[Planned]) -> int:
    first = next((line.strip() for edit in edits for line in edit.text.splitlines() if line.strip()), "")
    return min(5, text.count(first)) if first else 0
