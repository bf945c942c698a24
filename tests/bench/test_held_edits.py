from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.bench.stories_made import BILL, line, rename, write_stories

from calomel.bench.held_edits import Contenders, HeldOptions, ask_moment, ask_moments, report_of
from calomel.bench.held_summary import Row, held_figures, held_tables, share
from calomel.bench.suite import SuiteError
from calomel.report.result import CONVERTER
from calomel.report.running import Journal, Progress
from calomel.report.stories import Moment, Story, composed, moments, read_stories
from calomel.suggest.completer import Candidate, CompleteAnswer, CompleteRequest, CompleterError, ModelInfo


class Scripted:
    """Proposes `total` to `new` on a canvas, and judges drafts; how much it likes either is given."""

    def __init__(self, canvas: float = -9.0, drafts: float = -1.0, new: str = "amount") -> None:
        self.canvas, self.drafts, self.new = canvas, drafts, new
        self.asked = 0

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        self.asked += 1
        region = request.parts.region
        assert region is not None
        # What was begun is not to be rewritten: a canvas that proposes nothing is a text like any other.
        text = region.text.replace("total", self.new)
        made = [
            Candidate(text, (-0.1,), end_log_prob=0.0, log_prob=self.canvas, keep_log_prob=-5.0),
            *(
                Candidate(draft.text, (-0.1,), maker=draft.maker, log_prob=self.drafts, keep_log_prob=-5.0)
                for draft in request.drafts
            ),
        ]
        made.sort(key=lambda candidate: -(candidate.log_prob or 0.0))
        return CompleteAnswer(tuple(made), model="scripted")

    async def info(self) -> ModelInfo:
        return ModelInfo("scripted", "0", ("fill", "edit"), 2048, 2048, None, "0")

    async def aclose(self) -> None:
        pass


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return read_stories(write_stories(tmp_path / "s.zst", rename(), line()))[0]


def middle(story: Story) -> Moment:
    """The first line of the function is renamed, the others are not."""
    text = story.after(1)
    return Moment(story, story.changes[:1], composed(len(text), story.changes[1:]))


async def test_everybody_is_asked_about_the_same_moment(story: Story) -> None:
    row = await ask_moment(middle(story), Contenders(Scripted(), rival=Scripted(canvas=-1.0)))
    assert (row.kind, row.language, row.silent) == ("rename", "python", False)
    assert {name: (said.shown, said.right) for name, said in row.said.items()} == {
        "calomel": (True, True),
        "left_to_right": (True, True),
        "repeat": (True, True),
        "drafts": (True, True),
    }
    assert row.said["calomel"].maker == row.said["drafts"].maker != "canvas"
    assert row.said["left_to_right"].maker == "canvas"


async def test_what_is_likely_and_wrong_is_shown_and_wrong(story: Story) -> None:
    row = await ask_moment(middle(story), Contenders(Scripted(canvas=0.0, drafts=-9.0, new="sum")))
    assert (row.said["calomel"].shown, row.said["calomel"].right, row.said["calomel"].maker) == (True, False, "canvas")
    assert row.proposed["canvas"][0] is False
    assert any(all(right) for maker, right in row.proposed.items() if maker != "canvas")


async def test_a_model_that_likes_the_text_as_it_is_stays_silent(story: Story) -> None:
    row = await ask_moment(middle(story), Contenders(Scripted(canvas=-20.0, drafts=-20.0)))
    said = row.said["calomel"]
    assert (said.shown, said.right, said.reason) == (False, False, "low_confidence")
    end = moments(story)[-1]
    row = await ask_moment(end, Contenders(Scripted(canvas=-20.0, drafts=-20.0)))
    assert row.silent
    assert row.said["calomel"].right
    plain = CONVERTER.unstructure(row)
    assert CONVERTER.structure(json.loads(json.dumps(plain, allow_nan=False)), Row) == row


async def test_samples_say_what_the_gate_saw_and_what_was_right(story: Story) -> None:
    row = await ask_moment(middle(story), Contenders(Scripted(new="sum")))
    assert {(sample.maker == "canvas", sample.accepted) for sample in row.samples} == {(True, False), (False, True)}
    first = row.samples[0]
    assert (first.kind, first.language, first.group) == ("edit", "python", "shop")
    assert {"log_prob", "keep_log_prob", "tokens", "support", "distance", "characters_inserted"} < first.signals.keys()


async def test_where_nothing_is_shown_every_place_is_asked_about(story: Story) -> None:
    row = await ask_moment(middle(story), Contenders(Scripted(), audit=True))
    shown = await ask_moment(middle(story), Contenders(Scripted()))
    assert not row.said["calomel"].shown
    assert row.said["calomel"].probability == shown.said["calomel"].probability
    assert len(row.samples) >= len(shown.samples)


async def test_a_model_that_breaks_ends_the_run(story: Story) -> None:
    class Broken(Scripted):
        async def complete(self, request: CompleteRequest) -> CompleteAnswer:
            raise CompleterError("failed", "out of memory")

    with pytest.raises(SuiteError, match="did not answer: failed"):
        await ask_moment(middle(story), Contenders(Broken()))


async def test_an_interrupted_run_goes_on_where_it_stopped(story: Story, tmp_path: Path, progress: Progress) -> None:
    model = Scripted()
    both = moments(story)
    journal = Journal("edits", {}, folder=tmp_path)
    first = await ask_moments(both, Contenders(model), progress, journal)
    asked = model.asked
    journal = Journal("edits", {}, folder=tmp_path)
    again = await ask_moments(both, Contenders(model), progress, journal)
    assert again == first
    assert model.asked == asked


async def test_the_report_has_everybody_and_every_maker(story: Story, progress: Progress) -> None:
    model = Scripted()
    asked = [middle(story), moments(story)[-1]]
    rows = await ask_moments(asked, Contenders(model, rival=Scripted(canvas=-1.0)), progress)
    flat = held_figures(rows)
    assert (flat["edit_moments"], flat["silent_moments"], flat["stories"]) == (1, 1, 1)
    assert (flat["exact_match"], flat["repeat_exact_match"], flat["exact_match_kind_rename"]) == (1.0, 1.0, 1.0)
    assert flat["exact_match_over_left_to_right"] == 0.0
    assert flat["maker_canvas_chosen"] == 0.0
    assert report_of(rows, await model.info(), HeldOptions(baselines=False)).bench == "bench edits held-out alone"
    page = report_of(rows, await model.info(), HeldOptions()).to_markdown()
    assert "| last edit repeated by text substitution | 100.0% [100.0%, 100.0%] |" in page
    assert "| canvas | 100% |" in page
    whole, kinds, languages, harm, made = held_tables(rows)
    assert (flat["offers"], flat["harmful_offers"]) == (1, 0)
    assert tuple(harm.rows) == (("Calomel", "1", *["0 (0.0%)"] * 4),)
    assert [row[0] for row in kinds.rows] == ["rename"]
    assert [row[0] for row in languages.rows] == ["python"]
    assert len(whole.rows) == 4
    assert [row[:3] for row in made.rows if row[0] == "canvas"] == [("canvas", "100%", "100%")]
    assert flat["makers_right_any"] == 1.0


def test_intervals_resample_stories_not_moments() -> None:
    def row(story: str) -> Row:
        return Row("m", story, "p", "rename", "python", silent=False, half=False, said={})

    hits = {"a": 1.0, "b": 0.0}
    few = share([row("a"), row("b")], lambda each: hits[each.story])
    many = share([row("a"), row("b")] * 50, lambda each: hits[each.story])
    assert few is not None
    assert many is not None
    assert (few.low, few.high) == (many.low, many.high) == (0.0, 1.0)
    assert (few.n, many.n) == (2, 100)


def test_the_text_of_a_moment_is_what_its_changes_lead_to(story: Story) -> None:
    assert middle(story).text == BILL.replace("total", "amount", 1)
