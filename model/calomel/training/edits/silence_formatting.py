"""The person moves code about without changing what it says."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Final

from calomel.training.edits.aimless import is_comment, lines_of, marker
from calomel.training.edits.past import past_of, places_of
from calomel.training.edits.places import asked
from calomel.training.edits.scene import Focus, Scene
from calomel.training.edits.story import Change, Story

_KIND: Final = "silence:formatting"
_CALL: Final = re.compile(r"[\w.]+\(([^()'\"`]{8,})\)")
_SPACED: Final = re.compile(r"(?<=\w) ([-+*/]|==|=) (?=\w)")
_COMMENT_GAP: Final = re.compile(r" {1,3}(#|//) ")
_STATEMENT: Final = re.compile(r"^[ \t]*(if|for|while|return|let|const|def|func|fn|class|async|export|pub)\b")
_TRIES: Final = 60


def silence_formatting(story: Story, rng: random.Random) -> Scene | None:
    """The moment behind a change of layout, with the story done before it; None where no line offers one."""
    text = story.states()[-1]
    lines = lines_of(text)
    for _ in range(_TRIES):
        start, end = rng.choice(lines)
        line = text[start:end]
        found = None if is_comment(line, story.language) else rng.choice(_KINDS)(line, story.language, rng)
        if found is None:
            continue
        edit = Change(start + found.start, start + found.end, found.text)
        now = edit.apply(text)
        made = (*story.changes, edit)
        cursor = Focus(edit.start + len(edit.text), _KIND, cursor=True)
        focuses = asked(now, (), [cursor], places_of(made)[1:], _KIND, rng.choice((0, 1)), rng)
        return Scene(story.language, story.path, now, past_of(story, rng).hunks(made), (), focuses)
    return None


def _broken_call(line: str, language: str, _rng: random.Random) -> Change | None:
    match = _CALL.search(line)
    # What opens a block, or is a comment at the line's end, reads worse on lines of its own.
    if match is None or marker(language) in line or line.rstrip().endswith((":", "{")):
        return None
    indent = line[: len(line) - len(line.lstrip())]
    unit = "\t" if language == "go" else "  " if language in {"typescript", "javascript"} else "    "
    comma = "," if language != "python" or not match[1].strip().startswith("*") else ""
    inside = match[1].strip().rstrip(",")
    return Change(match.start(1), match.end(1), f"\n{indent}{unit}{inside}{comma}\n{indent}")


def _tight(line: str, _language: str, rng: random.Random) -> Change | None:
    found = list(_SPACED.finditer(line))
    if not found or "'" in line or '"' in line:
        return None
    match = rng.choice(found)
    return Change(match.start(), match.end(), match[1])


def _blank_line(line: str, _language: str, _rng: random.Random) -> Change | None:
    return Change(0, 0, "\n") if _STATEMENT.match(line) else None


def _comment_gap(line: str, _language: str, _rng: random.Random) -> Change | None:
    match = _COMMENT_GAP.search(line, len(line) - len(line.lstrip()))
    if match is None or "'" in line or '"' in line:
        return None
    return Change(match.start(), match.start(1), "  " if match[0].startswith(f" {match[1]}") else " ")


_KINDS: Final[tuple[Callable[[str, str, random.Random], Change | None], ...]] = (
    _broken_call,
    _broken_call,
    _tight,
    _blank_line,
    _comment_gap,
)
