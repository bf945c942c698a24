from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.stories_made import BILL, line, rename, write_stories

from calomel.report.stories import Moment, Story, chosen, composed, moments, read_stories


@pytest.fixture
def stories(tmp_path: Path) -> tuple[Story, ...]:
    return read_stories(write_stories(tmp_path / "s.zst", rename(), line()))


def in_the_middle(story: Story, count: int) -> Moment:
    text = story.after(count)
    return Moment(story, story.changes[:count], composed(len(text), story.changes[count:]))


def test_a_story_gives_a_moment_within_it_and_one_at_its_end(stories: tuple[Story, ...]) -> None:
    middle, end = moments(stories[0])
    assert not middle.silent
    assert 0 < len(middle.done) < len(stories[0].changes)
    assert middle.text[middle.cursor - 6 : middle.cursor] == "amount"
    assert end.silent
    assert end.text == BILL.replace("total", "amount")


def test_a_story_of_one_change_is_interrupted_within_it(stories: tuple[Story, ...]) -> None:
    half, end = moments(stories[1])
    assert half.half
    assert "    print(total)\n".startswith(half.done[0].text)
    (rest,) = half.coming
    assert rest.start == half.cursor
    assert half.right(end.text)


def test_right_is_any_of_the_coming_changes_and_nothing_else(stories: tuple[Story, ...]) -> None:
    moment = in_the_middle(stories[0], 1)
    text = moment.text
    assert moment.right(text.replace("if total", "if amount"))
    assert moment.right(text.replace("return total", "return amount"))
    assert moment.right(text.replace("total", "amount"))
    assert not moment.right(text)
    assert not moment.right(text.replace("if total", "if amoun"))
    assert not moment.right(text.replace("total", "amount") + "\n")
    assert not moment.right(text.replace("if total", "if amount").replace("prices", "price"))
    assert not moment.right(BILL)


def test_at_the_end_no_suggestion_is_right(stories: tuple[Story, ...]) -> None:
    end = moments(stories[0])[-1]
    assert not end.right(end.text)
    assert not end.right(end.text + "\n")


def test_moments_are_the_same_in_every_run_and_of_all_kinds_alike(stories: tuple[Story, ...]) -> None:
    many = [Story("rename", "python", f"p/{number}.py", BILL, stories[0].changes) for number in range(20)]
    found = chosen([*many, stories[1]], limit=4)
    assert found == chosen([stories[1], *reversed(many)], limit=4)
    assert sorted((moment.story.kind, moment.silent) for moment in found) == [
        ("line_completed", False),
        ("line_completed", True),
        ("rename", False),
        ("rename", True),
    ]
    assert {moment.story.kind for moment in chosen([*many, stories[1]], ["rename"])} == {"rename"}
