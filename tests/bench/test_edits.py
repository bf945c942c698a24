from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.bench.suite import write_suite

from calomel.bench.edits import ask_all, ask_plain
from calomel.bench.suite import SuiteError, figures, read_suite, score_above
from calomel.suggest.completer import Candidate, CompleteAnswer, CompleteRequest, CompleterError, Kind, ModelInfo


class Scripted:
    """Knows the right edit of one scenario, and would leave every other text as it is."""

    def __init__(self, kinds: tuple[Kind, ...] = ("fill", "edit"), sure: float = -0.01) -> None:
        self.kinds, self.sure = kinds, sure
        self.requests: list[CompleteRequest] = []

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        self.requests.append(request)
        if request.kind not in self.kinds:
            return CompleteAnswer((), reason="not_trained_for_edits", model="scripted")
        region = request.parts.region
        text = "" if region is None else region.text.replace("return total", "return amount")
        return CompleteAnswer((Candidate(text, log_probs=(self.sure,) * 4, finish_reason="stop"),), model="scripted")

    async def info(self) -> ModelInfo:
        return ModelInfo("scripted", "0", self.kinds, 2048, 2048, None, "0")

    async def aclose(self) -> None:
        pass


async def test_the_right_edit_of_a_sure_model_is_shown_and_scored(tmp_path: Path) -> None:
    cases, _ = read_suite(write_suite(tmp_path))
    rows = await ask_all(cases, Scripted())
    assert [(row.name, row.shown, row.right) for row in rows] == [
        ("01-rename", True, True),
        ("02-quiet@L1", False, True),
        ("02-quiet@L2", False, True),
        ("03-blank-end", False, False),
    ]


async def test_the_history_reaches_the_model_as_an_edit(tmp_path: Path) -> None:
    cases, _ = read_suite(write_suite(tmp_path))
    model = Scripted()
    await ask_all(cases[:1], model)
    (hunk,) = model.requests[0].parts.edits
    assert (hunk.path, hunk.before.strip(), hunk.after.strip()) == (
        "bill.py",
        "total = sum(prices)",
        "amount = sum(prices)",
    )


async def test_a_model_that_is_not_sure_stays_silent_though_a_key_was_pressed(tmp_path: Path) -> None:
    cases, _ = read_suite(write_suite(tmp_path))
    rows = await ask_all(cases[:1], Scripted(sure=-5.0))
    assert [(row.shown, row.reason) for row in rows] == [(False, "low_confidence")]


async def test_a_model_that_does_not_know_edits_is_silent_for_that_reason(tmp_path: Path) -> None:
    cases, _ = read_suite(write_suite(tmp_path))
    rows = await ask_all(cases, Scripted(("fill",)))
    assert {row.reason for row in rows} == {"not_trained_for_edits"}
    flat = figures(rows, seed=0)
    assert (flat["score"], flat["show_rate"], flat["quiet_rate"], flat["exact_match"]) == (0.0, 0.0, 1.0, 0.0)
    assert flat["quiet_rate_low"] == pytest.approx(0.342, abs=1e-3)
    json.dumps(flat, allow_nan=False)


async def test_a_model_that_breaks_is_not_taken_for_a_silent_one(tmp_path: Path) -> None:
    class Broken(Scripted):
        async def complete(self, request: CompleteRequest) -> CompleteAnswer:
            raise CompleterError("failed", "out of memory")

    cases, _ = read_suite(write_suite(tmp_path))
    with pytest.raises(SuiteError, match="01-rename: the model did not answer: failed"):
        await ask_all(cases, Broken())


async def test_figures_lie_within_their_bounds(tmp_path: Path) -> None:
    cases, _ = read_suite(write_suite(tmp_path))
    rows = await ask_all(cases, Scripted())
    flat = figures(rows, seed=1)
    for name in ("score", "delta_chrf", "show_rate", "quiet_rate", "exact_match"):
        low, value, high = flat[f"{name}_low"], flat[name], flat[f"{name}_high"]
        assert isinstance(low, float)
        assert isinstance(value, float)
        assert isinstance(high, float)
        assert low <= value <= high, name


async def test_baselines_answer_the_same_cases(tmp_path: Path) -> None:
    cases, _ = read_suite(write_suite(tmp_path))
    plain = ask_plain(cases, Scripted())
    assert {name: [(row.shown, row.right) for row in rows] for name, rows in plain.items()} == {
        "repeat": [(True, True), (False, True), (False, True), (False, False)],
        "drafts": [(True, True), (False, True), (False, True), (False, False)],
    }
    rows = await ask_all(cases, Scripted(sure=-9.0))
    above = score_above(rows, plain["repeat"], "repeat", seed=0)
    low, value, high = above["score_over_repeat_low"], above["score_over_repeat"], above["score_over_repeat_high"]
    assert isinstance(low, float)
    assert isinstance(value, float)
    assert isinstance(high, float)
    assert low <= value <= high
    assert value < 0
    assert set(score_above(rows, rows, "itself", seed=0).values()) == {0.0}
