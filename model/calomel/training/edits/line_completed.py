"""A line is typed whose words the file has used before. Python, TypeScript, JavaScript, Go, Rust."""

from __future__ import annotations

import random
import re
from typing import Final

from calomel.training.edits.restored import restored
from calomel.training.edits.source import Source
from calomel.training.edits.statements import line_removal, one_line_statements
from calomel.training.edits.story import Story

_WORD: Final = re.compile(r"[^\W\d]\w*")
_SHORTEST: Final = 12
_LONGEST: Final = 110
_TRIES: Final = 10
# Of a line's words, so many were there before: what comes from nowhere nobody can guess.
_KNOWN_SHARE: Final = 0.7


def line_completed(source: Source, rng: random.Random) -> Story | None:
    """One statement of one line is added. Python, TypeScript, JavaScript, Go, Rust."""
    nodes = list(one_line_statements(source))
    for node in rng.sample(nodes, min(_TRIES, len(nodes))):
        start, end = source.span(node)
        line = source.text[start:end]
        if not _SHORTEST <= len(line) <= _LONGEST or line[0] in "'\"":
            continue
        words = _WORD.findall(line)
        known = set(_WORD.findall(source.text[:start]))
        if not words or sum(word in known for word in words) < _KNOWN_SHARE * len(words):
            continue
        story = restored("line_completed", source, [line_removal(source, start, end)])
        if story is not None:
            return story
    return None
