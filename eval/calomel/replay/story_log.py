"""Stories of edits as logs of editing: each change typed as somebody would have, one after the other.

A story is one intent carried out in one file, or what changed in it between two releases. Their order is the story's;
pauses are made up as for a history (`git_typing.py`), and what a history does not hold is missing here, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from calomel.bench.heldout import BenchDataError
from calomel.bench.stories import Story, read_stories
from calomel.replay.events import Changed, Checks, Event, Focused, LogError, Opened, ReplayLog, Selected, apply_edits
from calomel.replay.git_hunks import hunks_between
from calomel.replay.git_typing import HUNK_SECONDS, strokes
from calomel.replay.language_ids import language_of

# Where packages lie in Debian: `gocode/src/HOST/OWNER/NAME`, `registry/NAME`.
_DEPTHS: Final = {"gocode": 5, "registry": 2}
_ANYWHERE: Final = frozenset(
    {"src", "lib", "source", "examples", "dist", "test", "tests", "package", "packages", "build", "esm"}
)


def read_story_logs(path: Path) -> list[ReplayLog]:
    """A log of each story in a file. Raises LogError."""
    try:
        return [story_log(story) for story in read_stories(path)]
    except BenchDataError as error:
        raise LogError(str(error)) from error


def story_log(story: Story) -> ReplayLog:
    """Its changes, typed."""
    language = language_of(story.path)
    events: list[Event] = [Opened(0, 0.0, story.path, language, story.text), Focused(0, 0.0, story.path)]
    text = story.text
    time = 0.0
    for number, change in enumerate(story.changes, 1):
        after = change.apply(text)
        for event in _typed(story, number, text, after, time):
            events.append(event)
            time = event.time
        text = after
    checks = Checks(end_content_right=text == story.after(len(story.changes)))
    metadata = {"group": package_of(story.path), "kind": story.kind}
    return ReplayLog(f"{story.kind}-{story.id}", "story", events, checks=checks, metadata=metadata)


def package_of(path: str) -> str:
    """The package, as far as a path tells it; the path itself where it begins as many do."""
    parts = path.split("/")
    for name, depth in _DEPTHS.items():
        if name in parts:
            return "/".join(parts[: parts.index(name) + depth])
    return path if len(parts) == 1 or parts[0] in _ANYWHERE else parts[0]


def _typed(story: Story, entry: int, before: str, after: str, time: float) -> Iterator[Changed | Selected]:
    """One change: the cursor goes there, and the lines are typed."""
    text, moved = before, 0
    for hunk in hunks_between(story.path, before, after):
        time += HUNK_SECONDS
        for number, stroke in enumerate(strokes(hunk, hunk.start + moved, f"{story.id}:{entry}:{hunk.line}")):
            if number == 0:
                yield Selected(entry, round(time, 3), story.path, stroke.edit.start, stroke.edit.start)
            time += stroke.seconds
            yield Changed(entry, round(time, 3), story.path, (stroke.edit,), "typed")
            text = apply_edits(text, (stroke.edit,))
        moved += sum(map(len, hunk.new)) - sum(map(len, hunk.old))
    if text != after:
        raise LogError(f"{story.path}: a change cannot be typed")
