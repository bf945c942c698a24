"""Moments of stories: an edit continues, is half done, or silence is right; all drawn about equally often."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Final

from calomel.prompts.parts import Edit, composed, line_start, trimmed
from calomel.training.edits.scene import (
    Focus,
    Scene,
    aimless_edit,
    asked,
    diff_stream,
    is_silent,
    moved,
    places_of,
)
from calomel.training.edits.story import Story

# How often the person has moved to the next place already.
_GONE_SHARE: Final = 0.25
_FURTHER: Final = 2


def continued(story: Story, rng: random.Random) -> Scene | None:
    """A moment between two changes; None for a story of a single one."""
    if len(story.changes) == 1:
        return None
    done = rng.randrange(1, len(story.changes))
    text = story.states()[done]
    changes = composed(len(text), story.changes[done:])
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
    hunks = diff_stream(story, story.changes[:done], rng)
    return Scene(story.language, story.path, text, hunks, changes, focuses)


def further(text: str, changes: tuple[Edit, ...], kind: str, rng: random.Random) -> list[Focus]:
    """Some other places that are to change."""
    chosen = rng.sample(changes, min(_FURTHER, len(changes)))
    return [Focus(line_start(text, change.start), kind, cursor=False) for change in chosen]


_CLOSERS: Final = {"(": ")", "[": "]", "{": "}"}
# Editors close brackets as they are opened; some people turn that off.
_CLOSED_SHARE: Final = 0.5
# A person edits a part of a word, or selects the whole and retypes it.
_TRIMMED_SHARE: Final = 0.5
# Selected text is gone at the first key: of more lines than this, people edit parts.
_MOST_REMOVED_LINES: Final = 1


def half_done(story: Story, rng: random.Random) -> Scene | None:
    """A moment inside of a change; None if none has text to be typed."""
    states = story.states()
    order = list(range(len(story.changes)))
    rng.shuffle(order)
    for done in order:
        change, text = story.changes[done], states[done]
        if text.count("\n", change.start, change.end) > _MOST_REMOVED_LINES:
            continue
        if rng.random() < _TRIMMED_SHARE:
            (change,) = trimmed(text, (change,))
        cuts = cut_weights(change.text)
        if not cuts:
            continue
        cut = rng.choices(list(cuts), list(cuts.values()))[0]
        typed, rest = _cut(change, cut, closed=rng.random() < _CLOSED_SHARE)
        now = typed.apply(text)
        changes = composed(len(now), (*rest, *story.changes[done + 1 :]))
        cursor = change.start + cut
        made = (*story.changes[:done], typed)
        wanted = [Focus(cursor, f"half_done:{story.kind}", cursor=True), *further(now, changes, story.kind, rng)[:1]]
        focuses = asked(now, changes, wanted, places_of(made)[1:], "silence:elsewhere", rng.choice((0, 1)), rng)
        return Scene(story.language, story.path, now, diff_stream(story, made, rng), changes, focuses)
    return None


def cut_weights(text: str) -> dict[int, float]:
    """The relative probability of a pause after each number of typed characters. Never within indentation."""
    weights: dict[int, float] = {}
    for at, (before, behind) in enumerate(pairwise(text), start=1):
        line = text[text.rfind("\n", 0, at) + 1 : at]
        # An editor indents a new line at once.
        if behind in " \t" and not line.strip():
            continue
        weights[at] = _weight(before, behind)
    return weights


def _weight(before: str, behind: str) -> float:
    """Zed's weights of where people stop, used to imitate them in git history."""
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


def _cut(change: Edit, cut: int, *, closed: bool) -> tuple[Edit, tuple[Edit, ...]]:
    """What is typed, and what is not yet; with `closed`, opened brackets are closed after the cursor."""
    closers = _closers(change.text, cut) if closed else []
    if len(closers) == len(change.text) - cut:
        # Nothing would be left to type.
        closers = []
    behind = "".join(change.text[at] for at in closers)
    rest: list[Edit] = []
    start, place = cut, change.start + cut
    for end in [*closers, len(change.text)]:
        if end > start:
            rest.append(Edit(place, place, change.text[start:end]))
        place += end - start + 1
        start = end + 1
    return Edit(change.start, change.end, change.text[:cut] + behind), tuple(rest)


def _closers(text: str, cut: int) -> list[int]:
    """Where the brackets that are open at `cut`, in its line, are closed; innermost first."""
    opened: list[int] = []
    found: list[int] = []
    for at in range(text.rfind("\n", 0, cut) + 1, len(text)):
        if text[at] in _CLOSERS:
            opened.append(at)
        elif opened and text[at] == _CLOSERS[text[opened[-1]]] and opened.pop() < cut <= at:
            found.append(at)
    return found


def _silence(
    story: Story,
    kind: str,
    text: str,
    made: Iterable[Edit],
    cursor: int,
    near: Iterable[int],
    count: int,
    rng: random.Random,
) -> Scene:
    """A moment after the changes `made`, when nothing is to change in `text`; for the rest see `asked`."""
    focuses = asked(text, (), [Focus(cursor, kind, cursor=True)], near, kind, count, rng)
    return Scene(story.language, story.path, text, diff_stream(story, made, rng), (), focuses)


def silence_finished(story: Story, rng: random.Random) -> Scene | None:
    """The moment after the last change: nothing is left to change, neither here nor elsewhere."""
    places = places_of(story.changes)
    return _silence(story, "silence:finished", story.states()[-1], story.changes, places[0], places[1:], 1, rng)


def silence_unrelated(story: Story, rng: random.Random) -> Scene | None:
    """The moment after a small edit that nothing follows from; None if no line allows one.

    The story is finished before it, or not begun.
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


_MOST_UNDONE: Final = 3


def silence_undo(story: Story, rng: random.Random) -> Scene | None:
    """The moment after undoing the first changes of a story, all of them: they must not be offered again."""
    count = rng.randint(1, min(_MOST_UNDONE, len(story.changes)))
    done = story.changes[:count]
    back = [change.inverse(text) for change, text in zip(done, story.states(), strict=False)][::-1]
    near = [change.start for change in composed(len(story.text), story.changes)]
    cursor = done[0].start + len(back[-1].text)
    return _silence(story, "silence:undo", story.text, (*done, *back), cursor, near, 1, rng)


SceneMaker = Callable[[Story, random.Random], Scene | None]

# How often each is tried first. Most scenes with something to do ask about silent places too.
SCENES: Final[Mapping[SceneMaker, float]] = {
    continued: 0.46,
    half_done: 0.36,
    silence_finished: 0.06,
    silence_unrelated: 0.10,
    silence_undo: 0.02,
}


def scene_of(story: Story, rng: random.Random) -> Scene | None:
    """A moment of the story; None if none can be asked about."""
    left = dict(SCENES)
    while left:
        maker = rng.choices(list(left), list(left.values()))[0]
        scene = maker(story, rng)
        if scene is not None and scene.focuses:
            return scene
        del left[maker]
    return None
