from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.bench.conftest import write_stories
from tests.selectivity.made import TRUTH, drawn, sample

from calomel.bench.recall_fit import RecallSample, fit, fit_recall, logistic
from calomel.bench.selectivity import SelectivityFigures, SelectivityOptions, run_selectivity
from calomel.infer import recall
from calomel.report import result
from calomel.report.heldout import BenchDataError, read_heldout
from calomel.report.result import Interval
from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator, KindCalibrator
from calomel.selectivity.fit import TooFewError
from calomel.selectivity.sample import Sample


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds are not the matter here."""
    monkeypatch.setattr(result, "ROUNDS_OF_STATISTICS", 20)


def right(count: int = 40) -> list[Sample]:
    """Every second one is accepted, and a signal tells which."""
    return [
        sample(
            number,
            "accepted" if number % 2 else "rejected",
            signals={"support": 10 if number % 2 else 0},
            time=60.0 * number,
            saved_characters=6 if number % 2 else 0,
        )
        for number in range(count)
    ]


PERFECT = Calibrator({"fill": KindCalibrator({"support": 20.0}, -20.0)})


def value(interval: Interval | None) -> float:
    assert interval is not None
    return interval.value


def ranked(calibrator: Calibrator) -> dict[str, float]:
    return {name: value(each) for name, each in SelectivityFigures(right(), calibrator).ranking().items()}


def test_a_perfect_calibrator_ranks_and_tells_the_truth() -> None:
    found = ranked(PERFECT)
    assert found["auroc"] == 1.0
    assert (found["ece"], found["brier"]) == pytest.approx((0.0, 0.0), abs=1e-6)
    # Of the surest half nothing is wrong; then ever more of what is shown.
    assert found["aurc"] == pytest.approx(sum(1 - 20 / max(20, k) for k in range(1, 41)) / 40)


def test_a_threshold_is_measured_against_showing_everything() -> None:
    figures = SelectivityFigures(right(), PERFECT)
    assert (figures.questions, figures.accepted) == (40, 20)
    half = figures.threshold({"fill": 0.5})
    assert half.shown == 20
    assert (value(half.fewer), value(half.lost), value(half.acceptance), value(half.characters)) == (0.5, 0.0, 1.0, 1.0)
    everything = figures.threshold({"fill": 0.0})
    assert everything.shown == 40
    assert (value(everything.fewer), value(everything.lost), value(everything.acceptance)) == (0.0, 0.0, 0.5)
    nothing = figures.threshold({"fill": 1.1})
    assert nothing.shown == 0
    assert (value(nothing.fewer), value(nothing.lost), nothing.acceptance) == (1.0, 1.0, None)
    assert value(nothing.characters) == 0.0
    # Of all there is no spread, so that the bound is Wilson's.
    assert half.acceptance is not None
    assert half.acceptance.low == pytest.approx(0.839, abs=1e-3)


def written(path: Path, samples: list[Sample]) -> Path:
    path.write_text("".join(each.to_line() for each in samples), encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    fitted = replace(TRUTH, thresholds={"quiet": 0.7, "balanced": 0.25, "eager": 0.1})
    Calibrator({"fill": fitted}).write(tmp_path / "model" / CALIBRATOR_FILE)
    return tmp_path / "model"


def test_a_report_has_every_figure_for_machines_and_for_people(model: Path, tmp_path: Path) -> None:
    one = written(tmp_path / "one.jsonl", [*drawn(30), sample(99, "accepted", filters=("unbalanced",))])
    two = written(tmp_path / "two.jsonl", drawn(20, seed=2))
    report = run_selectivity(SelectivityOptions((one, two), model))
    report.write(json_path=tmp_path / "r.json", results=tmp_path / "out")
    flat = json.loads((tmp_path / "r.json").read_text())
    assert (flat["one.questions"], flat["one.candidates"], flat["two.candidates"]) == (31, 31, 20)
    assert flat["one.all.auroc"] == flat["one.fill.auroc"] > 0.6
    assert flat["one.edit.auroc"] is None
    assert (flat["one.at_balanced.threshold_fill"], flat["one.at_balanced.threshold_edit"]) == (0.25, 0.3)
    assert flat["one.at_eager.shown"] >= flat["one.at_balanced.shown"] >= flat["one.at_quiet.shown"]
    assert flat["one.filter.unbalanced.accepted"] == 1
    page = (tmp_path / "out" / "bench-selectivity.md").read_text()
    assert page == report.to_markdown()
    for words in (
        "one: thresholds against showing everything",
        "two: hard filters",
        "balanced (0.250, 0.300)",
        "all, raw",
        "unbalanced",
    ):
        assert words in page


def made(count: int) -> list[RecallSample]:
    """Recalled texts that are right where much agrees, own answers where the model is sure."""
    rng = random.Random(3)
    samples = []
    for _ in range(count):
        agrees, confident = rng.random() < 0.5, rng.random() < 0.3
        found = recall.CopyCandidate("text", 60 if agrees else 6, 30 if agrees else 1, 3, 3 if agrees else 1)
        own, said = [-0.2 if confident else -4.0], [-3.0]
        samples.append(
            RecallSample(
                recall.own_features(own, -0.1),
                own_right=rng.random() < (0.5 if confident else 0.05),
                prior=recall.prior_features(found, 1),
                draft=recall.draft_features(found, said, -1.0),
                draft_right=rng.random() < (0.9 if agrees else 0.1),
            )
        )
    return samples


def test_a_fit_says_what_is_true_of_its_samples() -> None:
    samples = made(2_000)

    worth = fit(samples)

    much, little = recall.CopyCandidate("text", 60, 30, 3, 3), recall.CopyCandidate("text", 6, 1, 3, 1)
    assert recall.probability(worth.prior, recall.prior_features(much, 1)) == pytest.approx(0.9, abs=0.04)
    assert worth.of_draft(little, [-3.0], -1.0) == pytest.approx(0.1, abs=0.04)
    assert worth.of_own([-0.2], -0.1) == pytest.approx(0.5, abs=0.06)
    # The model is never surer of itself than this, so it is not asked where more agrees.
    assert worth.sure == pytest.approx(0.5, abs=0.06)
    assert worth.is_sure(much, 1)
    assert not worth.is_sure(little, 1)


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(TooFewError, match=r"of 30 own answers are right; a fit needs 20"):
        fit(made(30))
    with pytest.raises(TooFewError, match="own answers"):
        logistic([recall.own_features([-1.0], None)] * 50, [True] * 50, recall.OWN, "own answers")


def test_held_out_packages_are_not_fitted_on(tmp_path: Path) -> None:
    package = read_heldout()[0].package
    row = {"package": package, "path": "a.py", "language": "python", "text": "x = 1\n"}
    place = write_stories(tmp_path / "documents.jsonl.zst", row)
    with pytest.raises(BenchDataError, match=f"held-out packages .{package}."):
        fit_recall(place)
