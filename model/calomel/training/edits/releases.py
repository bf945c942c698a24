"""Real edits: what people changed in a file between two releases of its package, taken apart into intents."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from calomel.training.edits.differences import LineHunk, is_formatting, line_hunks
from calomel.training.edits.intents import NamedHunk, intents, named, replaced_names
from calomel.training.edits.source import Source
from calomel.training.edits.story import REACH, Change, Story, sequential

KIND = "release"
# A file that was changed in more places, or by more of its lines, was rewritten: no single intent is left in it.
MAX_FILE_HUNKS = 120
MAX_CHANGED = 0.6
# Characters and lines of a hunk that somebody may be expected to foresee. A longer one is done before the story begins.
MAX_HUNK_CHARACTERS = 1_200
MAX_HUNK_LINES = 24
MAX_CHANGES = 24
# Stories of one file, so that a large one does not set the style of the whole.
MAX_STORIES = 8

_DIGITS = re.compile(r"\d+")
_LEGAL = re.compile(r"copyright|licen[cs]e|SPDX", re.IGNORECASE)
_COMMENT = re.compile(r"^\s*(?:#|//|/?\*)", re.MULTILINE)


def release_stories(older: Source, newer: Source, dropped: Counter[str]) -> Iterator[Story]:
    """Yield the intents between two versions of a file, each beginning where the one before has ended.

    What belongs to no intent (comments, formatting, long new code, a version's number) is already done in all of
    their texts. Why things are left out is counted in `dropped`. The texts are whole: nothing is cropped here.
    """
    fault = _file_fault(older, newer)
    hunks = () if fault else line_hunks(older.text, newer.text)
    if not fault and (len(hunks) > MAX_FILE_HUNKS or _share(hunks, older.text) > MAX_CHANGED):
        fault = "release: rewritten file"
    if fault:
        dropped[fault] += 1
        return
    groups = _groups(hunks, older, newer, dropped)
    waiting = {hunk.before_start for group in groups for hunk in group}
    for group in groups:
        text, moved = state_of(older.text, hunks, waiting)
        edits = [Change(c.start + moved[h], c.end + moved[h], c.text) for h in group for c in h.changes()]
        waiting.difference_update(hunk.before_start for hunk in group)
        fault = _group_fault(edits)
        if fault is None and (newer.with_text(text).has_error or _result(newer, text, edits).has_error):
            fault = "release: does not parse on its own"
        if fault:
            dropped[fault] += 1
            continue
        yield Story(KIND, newer.language, newer.path, text, sequential(edits))


def _file_fault(older: Source, newer: Source) -> str | None:
    if older.text == newer.text:
        return "release: unchanged file"
    if older.has_error or newer.has_error:
        return "release: file does not parse"
    return None


def _share(hunks: Sequence[LineHunk], text: str) -> float:
    return sum(len(hunk.before) for hunk in hunks) / max(1, len(text))


def _groups(
    hunks: Sequence[LineHunk], older: Source, newer: Source, dropped: Counter[str]
) -> list[tuple[LineHunk, ...]]:
    """Return the intents among the hunks, at most MAX_STORIES, by position of their first hunk."""
    before, after = _Names(older), _Names(newer)
    telling: list[NamedHunk] = []
    for hunk in hunks:
        if fault := hunk_fault(hunk):
            dropped[f"release: {fault}"] += 1
            continue
        old_names = before.between(hunk.before_start, hunk.before_end)
        telling.append(named(hunk, old_names, after.between(hunk.after_start, hunk.after_end)))
    groups = [tuple(part.hunk for part in group) for group in intents(telling)]
    taken = {hunk for group in groups for hunk in group}
    groups += [(h.hunk,) for h in telling if h.hunk not in taken and h.removed and replaced_names(h.hunk)]
    dropped["release: hunk of no intent"] += len(telling) - sum(map(len, groups))
    dropped["release: over cap of file"] += max(0, len(groups) - MAX_STORIES)
    return sorted(groups[:MAX_STORIES], key=lambda group: group[0].before_start)


def hunk_fault(hunk: LineHunk) -> str | None:
    """Return why nobody could foresee a hunk, or None."""
    if is_formatting(hunk):
        return "formatting hunk"
    if max(len(hunk.before), len(hunk.after)) > MAX_HUNK_CHARACTERS:
        return "long hunk"
    if max(hunk.before.count("\n"), hunk.after.count("\n")) > MAX_HUNK_LINES:
        return "long hunk"
    both = hunk.before + hunk.after
    if _LEGAL.search(both) and _COMMENT.search(both):
        return "licence header"
    if "version" in both.lower() and _DIGITS.sub("0", hunk.before) == _DIGITS.sub("0", hunk.after):
        return "version's number"
    return None


def _group_fault(edits: Sequence[Change]) -> str | None:
    if len(edits) > MAX_CHANGES:
        return "release: too many changes"
    if max(edit.end for edit in edits) - min(edit.start for edit in edits) > REACH:
        return "release: too far apart"
    return None


def state_of(text: str, hunks: Sequence[LineHunk], waiting: Collection[int]) -> tuple[str, dict[LineHunk, int]]:
    """Return the text with all hunks done but the waiting ones, and by how much each hunk has moved in it."""
    parts: list[str] = []
    moved: dict[LineHunk, int] = {}
    end = shift = 0
    for hunk in hunks:
        moved[hunk] = shift
        if hunk.before_start in waiting:
            continue
        parts += [text[end : hunk.before_start], hunk.after]
        end = hunk.before_end
        shift += len(hunk.after) - len(hunk.before)
    return "".join([*parts, text[end:]]), moved


def _result(source: Source, text: str, edits: Sequence[Change]) -> Source:
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = edit.apply(text)
    return source.with_text(text)


class _Names:
    """The names in the code of a file, by place; words of comments and strings are none."""

    def __init__(self, source: Source) -> None:
        nodes = source.identifiers()
        self._starts = [source.offset(node.start_byte) for node in nodes]
        self._names = [source.slice(node) for node in nodes]

    def between(self, start: int, end: int) -> list[str]:
        return self._names[bisect_left(self._starts, start) : bisect_left(self._starts, end)]
