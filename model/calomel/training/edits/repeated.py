"""The same edit at several places: small pieces on similar lines."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from typing import Final

from rapidfuzz import fuzz

from calomel.prompts.parts import Edit
from calomel.training.edits.naming import WORDS
from calomel.training.edits.scene import is_comment, lines_of
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story, story_of, taken_back

_LEAST: Final = 3
_MOST: Final = 10
# Maximum lines between two that belong together, and how similar they must be, in percent.
_GAP: Final = 4
_ALIKE: Final = 55.0
_TRIES: Final = 25
# What a person inserts into line after line: the piece is group 1.
_PIECES: Final = tuple(map(re.compile, WORDS["repeated"]["pieces"]))
# Previous text by the text that replaced it.
_OLDER: Final = WORDS["repeated"]["older"]
_NAMES: Final = WORDS["repeated"]["names"]
_TYPE_NAMES: Final = WORDS["repeated"]["types"]
_WORD: Final = re.compile(r"[^\W\d]\w*")


def repeated_edit(source: Source, rng: random.Random) -> Story | None:
    """One edit made on each of several lines, top to bottom. Python, TypeScript, JavaScript, Go, Rust."""
    groups = [group for group in _groups(source) if len(group) >= _LEAST]
    rng.shuffle(groups)
    tries = 0
    for group in groups:
        found = _edits(source, group)
        for removals in rng.sample(found, min(3, len(found))):
            tries += 1
            old = _older(source, removals, rng)
            story = taken_back("repeated_edit", source, story_of("repeated_edit", source, old))
            if story is not None or tries > _TRIES:
                return story
    return None


def _groups(source: Source) -> list[list[tuple[int, int]]]:
    """Nearby lines that are similar, as spans."""
    groups: list[list[tuple[int, int]]] = []
    open_groups: list[tuple[int, str, list[tuple[int, int]]]] = []
    for number, (start, end) in enumerate(lines_of(source.text)):
        line = source.text[start:end]
        if len(line.strip()) < 8 or is_comment(line, source.language):  # noqa: PLR2004 (a bracket, a keyword)
            continue
        open_groups = [each for each in open_groups if number - each[0] <= _GAP]
        indent = len(line) - len(line.lstrip())
        for at, (_, latest, group) in enumerate(open_groups):
            same = len(latest) - len(latest.lstrip()) == indent
            if same and len(group) < _MOST and fuzz.ratio(latest.strip(), line.strip()) >= _ALIKE:
                group.append((start, end))
                open_groups[at] = (number, line, group)
                break
        else:
            group = [(start, end)]
            groups.append(group)
            open_groups.append((number, line, group))
    return groups


def _edits(source: Source, group: list[tuple[int, int]]) -> list[list[Edit]]:
    """Pieces that most lines of a group have in common, each as edits that remove it everywhere."""
    found: defaultdict[tuple[int, str], list[Edit]] = defaultdict(list)
    known = _NAMES | _TYPE_NAMES.get(source.language, {})
    for start, end in group:
        line = source.text[start:end]
        for number, pattern in enumerate(_PIECES):
            match = pattern.search(line)
            if match is not None:
                found[number, match[1]].append(Edit(start + match.start(1), start + match.end(1), ""))
        for name in sorted(set(_WORD.findall(line)) & known.keys()):
            at = re.search(rf"(?<![\w'\"]){name}(?![\w'\"])", line)
            if at is not None:
                found[-1, name].append(Edit(start + at.start(), start + at.end(), ""))
    return [edits for edits in found.values() if len(edits) >= max(_LEAST, len(group) - 1)]


def _older(source: Source, removals: list[Edit], rng: random.Random) -> list[Edit]:
    """The text before the edits; nothing if no sensible text is possible."""
    now = source.text[removals[0].start : removals[0].end]
    choices = _NAMES.get(now) or _TYPE_NAMES.get(source.language, {}).get(now) or _OLDER.get(now, ("",))
    older = rng.choice(choices) if choices else now
    return [Edit(each.start, each.end, older) for each in removals]
