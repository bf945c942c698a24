"""What is shown, and why not: filters, a calibrator, a threshold."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.suggest.editor import NOW, editing, suggestion

from calomel.infer.completer import Candidate, FinishReason, ModelInfo, causal
from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator, KindCalibrator
from calomel.selectivity.proposal import Recent
from calomel.suggest.edit import Suggestion
from calomel.suggest.judging import calibrator_for, user_calibrator_path
from calomel.suggest.signals import kinship
from calomel.suggest.snapshot import Trigger
from calomel.workspace.edits import TextEdit, plan


async def test_the_likeliest_candidate_that_passes_is_found_and_knows_how_the_others_agree() -> None:
    candidates = (
        Candidate("f(a]", (-0.01,)),
        Candidate(" + 1", (-0.3,)),
        Candidate(" + 1", (-0.2,), maker="canvas"),
        Candidate("", (-0.1,)),
    )
    async with editing("first = old\nsecond = old|\nthird = 3\n", lambda _: candidates, settings=NOW) as editor:
        found = suggestion(await editor.inline())
        assert (found.maker, found.edits[0].text) == ("canvas", " + 1")
        editor.suggester.accepted(found.id)
        signals = editor.outcomes.all[0].signals
        assert signals is not None
        assert (signals.agreement.agreeing, signals.agreement.rivals) == (1, 1)


@pytest.mark.parametrize(
    ("text", "joint", "finish_reason", "shown"),
    [
        ("count_all(items)", 0.6, "stop", True),
        ("count_all(items)", 0.4, "stop", False),
        ("count_all", 0.6, "unlikely", True),  # the rest was less likely
        ("count_all(items, ", 0.6, "unlikely", True),  # without the bracket that it leaves open
        ("", 0.6, "unlikely", False),
        # What saves little has to be surer.
        ("size", 0.6, "stop", False),
        ("size", 0.8, "stop", True),
    ],
)
async def test_text_is_shown_as_far_as_its_model_is_sure(
    text: str,
    joint: float,
    finish_reason: FinishReason,
    shown: bool,  # noqa: FBT001 (a case)
) -> None:
    said = causal(Candidate(text, (math.log(joint),) if text else (), finish_reason=finish_reason))
    async with editing("total = |\n", lambda _: (said,), settings=NOW) as editor:
        editor.model.source = "fim"
        answer = await editor.inline()
        assert isinstance(answer, Suggestion) is shown, answer
        assert editor.model.requests[0].floor == pytest.approx(math.log(0.5))
        if isinstance(answer, Suggestion):
            assert answer.edits[0].text == text.partition("(items, ")[0]
        else:
            await editor.inline(Trigger.EXPLICIT)
            assert editor.model.requests[-1].floor is None


async def test_a_canvas_without_a_calibrator_has_no_floor() -> None:
    async with editing("total = |\n", settings=NOW) as editor:
        editor.model.source = "small"
        await editor.inline()
        assert editor.model.requests[0].floor is None


async def test_how_sure_a_model_has_to_be_follows_the_settings() -> None:
    floors = []
    for wanted in ("quiet", "balanced", "eager", 0.9):
        async with editing("total = |\n", settings=replace(NOW, aggressiveness=wanted)) as editor:
            editor.model.source = "fim"
            await editor.inline()
            floors += [math.exp(each.floor or 0.0) for each in editor.model.requests]
    assert floors == pytest.approx([0.7, 0.5, 0.3, 0.9])


SHIPPED = Calibrator({"fill": KindCalibrator({"steps": 1.0}, 0.0), "edit": KindCalibrator({"steps": 2.0}, 0.0)})


OWN = Calibrator({"fill": KindCalibrator({"steps": 3.0}, 1.0, thresholds={"quiet": 0.4})}, "0123abcd")


@pytest.fixture
def info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelInfo:
    """A model with a calibrator beside its weights, of somebody who has none of their own yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    SHIPPED.write(tmp_path / "model" / CALIBRATOR_FILE)
    tokenizer = str(tmp_path / "model" / "tokenizer.json")
    return ModelInfo("nano", "0123abcd", ("fill", "edit"), 2048, 1024, tokenizer, "1")


def test_ones_own_replaces_the_kinds_that_it_has(info: ModelInfo, tmp_path: Path) -> None:
    path = user_calibrator_path(info.weights)
    assert path.is_relative_to(tmp_path / "state")
    OWN.write(path)
    found = calibrator_for(info)
    assert found.kinds == {"fill": OWN.kinds["fill"], "edit": SHIPPED.kinds["edit"]}
    assert (found.thresholds("fill")["quiet"], found.thresholds("edit")["quiet"]) == (0.4, 0.5)
    assert found.model == "0123abcd"


@pytest.mark.parametrize("model", ["", "another"])
def test_one_that_was_fitted_for_other_weights_is_not_used(info: ModelInfo, model: str) -> None:
    Calibrator(OWN.kinds, model).write(user_calibrator_path(info.weights))
    assert calibrator_for(info) == SHIPPED


def test_a_damaged_one_is_left_alone_and_said(info: ModelInfo, caplog: pytest.LogCaptureFixture) -> None:
    path = user_calibrator_path(info.weights)
    path.parent.mkdir(parents=True)
    path.write_text("{ torn")
    with caplog.at_level(logging.WARNING):
        assert calibrator_for(info) == SHIPPED
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(path) in caplog.text
    assert path.read_text() == "{ torn"


@pytest.mark.parametrize(
    ("at", "new", "nearest", "indented", "remaining"),
    [
        ("two(old)", "two(new)", 1, 1, 2),
        ("four(old)", "four(new)", 3, 0, 2),
        ("    two", "    three", 1, 1, 1),
        ("):", ", more):", 1, 0, 0),
    ],
)
def test_a_suggestion_is_compared_with_what_was_just_done(
    at: str, new: str, nearest: int, indented: int, remaining: int
) -> None:
    text = "def f(a):\n    one(new)\n    two(old)\n\nfour(old)\n"
    place = text.index("new")
    edits = plan(text, [TextEdit(text.index(at), text.index(at) + len(at), new)])
    found = kinship(text, edits, [Recent(place, place + 3, "old", "new")])
    assert (found.nearest, found.indented, found.remaining) == (nearest, indented, remaining)
    assert kinship(text, edits, ()).nearest is None
