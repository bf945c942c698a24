"""Held-out stories, their moments, who is right about them, and offers that nobody could want."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.conftest import BILL, line, rename, write_stories
from tests.suggest.editor import ScriptedModel

from calomel.bench.harm import NAMES, SYNTAX, UNDO, Offered, harms
from calomel.bench.held_edits import Contenders, HeldOptions, ask_moment, ask_moments, report_of
from calomel.bench.held_summary import LOSSES, Row, Said, held_figures, held_tables, losses
from calomel.bench.suite import SuiteError
from calomel.infer.completer import Candidate, CompleteRequest, CompleterError
from calomel.prompts.parts import Edit, composed
from calomel.replay.stories import Moment, Story, chosen, moments, read_stories, turned
from calomel.report.heldout import BenchDataError
from calomel.report.result import CONVERTER
from calomel.report.running import Progress


def test_a_file_that_is_absent_or_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchDataError, match="does not exist"):
        read_stories(tmp_path / "none.zst")
    (tmp_path / "bad.zst").write_bytes(b"no")
    with pytest.raises(BenchDataError, match=r"bad\.zst is damaged"):
        read_stories(tmp_path / "bad.zst")
    row = {**line(), "changes": [[0, 10_000, ""]]}
    with pytest.raises(BenchDataError, match="outside of its text"):
        read_stories(write_stories(tmp_path / "far.zst", row))


@given(st.data())
def test_composed_changes_lead_to_the_same_text(data: st.DataObject) -> None:
    before = text = data.draw(st.text("abc\n", max_size=20))
    changes = []
    for _ in range(data.draw(st.integers(0, 5))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        changes.append(Edit(start, end, data.draw(st.text("xyz", max_size=3))))
        text = changes[-1].apply(text)
    found = composed(len(before), changes)
    result = before
    for change in reversed(found):
        result = change.apply(result)
    assert result == text
    assert all(one.end < other.start for one, other in pairwise(found))


@pytest.fixture
def stories(tmp_path: Path) -> tuple[Story, ...]:
    return read_stories(write_stories(tmp_path / "s.zst", rename(), line()))


def test_a_story_gives_a_moment_within_it_and_one_at_its_end(stories: tuple[Story, ...]) -> None:
    middle, end = moments(stories[0])
    assert not middle.silent
    assert 0 < len(middle.done) < len(stories[0].changes)
    assert middle.text[middle.cursor - 6 : middle.cursor] == "amount"
    assert end.silent
    assert end.text == BILL.replace("total", "amount")


def test_right_is_any_of_the_coming_changes_and_nothing_else(stories: tuple[Story, ...]) -> None:
    moment = middle(stories[0])
    text = moment.text
    assert moment.right(text.replace("if total", "if amount"))
    assert moment.right(text.replace("return total", "return amount"))
    assert moment.right(text.replace("total", "amount"))
    assert not moment.right(text)
    assert not moment.right(text.replace("if total", "if amoun"))
    assert not moment.right(text.replace("total", "amount") + "\n")
    assert not moment.right(text.replace("if total", "if amount").replace("prices", "price"))
    assert not moment.right(BILL)


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


def scripted(canvas: float = -9.0, drafts: float = -1.0, new: str = "amount") -> ScriptedModel:
    """Proposes `total` to `new` on a canvas, and judges drafts; how much it likes either is given."""

    def reply(request: CompleteRequest) -> tuple[Candidate, ...]:
        region = request.parts.region
        if region is None:  # nothing to fill in where something is unfinished
            return ()
        # What was begun is not to be rewritten: a canvas that proposes nothing is a text like any other.
        text = region.text.replace("total", new)
        made = [
            Candidate(text, (-0.1,), end_log_prob=0.0, log_prob=canvas, keep_log_prob=-5.0),
            *(
                Candidate(draft.text, (-0.1,), maker=draft.maker, log_prob=drafts, keep_log_prob=-5.0)
                for draft in request.drafts
            ),
        ]
        return tuple(sorted(made, key=lambda candidate: -(candidate.log_prob or 0.0)))

    return ScriptedModel(reply)


def middle(story: Story) -> Moment:
    """The first line of the function is renamed, the others are not."""
    text = story.after(1)
    return Moment(story, story.changes[:1], composed(len(text), story.changes[1:]))


async def test_everybody_is_asked_about_the_same_moment(story: Story) -> None:
    row = await ask_moment(middle(story), Contenders(scripted(), baselines=True))
    assert (row.kind, row.language, row.silent) == ("rename", "python", False)
    assert row.offers == ((),)
    audit = await ask_moment(middle(story), Contenders(scripted(), audit=True))
    assert not audit.said["calomel"].shown
    assert audit.said["calomel"].probability == row.said["calomel"].probability
    assert {name: (said.shown, said.right) for name, said in row.said.items()} == {
        "calomel": (True, True),
        "repeat": (True, True),
        "drafts": (True, True),
    }
    assert row.said["calomel"].maker == row.said["drafts"].maker != "canvas"


async def test_a_model_that_likes_the_text_as_it_is_stays_silent(story: Story) -> None:
    row = await ask_moment(middle(story), Contenders(scripted(canvas=-20.0, drafts=-20.0)))
    said = row.said["calomel"]
    assert (said.shown, said.right, said.reason) == (False, False, "low_confidence")
    end = moments(story)[-1]
    row = await ask_moment(end, Contenders(scripted(canvas=-20.0, drafts=-20.0)))
    assert row.silent
    assert row.said["calomel"].right
    plain = CONVERTER.unstructure(row)
    assert CONVERTER.structure(json.loads(json.dumps(plain, allow_nan=False)), Row) == row


async def test_a_model_that_breaks_ends_the_run(story: Story) -> None:
    broken = ScriptedModel(lambda _: CompleterError("failed", "out of memory"))
    with pytest.raises(SuiteError, match="did not answer: failed"):
        await ask_moment(middle(story), Contenders(broken))


async def test_the_report_has_everybody_and_every_maker(story: Story, progress: Progress) -> None:
    model = scripted()
    asked = [middle(story), moments(story)[-1]]
    rows = await ask_moments(asked, Contenders(model, baselines=True), progress)
    flat = held_figures(rows)
    assert (flat["edit_moments"], flat["silent_moments"], flat["stories"]) == (1, 1, 1)
    assert (flat["exact_match"], flat["repeat_exact_match"], flat["exact_match_kind_rename"]) == (1.0, 1.0, 1.0)
    assert flat["maker_canvas_chosen"] == 0.0
    assert report_of(rows, await model.info(), HeldOptions(baselines=False)).bench == "bench edits held-out alone"
    page = report_of(rows, await model.info(), HeldOptions()).to_markdown()
    assert "| last edit repeated by text substitution | 100.0% [100.0%, 100.0%] |" in page
    assert "| canvas | 100% |" in page
    whole, lost, kinds, languages, harm, made = held_tables(rows)
    assert tuple(lost.rows) == (("all", "1", "0", "0", "0", "0"), ("rename", "1", "0", "0", "0", "0"))
    assert (flat["offers"], flat["harmful_offers"]) == (1, 0)
    assert tuple(harm.rows) == (("Calomel", "1", *["0 (0.0%)"] * 4),)
    assert [row[0] for row in kinds.rows] == ["rename"]
    assert [row[0] for row in languages.rows] == ["python"]
    assert len(whole.rows) == 3
    assert [row[:3] for row in made.rows if row[0] == "canvas"] == [("canvas", "100%", "100%")]
    assert flat["makers_right_any"] == 1.0


@pytest.mark.parametrize(
    ("said", "proposed", "where"),
    [
        (Said(shown=True, right=True, maker="rename"), {"rename": (True,)}, "right"),
        (Said(shown=False, right=False), {"shape": (False, True)}, "held_back"),
        (Said(shown=True, right=False, maker="shape"), {"shape": (False,), "rename": (True,)}, "another"),
        (Said(shown=False, right=False), {"shape": (False,)}, "wrong_text"),
        (Said(shown=False, right=False), {"shape": ()}, "no_place"),
    ],
)
def test_the_bench_says_where_an_edit_was_lost(said: Said, proposed: dict[str, tuple[bool, ...]], where: str) -> None:
    row = Row("m", "s", "p", "rename", "go", silent=False, half=False, said={"calomel": said}, proposed=proposed)

    assert losses([row])["rename"] == {name: int(name == where) for name in LOSSES}


PAY = "def pay(cart, percent):\n    value = cart.total()\n    value = value - percent\n    return value\n"


def an_offer(old: str, new: str, *done: tuple[str, str], before: str = PAY, path: str = "pay.py") -> Offered:
    """`new` for the first `old`, after each first `done` became what it is paired with; the cursor is at the front."""
    text, changes = before, []
    for gone, came in done:
        at = text.index(gone)
        changes.append(Edit(at, at + len(gone), came))
        text = changes[-1].apply(text)
    at = text.index(old)
    return Offered(text, (Edit(at, at + len(old), new),), 0, path, before, changes)


@pytest.mark.parametrize(
    ("offer", "expected"),
    [
        (an_offer("cart.total()", "cart.total(, percent)"), (SYNTAX,)),
        (an_offer("- percent", "- minimum"), (NAMES,)),
        (an_offer("amount", "value", ("value", "amount")), (UNDO,)),
        (an_offer("cart.sum()", "cart.total()", ("total", "sum"), ("percent", "share")), (UNDO,)),
        # Wrong perhaps, and no harm.
        (an_offer("value - percent", "amount - percent", ("value", "amount")), ()),
        (an_offer("cart.total()", "cart.total(limit=percent)"), ()),
        (an_offer("return value", "rest = value\n    return rest"), ()),
        (an_offer("def pay(cart, percent)", "def pay(cart, percent, minimum=0)"), ()),
        (an_offer("return value", "for item in cart:\n        print(item)\n    return value"), ()),
        (an_offer("value", "nothing at all (", path="notes.txt"), ()),
    ],
)
def test_an_offer_harms_that_nobody_could_want(offer: Offered, expected: tuple[str, ...]) -> None:
    assert harms(offer) == expected


@pytest.fixture
def story(stories: tuple[Story, ...]) -> Story:
    return stories[0]


def test_a_story_told_in_another_order_comes_to_the_same_text() -> None:
    stories = read_stories()
    told = [turned(story) for story in stories]
    for story, other in zip(stories, told, strict=True):
        assert other.after(len(other.changes)) == story.after(len(story.changes))

    def upwards(found: Sequence[Story]) -> int:
        return sum(later.start < each.start for story in found for each, later in pairwise(story.changes))

    # People go up their files, too.
    assert upwards(told) > 5 * upwards(stories)
