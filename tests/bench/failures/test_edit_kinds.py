from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.stories_made import BILL, rename, write_stories

from calomel.bench.failures.edit_case import Block, EditCase, blocks
from calomel.bench.failures.edit_kinds import as_hole, describe, edit_kind
from calomel.bench.failures.moments_asked import judged
from calomel.bench.moments import Moment
from calomel.bench.stories import composed, read_stories


@pytest.fixture
def moment(tmp_path: Path) -> Moment:
    """The first line of the function is renamed, the others are not."""
    story = read_stories(write_stories(tmp_path / "s.zst", rename()))[0]
    return Moment(story, story.changes[:1], composed(len(story.after(1)), story.changes[1:]))


@pytest.fixture
def end(tmp_path: Path) -> Moment:
    """Everything is renamed."""
    story = read_stories(write_stories(tmp_path / "e.zst", rename()))[0]
    return Moment(story, story.changes, ())


def test_a_suggestion_where_nothing_is_to_come_should_not_be(end: Moment) -> None:
    assert edit_kind(EditCase(end, end.text + "print(1)\n")) == "should_be_silent"
    assert EditCase(end, None).right


def test_silence_is_the_gates_fault_or_the_proposals(moment: Moment) -> None:
    wanted = EditCase(moment, None).wanted
    wrong = moment.text.replace("5", "6")
    assert edit_kind(EditCase(moment, None)) == "nothing_proposed"
    assert edit_kind(EditCase(moment, None, (wrong,))) == "only_wrong_proposals"
    assert edit_kind(EditCase(moment, None, (wrong, wanted))) == "held_back"


def test_what_was_shown_is_judged_by_its_lines(moment: Moment) -> None:
    right = moment.text.replace("if total", "if amount")
    assert EditCase(moment, right).right
    assert edit_kind(EditCase(moment, right.replace("def bill", "def pay"))) == "too_much"
    assert edit_kind(EditCase(moment, moment.text.replace("def bill", "def pay"))) == "wrong_place"
    assert edit_kind(EditCase(moment, moment.text.replace("def bill", "def pay"), (right,))) == "wrong_choice"
    assert edit_kind(EditCase(moment, moment.text.replace("if total", "if  amount"))) == "wrong_text:whitespace"
    assert edit_kind(EditCase(moment, moment.text.replace("if total", "if price"))).startswith("wrong_text:")


def test_a_wrong_text_is_shown_as_the_lines_that_were_to_change(moment: Moment) -> None:
    hole = as_hole(EditCase(moment, moment.text.replace("if total > 100", "if price > 100")))
    assert hole is not None
    assert hole.truth == "    if amount > 100:\n"
    assert hole.answer == "    if price > 100:\n"
    assert hole.prefix == "def bill(prices):\n    amount = sum(prices)\n"
    assert hole.suffix == "        total = total - 5\n    return total\n"


def test_a_verdict_says_what_a_right_edit_would_have_saved(moment: Moment) -> None:
    verdict = judged(EditCase(moment, None))
    # `amount`, less the key that takes it.
    assert (verdict.kind, verdict.saved, verdict.answer) == ("nothing_proposed", 5, None)
    assert verdict.row == "rename"


def test_lines_that_differ_are_blocks() -> None:
    assert blocks("a\nb\nc\n", "a\nB\nc\nd\n") == (Block(1, 2, ("B\n",)), Block(3, 3, ("d\n",)))
    assert blocks("a\nb\n", "A\nB\n") == (Block(0, 1, ("A\n",)), Block(1, 2, ("B\n",)))
    assert blocks(BILL, BILL) == ()


def test_kinds_are_told_in_words() -> None:
    assert describe("held_back").startswith("silent")
    assert "white space" in describe("wrong_text:whitespace")
    assert describe("wrong_text:other") == "the right place, a wrong text: otherwise"
