"""Held-out edits: stories of one intent each in packages that no training corpus contains, and moments of them."""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from calomel.prompts.parts import Edit, composed
from calomel.report.heldout import BenchDataError, packed_rows

HELDOUT_EDITS: Final = Path(__file__).with_name("data") / "heldout-edits.jsonl.zst"


# The share of reordered stories that still go down their file, from another place.
_ONWARDS: Final = 0.6


def applied(text: str, changes: Iterable[Edit]) -> str:
    """The text after all changes, applied one after the other."""
    for change in changes:
        text = change.apply(text)
    return text


@dataclass(frozen=True, slots=True)
class Story:
    """A text and what a person does to it, change by change.

    Attributes:
        kind: of the intent, such as `rename`.
        language: of the file.
        path: of the file.
        text: before the first change.
        changes: each in offsets of the text after the earlier ones.
    """

    kind: str
    language: str
    path: str
    text: str
    changes: tuple[Edit, ...]

    @property
    def id(self) -> str:
        """Short and the same in every run."""
        rows = [[change.start, change.end, change.text] for change in self.changes]
        told = json.dumps([self.kind, self.path, self.text, rows])
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def after(self, count: int) -> str:
        """The text after the first `count` changes."""
        return applied(self.text, self.changes[:count])


def read_stories(path: Path | None = None) -> tuple[Story, ...]:
    """The committed held-out stories, or those at `path`: JSON lines, compressed with zstandard.

    Raises:
        BenchDataError: the file is absent or not what it should be.
    """
    source = path if path is not None else HELDOUT_EDITS
    try:
        return tuple(_story(row, source) for row in packed_rows(source))
    except (ValueError, KeyError, TypeError) as error:
        raise BenchDataError(f"{source} is damaged: {error!r}") from error


def turned(story: Story) -> Story:
    """The same edits in another order: from one of them to the last and then from the first, or upwards.

    Stories go down their file, which people need not do: a model fitted to that order learns that nothing comes above
    the cursor.
    """
    edits = composed(len(story.text), story.changes)
    rng = random.Random(story.id)  # noqa: S311 - a draw that is the same in every run
    first = rng.randrange(len(edits)) if edits else 0
    order = (*edits[first:], *edits[:first]) if rng.random() < _ONWARDS else edits[::-1]
    found = []
    for number, edit in enumerate(order):
        by = sum(len(done.text) - (done.end - done.start) for done in order[:number] if done.start < edit.start)
        found.append(Edit(edit.start + by, edit.end + by, edit.text))
    return replace(story, changes=tuple(found))


def _story(row: Mapping[str, Any], source: Path) -> Story:
    changes = tuple(Edit(int(start), int(end), str(text)) for start, end, text in row["changes"])
    story = Story(str(row["kind"]), str(row["language"]), str(row["path"]), str(row["text"]), changes)
    length = len(story.text)
    for change in changes:
        if not 0 <= change.start <= change.end <= length:
            raise BenchDataError(f"{source} has a change outside of its text: {story.path}, {story.kind}")
        length += len(change.text) - (change.end - change.start)
    return story


# Where people pause within an edit, and how often; behind other characters 3, within a word 1.
_PAUSES: Final = {**dict.fromkeys(",;:([{=", 10), **dict.fromkeys(")]}", 8), **dict.fromkeys(" \t\n", 6)}
_PAUSES_ELSEWHERE, _PAUSES_AT_WORD_END, _PAUSES_IN_WORD = 3, 8, 1


@dataclass(frozen=True)
class Moment:
    """One question: which edit comes next, if any?

    Attributes:
        story: that it is a moment of.
        done: the changes so far, in order; the last one may be half of the story's.
        coming: the changes still to come, in offsets of the current text, sorted, not overlapping; empty where silence
            is right.
        half: the last change is only half done.
    """

    story: Story
    done: tuple[Edit, ...]
    coming: tuple[Edit, ...]
    half: bool = field(default=False)

    @property
    def id(self) -> str:
        """The story's, and how many changes are done."""
        return f"{self.story.id}-{len(self.done)}{'h' if self.half else ''}"

    @property
    def silent(self) -> bool:
        """Whether there is nothing left to do."""
        return not self.coming

    @cached_property
    def text(self) -> str:
        """The document at this moment."""
        return applied(self.story.text, self.done)

    @property
    def cursor(self) -> int:
        """The offset after the text written last."""
        last = self.done[-1]
        return last.start + len(last.text)

    def right(self, result: str) -> bool:
        """Whether a suggestion that makes the document `result` is right.

        It is if it makes at least one of the changes still to come, each completely, and nothing else. A person may
        continue at any of the places, and a suggestion may make several changes.
        """
        # Reachable offsets of `result` after each change, each with whether a change was made on the way.
        reached = {(0, False)}
        at = 0
        for change in self.coming:
            gap, old = self.text[at : change.start], self.text[change.start : change.end]
            behind = {(place + len(gap), done) for place, done in reached if result.startswith(gap, place)}
            reached = {(place + len(old), done) for place, done in behind if result.startswith(old, place)}
            reached |= {
                (place + len(change.text), True) for place, _ in behind if result.startswith(change.text, place)
            }
            at = change.end
        rest = self.text[at:]
        return any(done and result[place:] == rest for place, done in reached)


def moments(story: Story) -> tuple[Moment, ...]:
    """One moment in the middle of a story, and the one at its end.

    The middle is drawn by the story's id: after some of its changes, but not all. A story of one change is interrupted
    within it, where there is enough to write.
    """
    rng = random.Random(story.id)  # noqa: S311 - a draw that is the same in every run
    found = []
    if len(story.changes) > 1:
        count = rng.randrange(1, len(story.changes))
        found.append(_moment(story, story.changes[:count], story.changes[count:]))
    for change in story.changes if len(story.changes) == 1 else ():
        found += _interrupted(story, change, rng)
    if story.changes:
        found.append(_moment(story, story.changes, ()))
    # If one change undoes another, nothing is left to do, and there is no story.
    return tuple(moment for moment in found if moment.silent == (moment is found[-1]))


def chosen(stories: Iterable[Story], kinds: Sequence[str] = (), limit: int | None = None) -> tuple[Moment, ...]:
    """At most `limit` moments of stories of some kinds: equally many of each kind and language, as far as there are.

    The same for the same stories, whatever their order.
    """
    cells: dict[tuple[str, str, bool], list[Moment]] = defaultdict(list)
    for story in stories:
        if kinds and story.kind not in kinds:
            continue
        for moment in moments(story):
            cells[moment.story.kind, moment.story.language, moment.silent].append(moment)
    # Ids are hashes, so that their order is a draw.
    rows = [sorted(cells[key], key=lambda moment: moment.id) for key in sorted(cells)]
    turns = [moment for turn in zip_longest(*rows) for moment in turn if moment is not None]
    return tuple(turns if limit is None else turns[:limit])


def _moment(story: Story, done: Sequence[Edit], coming: Sequence[Edit], *, half: bool = False) -> Moment:
    return Moment(story, tuple(done), composed(len(applied(story.text, done)), coming), half)


def _interrupted(story: Story, change: Edit, rng: random.Random) -> list[Moment]:
    """The only change of a story, cut where people pause."""
    # Something visible is left to write.
    cuts = range(1, len(change.text.rstrip()))
    if not cuts:
        return []
    cut = rng.choices(cuts, [_pause(change.text, at) for at in cuts])[0]
    at = change.start + cut
    half = Edit(change.start, change.end, change.text[:cut])
    return [_moment(story, [half], [Edit(at, at, change.text[cut:])], half=True)]


def _pause(text: str, at: int) -> int:
    before, after = text[at - 1], text[at]
    if before in _PAUSES:
        return _PAUSES[before]
    if _is_letter(before):
        return _PAUSES_IN_WORD if _is_letter(after) else _PAUSES_AT_WORD_END
    return _PAUSES_ELSEWHERE


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"
