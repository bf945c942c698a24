"""Moments of stories: what was done, what is to come, and where silence is right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from calomel.prompts.parts import Edit, line_start
from calomel.training.edits.scene import Scene, Step, is_silent, stream
from calomel.training.edits.scenes import (
    continued,
    half_done,
    silence_finished,
    silence_undo,
    silence_unrelated,
)
from calomel.training.edits.story import Story, sequential
from calomel.workspace.documents import RangeChange
from calomel.workspace.workspace import Workspace


def applied(text: str, changes: tuple[Edit, ...]) -> str:
    for change in changes:
        text = change.apply(text)
    return text


TEXT = "".join(f"line {number} = total({number}, größe)\n" for number in range(60))
URI = "file:///project/a.py"


def recorded(text: str, steps: list[Step]) -> tuple[object, ...]:
    """What a workspace says of the same steps, 0.2 seconds apart, 3 seconds where the person paused."""
    now = 0.0
    workspace = Workspace([Path("/project")], lambda: now)
    document = workspace.open(URI, "python", 0, text)
    for number, step in enumerate(steps, start=1):
        now += 3.0 if step.paused else 0.2
        start, end = document.position_at(step.change.start), document.position_at(step.change.end)
        workspace.change(URI, number, [RangeChange(start, end, step.change.text)])
    return (*workspace.history.settled(), *workspace.history.open_edit())


def test_steps_give_the_hunks_of_a_live_session() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        text, steps, at = TEXT, [], rng.randrange(len(TEXT))
        for _ in range(rng.randint(1, 8)):
            if rng.random() < 0.4:
                at = rng.randrange(len(text))
            start = max(0, min(len(text), at + rng.randint(-80, 80)))
            end = min(len(text), start + rng.choice((0, 0, 3, 12, 60)))
            new = rng.choice(("", "x", "sum", "one\ntwo\n", " ", "a = b\n", "\n    return", "größe"))
            if text[start:end] == new:
                continue
            steps.append(Step(Edit(start, end, new), paused=rng.random() < 0.6))
            text = steps[-1].change.apply(text)
            at = start
        assert stream("a.py", TEXT, steps) == recorded(TEXT, steps)


TEXT_of_scenes = '''"""Adds up."""

import os

LIMIT = 20


def total(rows, scale):
    # Keep the running result in a local variable.
    result = 0
    for row in rows:
        result += row.size * scale
    return min(result, LIMIT)


def average(rows):
    if not rows:
        return 0
    return total(rows, 1) / len(rows)


def report(rows, name):
    # Every report starts with the name of the place it came from.
    head = name.upper()
    count = len(rows)
    print(head, count, total(rows, 1))
    return head


def main():
    rows = list(os.scandir("."))
    print(average(rows), total(rows, 2))
    print(report(rows, "here"))
    for row in rows:
        print(row.name, row.stat().st_size)
'''


def renamed() -> Story:
    edits = [Edit(match.start(), match.end(), "total_size") for match in re.finditer(r"\btotal\b", TEXT_of_scenes)]
    return Story("rename", "python", "a.py", TEXT_of_scenes, sequential(edits))


def many(maker: Callable[[Story, random.Random], Scene | None], story: Story, count: int = 40) -> list[Scene]:
    found = [maker(story, random.Random(seed)) for seed in range(count)]
    return [scene for scene in found if scene is not None]


@pytest.mark.parametrize("maker", [continued, half_done, silence_finished, silence_unrelated, silence_undo])
def test_scenes_lead_to_the_end_of_their_story_or_ask_for_silence(maker: Callable[..., Scene | None]) -> None:
    story = renamed()
    scenes = many(maker, story)
    silent = maker not in {continued, half_done}
    assert len(scenes) == 40 or (silent and len(scenes) >= 30)
    for scene in scenes:
        if silent:
            assert scene.changes == ()
            assert scene.focuses[0].cursor
            assert all(focus.silent and 0 <= focus.offset <= len(scene.text) for focus in scene.focuses)
        else:
            assert applied(scene.text, scene.changes[::-1]) == story.states()[-1]
            assert scene.changes
            assert scene.hunks[-1].after in scene.text
            assert not scene.focuses[0].silent
        assert 1 <= len(scene.focuses) <= 6
        for focus in scene.focuses:
            assert focus.silent == is_silent(scene.text, scene.changes, focus.offset)
            assert focus.cursor or focus.offset == line_start(scene.text, focus.offset)
        assert len({focus.offset for focus in scene.focuses}) == len(scene.focuses)
        assert sum(focus.cursor for focus in scene.focuses) <= 1
