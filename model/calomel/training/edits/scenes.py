"""Moments of stories: an edit goes on, is half done, or silence is right; drawn so that either is about as frequent."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from calomel.prompts.parts import common_prefix, line_start
from calomel.training.edits.scene import (
    Focus,
    Scene,
    Step,
    aimless_edit,
    asked,
    is_comment,
    is_silent,
    lines_of,
    marker,
    moved,
    past_of,
    pending,
    places_of,
    stream,
)
from calomel.training.edits.story import Change, Story

# The person has gone to the next place already.
_GONE_SHARE: Final = 0.25
_FURTHER: Final = 2


def continued(story: Story, rng: random.Random) -> Scene | None:
    """A moment between two changes; None for a story of one."""
    if len(story.changes) == 1:
        return None
    done = rng.randrange(1, len(story.changes))
    text = story.states()[done]
    changes = pending(story.changes[done:])
    places = places_of(story.changes[:done])
    following = story.changes[done].start
    cursor = following if rng.random() < _GONE_SHARE else places[0]
    if is_silent(text, changes, cursor):
        wanted = [Focus(line_start(text, following), story.kind, cursor=False)]
        wanted += further(text, changes, story.kind, rng)
        wanted.append(Focus(cursor, "silence:done", cursor=True))
    else:
        here = Focus(cursor, story.kind, cursor=True)
        there = Focus(line_start(text, following), story.kind, cursor=False)
        wanted = [here, there, *further(text, changes, story.kind, rng)]
    focuses = asked(text, changes, wanted, places, "silence:elsewhere", rng.choice((0, 1)), rng)
    hunks = past_of(story, rng).hunks(story.changes[:done])
    return Scene(story.language, story.path, text, hunks, changes, focuses)


def further(text: str, changes: tuple[Change, ...], kind: str, rng: random.Random) -> list[Focus]:
    """Some other places that are to change."""
    chosen = rng.sample(changes, min(_FURTHER, len(changes)))
    return [Focus(line_start(text, change.start), kind, cursor=False) for change in chosen]


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


def _silence(
    story: Story,
    kind: str,
    text: str,
    made: Iterable[Change],
    cursor: int,
    near: Iterable[int],
    count: int,
    rng: random.Random,
) -> Scene:
    """A moment behind the changes `made`, where nothing is to change in `text`; for the rest see `asked`."""
    focuses = asked(text, (), [Focus(cursor, kind, cursor=True)], near, kind, count, rng)
    return Scene(story.language, story.path, text, past_of(story, rng).hunks(made), (), focuses)


def silence_finished(story: Story, rng: random.Random) -> Scene | None:
    """The moment behind the last change: nothing is left to change, neither here nor elsewhere."""
    places = places_of(story.changes)
    return _silence(story, "silence:finished", story.states()[-1], story.changes, places[0], places[1:], 1, rng)


def silence_unrelated(story: Story, rng: random.Random) -> Scene | None:
    """The moment behind a small edit that nothing follows from; None where no line offers one.

    The story is done before it, or not begun.
    """
    begun = rng.random() < 0.5  # noqa: PLR2004 (either)
    text = story.states()[-1] if begun else story.text
    edit = aimless_edit(text, story.language, rng)
    if edit is None:
        return None
    made = (*story.changes, edit) if begun else (edit,)
    now = edit.apply(text)
    near = places_of(made)[1:] if begun else [moved(change.start, (edit,)) for change in story.changes[:2]]
    cursor = edit.start + len(edit.text)
    return _silence(story, "silence:unrelated", now, made, cursor, [min(at, len(now)) for at in near], 1, rng)


_WORD: Final = re.compile(r"\w+|[^\w\s]+")
_DELETING_TRIES: Final = 20
_SHORTEST: Final = 8
# The rest may be a whole line, or some.
_TAIL_SHARE: Final = 0.7
_MOST_LINES: Final = 3


def silence_deleting(story: Story, rng: random.Random) -> Scene | None:
    """A moment of deleting code that the story did not touch: it must not come back; None where there is none."""
    text = story.states()[-1]
    lines = lines_of(text)
    untouched = set(story.text.split("\n"))
    for _ in range(_DELETING_TRIES):
        number = rng.randrange(len(lines))
        start, end = lines[number]
        line = text[start:end]
        if len(line.strip()) < _SHORTEST or line not in untouched:
            continue
        if rng.random() < _TAIL_SHARE:
            words = list(_WORD.finditer(line))[1:]
            if not words:
                continue
            at = rng.choice(words)
            inside = rng.randrange(len(at[0])) if rng.random() < 1 / 3 else 0
            edit = Change(start + at.start() + inside, end, "")
        else:
            last = min(number + rng.randrange(_MOST_LINES), len(lines) - 1)
            if any(text[begin:stop] not in untouched for begin, stop in lines[number : last + 1]):
                continue
            edit = Change(start, min(lines[last][1] + 1, len(text)), "")
        return _behind(story, "silence:deleting", edit, rng)
    return None


def _behind(story: Story, kind: str, edit: Change, rng: random.Random) -> Scene:
    """The moment behind an edit of the text that the story leaves."""
    made = (*story.changes, edit)
    cursor, near = edit.start + len(edit.text), places_of(made)[1:]
    return _silence(story, kind, edit.apply(story.states()[-1]), made, cursor, near, rng.choice((0, 1)), rng)


_MOST_UNDONE: Final = 3


def silence_undo(story: Story, rng: random.Random) -> Scene | None:
    """The moment behind taking back the first changes of a story, all of them: they must not be offered again."""
    count = rng.randint(1, min(_MOST_UNDONE, len(story.changes)))
    done = story.changes[:count]
    back = [
        Change(change.start, change.start + len(change.text), text[change.start : change.end])
        for change, text in zip(done, story.states(), strict=False)
    ][::-1]
    # The story's other places are what would be offered; their offsets follow from going through it backwards.
    near = []
    for at, change in enumerate(story.changes):
        taken = [
            Change(each.start, each.start + len(each.text), " " * (each.end - each.start))
            for each in story.changes[:at]
        ]
        near.append(moved(change.start, reversed(taken)))
    cursor = done[0].start + len(back[-1].text)
    return _silence(story, "silence:undo", story.text, (*done, *back), cursor, near, 1, rng)


_CALL: Final = re.compile(r"[\w.]+\(([^()'\"`]{8,})\)")
_SPACED: Final = re.compile(r"(?<=\w) ([-+*/]|==|=) (?=\w)")
_COMMENT_GAP: Final = re.compile(r" {1,3}(#|//) ")
_STATEMENT: Final = re.compile(r"^[ \t]*(if|for|while|return|let|const|def|func|fn|class|async|export|pub)\b")
_LAYOUT_TRIES: Final = 60


def silence_formatting(story: Story, rng: random.Random) -> Scene | None:
    """The moment behind a change of layout, with the story done before it; None where no line offers one."""
    text = story.states()[-1]
    lines = lines_of(text)
    for _ in range(_LAYOUT_TRIES):
        start, end = rng.choice(lines)
        line = text[start:end]
        found = None if is_comment(line, story.language) else rng.choice(_LAYOUTS)(line, story.language, rng)
        if found is not None:
            return _behind(story, "silence:formatting", Change(start + found.start, start + found.end, found.text), rng)
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


_LAYOUTS: Final[tuple[Callable[[str, str, random.Random], Change | None], ...]] = (
    _broken_call,
    _broken_call,
    _tight,
    _blank_line,
    _comment_gap,
)


_COMMENT_WORD: Final = re.compile(r"(?<= )[A-Za-z]{5,}(?=[ ,.;:]|\Z)")
# The rest goes back into a sentence to put a word in.
_AT_END_SHARE: Final = 0.6


def silence_mid_word(story: Story, rng: random.Random) -> Scene | None:
    """The moment inside of a word of a comment: nobody can know which one it becomes; None where there is no such word.

    The story is done before it.
    """
    end_text = story.states()[-1]
    comments = [
        (span, words)
        for span in lines_of(end_text)
        if is_comment(end_text[span[0] : span[1]], story.language)
        and (words := list(_COMMENT_WORD.finditer(end_text, *span)))
    ]
    if not comments:
        return None
    (_, end), words = rng.choice(comments)
    word = rng.choice(words)
    typed = end_text[word.start() : word.start() + rng.randint(2, len(word[0]) - 2)]
    # A comment that was there before the story lacks the word, and maybe what follows.
    stop = end if rng.random() < _AT_END_SHARE else word.end()
    gone = Change(word.start() - 1, stop, "")
    if any(gone.start <= place <= gone.end for place in places_of(story.changes)):
        return None
    text = gone.apply(end_text)
    edit = Change(word.start() - 1, word.start() - 1, " " + typed)
    cursor, near = edit.start + len(edit.text), [moved(place, (gone, edit)) for place in places_of(story.changes)]
    count = rng.choice((0, 1))
    scene = _silence(story, "silence:mid_word", edit.apply(text), story.changes, cursor, near, count, rng)
    return replace(scene, hunks=(*scene.hunks, *stream(story.path, text, [Step(edit)])))


SceneMaker = Callable[[Story, random.Random], Scene | None]

# How often each is tried first. Most scenes with something to do ask about silent places too.
SCENES: Final[Mapping[SceneMaker, float]] = MappingProxyType(
    {
        continued: 0.46,
        half_done: 0.36,
        silence_finished: 0.06,
        silence_unrelated: 0.035,
        silence_deleting: 0.03,
        silence_undo: 0.02,
        silence_formatting: 0.015,
        silence_mid_word: 0.02,
    }
)


def scene_of(story: Story, rng: random.Random) -> Scene | None:
    """A moment of the story; None where none can be asked about."""
    left = dict(SCENES)
    while left:
        maker = rng.choices(list(left), list(left.values()))[0]
        scene = maker(story, rng)
        if scene is not None and scene.focuses:
            return scene
        del left[maker]
    return None
