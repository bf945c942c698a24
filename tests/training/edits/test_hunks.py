"""The diff stream of a story is the one that an editor's session records."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from calomel.training.edits.hunks import Step, stream
from calomel.training.edits.story import Change
from calomel.workspace.documents import RangeChange
from calomel.workspace.workspace import Workspace

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


@pytest.mark.parametrize("seed", range(40))
def test_steps_give_the_hunks_of_a_live_session(seed: int) -> None:
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
        steps.append(Step(Change(start, end, new), paused=rng.random() < 0.6))
        text = steps[-1].change.apply(text)
        at = start
    assert stream("a.py", TEXT, steps) == recorded(TEXT, steps)


def test_blanks_alone_are_no_hunk() -> None:
    assert stream("a.py", "a\nb\n", [Step(Change(2, 2, "\n"))]) == ()


def test_what_was_taken_back_after_a_pause_is_told_twice() -> None:
    steps = [Step(Change(0, 1, "z")), Step(Change(0, 1, "a"))]
    assert [(hunk.before, hunk.after) for hunk in stream("a.py", "a\nb\n", steps)] == [("a\n", "z\n"), ("z\n", "a\n")]
