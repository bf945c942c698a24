"""The person is typing a change: cut where people pause."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Final

from calomel.prompts.differences import common_prefix
from calomel.training.edits.continued import further
from calomel.training.edits.past import past_of, places_of
from calomel.training.edits.places import asked
from calomel.training.edits.scene import Focus, Scene, pending
from calomel.training.edits.story import Change, Story

_CLOSERS: Final = {"(": ")", "[": "]", "{": "}"}
# Editors close brackets as they are opened; not everybody lets them.
_CLOSED_SHARE: Final = 0.5
# A person goes into a word and changes a part of it, or selects the whole and types it anew.
_TRIMMED_SHARE: Final = 0.5
# What is typed over is gone at the first key: of more than this, people change parts.
_MOST_REMOVED_LINES: Final = 1


def half_done(story: Story, rng: random.Random) -> Scene | None:
    """A moment inside of a change; None where none has a text to be typed."""
    states = story.states()
    order = list(range(len(story.changes)))
    rng.shuffle(order)
    for done in order:
        change, text = story.changes[done], states[done]
        if text.count("\n", change.start, change.end) > _MOST_REMOVED_LINES:
            continue
        if rng.random() < _TRIMMED_SHARE:
            change = _trimmed(text, change)
        cuts = cut_weights(change.text)
        if not cuts:
            continue
        cut = rng.choices(list(cuts), list(cuts.values()))[0]
        typed, rest = _cut(change, cut, closed=rng.random() < _CLOSED_SHARE)
        now = typed.apply(text)
        changes = pending((*rest, *story.changes[done + 1 :]))
        cursor = change.start + cut
        made = (*story.changes[:done], typed)
        wanted = [Focus(cursor, f"half_done:{story.kind}", cursor=True), *further(now, changes, story.kind, rng)[:1]]
        focuses = asked(now, changes, wanted, places_of(made)[1:], "silence:elsewhere", rng.choice((0, 1)), rng)
        return Scene(story.language, story.path, now, past_of(story, rng).hunks(made), changes, focuses)
    return None


def cut_weights(text: str) -> dict[int, float]:
    """How likely a person pauses behind each number of typed characters, relatively. Never where a line is indented."""
    weights: dict[int, float] = {}
    for at, (before, behind) in enumerate(pairwise(text), start=1):
        line = text[text.rfind("\n", 0, at) + 1 : at]
        # An editor indents a new line at once.
        if behind in " \t" and not line.strip():
            continue
        weights[at] = _weight(before, behind)
    return weights


def _weight(before: str, behind: str) -> float:
    """As Zed weighs where people stop, to imitate them in git history."""
    if before in ",;:([{":
        return 10.0
    if before in ")]}":
        return 8.0
    if _in_word(before):
        return 1.0 if _in_word(behind) else 8.0
    if before.isspace():
        return 6.0
    return 5.0 if before in "+-*/%=<>!&|^~?." else 3.0


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _trimmed(text: str, change: Change) -> Change:
    """The change without what its old and its new text have in common at both ends."""
    old, new = text[change.start : change.end], change.text
    head = common_prefix(old, new)
    tail = common_prefix(old[head:][::-1], new[head:][::-1])
    return Change(change.start + head, change.end - tail, new[head : len(new) - tail])


def _cut(change: Change, cut: int, *, closed: bool) -> tuple[Change, tuple[Change, ...]]:
    """What is typed, and what is not yet; brackets that were opened are closed behind the cursor when `closed`."""
    closers = _closers(change.text, cut) if closed else []
    if len(closers) == len(change.text) - cut:
        # Nothing would be left to type.
        closers = []
    behind = "".join(change.text[at] for at in closers)
    rest: list[Change] = []
    start, place = cut, change.start + cut
    for end in [*closers, len(change.text)]:
        if end > start:
            rest.append(Change(place, place, change.text[start:end]))
        place += end - start + 1
        start = end + 1
    return Change(change.start, change.end, change.text[:cut] + behind), tuple(rest)


def _closers(text: str, cut: int) -> list[int]:
    """Where the brackets that are open at `cut`, in its line, are closed; innermost first."""
    found: list[int] = []
    depth: list[str] = []
    wanted = [_CLOSERS[each] for each in _open_brackets(text[text.rfind("\n", 0, cut) + 1 : cut])]
    for at in range(cut, len(text)):
        character = text[at]
        if character in _CLOSERS:
            depth.append(_CLOSERS[character])
        elif depth and character == depth[-1]:
            depth.pop()
        elif not depth and wanted and character == wanted[-1]:
            wanted.pop()
            found.append(at)
    return found


def _open_brackets(line: str) -> list[str]:
    opened: list[str] = []
    for character in line:
        if character in _CLOSERS:
            opened.append(character)
        elif opened and character == _CLOSERS[opened[-1]]:
            opened.pop()
    return opened
