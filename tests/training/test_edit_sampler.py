from __future__ import annotations

import random

import pytest

from calomel.training.edit_sampler import StorySampler
from calomel.training.edits.story import Change, Story


def stories(kind: str, language: str, count: int) -> list[Story]:
    changes = (Change(0, 1, "b"), Change(2, 3, "b"))
    return [Story(kind, language, f"{number}.py", "a a\n", changes) for number in range(count)]


def test_commits_have_their_share_however_many_there_are() -> None:
    sampler = StorySampler([*stories("rename", "python", 3), *stories("commit", "python", 300)], {}, commits=0.25)
    rng = random.Random(0)
    drawn = [sampler.draw(rng).kind for _ in range(2000)]
    assert drawn.count("commit") / 2000 == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize("kind", ["rename", "commit"])
def test_a_language_without_commits_or_with_nothing_else_is_drawn_all_the_same(kind: str) -> None:
    sampler = StorySampler(stories(kind, "go", 2), {"go": 1.0}, commits=0.5)
    rng = random.Random(0)
    assert {sampler.draw(rng).kind for _ in range(20)} == {kind}
