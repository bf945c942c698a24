"""What recalled texts are worth, fitted to holes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.bench.stories_made import write_stories

from calomel.bench.recall_fit import RecallSample, fit, fit_recall, logistic
from calomel.infer import recall
from calomel.report.heldout import BenchDataError, read_heldout


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
    with pytest.raises(BenchDataError, match=r"of 30 own answers are right; it takes 20"):
        fit(made(30))
    with pytest.raises(BenchDataError, match="own answers"):
        logistic([recall.own_features([-1.0], None)] * 50, [True] * 50, recall.OWN, "own answers")


def test_held_out_packages_are_not_fitted_on(tmp_path: Path) -> None:
    package = read_heldout()[0].package
    row = {"package": package, "path": "a.py", "language": "python", "text": "x = 1\n"}
    place = write_stories(tmp_path / "documents.jsonl.zst", row)
    with pytest.raises(BenchDataError, match=f"held-out packages .{package}."):
        fit_recall(place)
