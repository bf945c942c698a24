from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import pytest

from calomel.selectivity.features import Subject, features
from calomel.suggest.company import Company
from calomel.suggest.completer import Candidate
from calomel.suggest.gate import Signals
from calomel.suggest.judging import subject_of
from calomel.suggest.outcome import Outcome
from calomel.suggest.outcome_record import line_of, record_of
from calomel.suggest.outcome_signals import OutcomeSignals, signals_of
from calomel.suggest.planned import Planned
from calomel.suggest.surroundings import surroundings
from calomel.suggest.trigger import Trigger

TEXT = "total = 1\nresult = tot\n"
EDITS = (Planned(22, 22, "al + 1", ""),)
CANDIDATE = Candidate(
    "al + 1",
    (-0.1, -1.0 / 3),
    (0.2, 1.4),
    -0.05,
    steps=3,
    length_scores=((2, -1.0), (4, -2.5)),
    maker="seeded",
    log_prob=-2.0 / 3,
    keep_log_prob=-4.1,
)
KNOWN = Signals(
    "edit",
    Trigger.EDIT,
    (),
    language_id="python",
    distance=2,
    since_edit=1.0 / 3,
    accepted=3,
    rejected=4,
    cut=1,
    support=2,
    company=Company(1, 2, 1.0 / 7),
    place="code",
    around=surroundings(TEXT, 22, EDITS),
)


def test_a_suggestion_has_the_same_features_live_and_in_the_outcome_log() -> None:
    live = subject_of("edit", CANDIDATE, EDITS, KNOWN)
    line = line_of(
        Outcome(
            "1", "shown", "", "edit", "file:///a.py", "python", "edit", "nano", 0.5, 1.0, 6, 0, "al + 1",
            signals_of(CANDIDATE, EDITS, KNOWN), "seeded",
        ),
        time=1.0,
        session="5e55",
        version="1",
    )  # fmt: skip
    kept = record_of(line)
    logged = Subject(kept.kind, kept.maker, kept.language, kept.signals)
    assert features(logged) == features(live)
    found = features(live)
    assert found["judged"] == 1.0
    assert found["place:code"] == found["maker:seeded"] == found["before:word"] == 1.0
    assert found["ratio"] == pytest.approx((-2 / 3 + 4.1) / 10, abs=1e-5)
    assert found["margin"] == pytest.approx(1 / 70, abs=1e-5)
    # What was chosen by the likelihood that judges it is no draft.
    assert "ratio of a draft" not in found


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, "much", [1], {}])
def test_a_signal_that_is_not_known_is_left_out_and_never_breaks_anything(value: Any) -> None:
    names = [name for name in asdict(OutcomeSignals()) if name not in {"before", "place", "finish_reason"}]
    found = features(Subject("edit", "rename", "go", dict.fromkeys(names, value)))
    assert all(math.isfinite(each) for each in found.values())
    assert found["maker:rename"] == 1.0
    nothing = features(Subject("edit", "rename", "go"))
    for name in ("inserted", "steps", "support", "known_words", "repeats"):
        assert name not in found
        assert name not in nothing


def test_what_a_later_version_adds_to_a_log_changes_nothing() -> None:
    signals = {"tokens": 3, "mean_log_prob": -0.2}
    assert features(Subject("fill", "canvas", "c", {**signals, "mood": 7})) == features(
        Subject("fill", "canvas", "c", signals)
    )


def test_a_number_bends_where_more_of_it_means_something_else() -> None:
    def of(mean: float) -> dict[str, float]:
        return features(Subject("fill", "canvas", "c", {"mean_log_prob": mean}))

    sure, unsure = of(-0.05), of(-2.0)
    assert sure["mean_log_prob"] == pytest.approx(-0.05)
    assert sure["mean_log_prob>-0.15"] == pytest.approx(0.10)
    assert sure["mean_log_prob>-1"] == pytest.approx(0.95)
    assert not any(name.startswith("mean_log_prob>") for name in unsure)
    assert of(-500.0)["mean_log_prob"] == of(-30.0)["mean_log_prob"] == -30.0


def test_a_draft_has_its_likelihood_ratio_for_itself() -> None:
    signals = {"log_prob": -2.0, "keep_log_prob": -9.0}
    draft, own = (features(Subject("edit", maker, "c", signals)) for maker in ("rename", "verified"))
    assert draft["ratio of a draft"] == pytest.approx(0.7)
    assert "ratio of a draft" not in own
    assert features(Subject("edit", "rename", "c", {"log_prob": -900.0, "keep_log_prob": 0.0}))["ratio"] == -3.0


def test_two_numbers_weigh_together_and_those_of_an_edit_with_its_maker() -> None:
    signals = {"support": 3, "distance": 4, "log_prob": -1.0, "keep_log_prob": -5.0}
    edit = features(Subject("edit", "rename", "c", signals))
    assert edit["support*distance"] == pytest.approx(edit["support"] * edit["distance"])
    assert edit["rename*ratio"] == edit["ratio"]
    assert edit["rename*support"] == pytest.approx(math.log(4))
    fill = features(Subject("fill", "rename", "c", signals))
    assert "support*distance" in fill
    assert "rename*support" not in fill


def test_of_what_was_decided_before_half_is_nothing_special() -> None:
    def lately(accepted: int, rejected: int) -> float:
        signals = {"accepted": accepted, "rejected": rejected}
        return features(Subject("fill", "canvas", "c", signals)).get("accepted lately", 0.0)

    assert lately(0, 0) == lately(5, 5) == 0.0
    assert lately(10, 0) > lately(3, 0) > 0 > lately(0, 3) > lately(0, 10) > -0.5


def test_features_are_plain_enough_for_a_file() -> None:
    found = features(subject_of("fill", CANDIDATE, EDITS, KNOWN))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert all(abs(value) < 20 for value in found.values())
