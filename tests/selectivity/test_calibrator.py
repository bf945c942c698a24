"""Calibrators and samples in their files, and the features of a suggestion."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.selectivity.made import sample

from calomel.infer.completer import Candidate
from calomel.selectivity.calibrator import (
    CALIBRATOR_FILE,
    Calibrator,
    CalibratorError,
    KindCalibrator,
    Subject,
    features,
    sigmoid,
)
from calomel.selectivity.sample import Reaction, Sample, SampleError, read_samples
from calomel.suggest.offers import Outcome
from calomel.suggest.outcome_log import line_of, record_of
from calomel.suggest.signals import CandidateAgreement, DraftSignals, Kinship, signals_of, surroundings
from calomel.workspace.edits import Planned

FITTED = Calibrator(
    {
        "fill": KindCalibrator({"mean_log_prob": 1.5, "maker:canvas": -0.25}, 0.5, report={"samples": 7, "ece": 0.01}),
        "edit": KindCalibrator({"ratio": 2.0}, -1.0, frozenset({"shape", "canvas"}), {"quiet": 0.6, "eager": 0.2}),
    },
    "abc123",
)


def plain(**changes: Any) -> dict[str, Any]:
    return {"format": 3, "kinds": {"fill": {"bias": 0.5, "weights": {"steps": 1.0}}}, **changes}


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path, again = tmp_path / "new" / "folder" / "own.json", tmp_path / "again.json"
    FITTED.write(path)
    read = Calibrator.read(path)
    assert read == FITTED
    assert read.hopeless("edit") == {"canvas", "shape"}
    assert read.hopeless("fill") == read.hopeless("poem") == frozenset()
    # What a fit has no number for has the usual one.
    assert read.thresholds("edit") == {"quiet": 0.6, "balanced": 0.3, "eager": 0.2}
    assert read.thresholds("fill") == read.thresholds("poem") == {"quiet": 0.5, "balanced": 0.3, "eager": 0.15}
    subject = Subject("fill", "canvas", "c", {"mean_log_prob": -0.4})
    assert read.probability(subject) == pytest.approx(sigmoid(0.5 - 0.6 - 0.25))
    read.write(again)
    assert path.read_bytes() == again.read_bytes()
    path.write_text(json.dumps(plain()))
    assert Calibrator.read(path) == Calibrator({"fill": KindCalibrator({"steps": 1.0}, 0.5)})


def test_a_file_of_another_version_is_refused_with_both_numbers(tmp_path: Path) -> None:
    path = tmp_path / "older.json"
    path.write_text(json.dumps(plain(format=2)))
    with pytest.raises(CalibratorError, match=r"older\.json .*format 2, this version reads 3"):
        Calibrator.read(path)


def test_of_two_texts_as_sure_by_token_a_model_without_a_fit_is_believed_the_shorter() -> None:
    def believed(tokens: int, kept: int = 20, cut: int = 0) -> float:
        signals = {"mean_log_prob": -0.4, "tokens": tokens, "characters_inserted": kept, "cut": cut}
        return Calibrator().probability(Subject("fill", "canvas", "c", signals))

    assert believed(1) > believed(4) > believed(64)
    # What is not shown may be as wrong as it likes.
    assert believed(16) < believed(64, 20, 180) == pytest.approx(believed(6), abs=0.03)


def test_a_folder_without_a_calibrator_has_one_that_knows_nothing(tmp_path: Path) -> None:
    assert Calibrator.of_folder(tmp_path) == Calibrator()
    FITTED.write(tmp_path / CALIBRATOR_FILE)
    assert Calibrator.of_folder(tmp_path) == FITTED
    (tmp_path / CALIBRATOR_FILE).write_text("{}")
    with pytest.raises(CalibratorError, match=CALIBRATOR_FILE):
        Calibrator.of_folder(tmp_path)


def test_of_a_kind_that_was_not_fitted_the_models_own_numbers_are_believed() -> None:
    unfitted = Calibrator()
    assert unfitted.probability(Subject("fill", "canvas", "c", {"mean_log_prob": math.log(0.7)})) == pytest.approx(0.7)
    assert unfitted.probability(Subject("fill", "canvas", "c", {"mean_log_prob": 0.4})) == 1.0
    judged = {"log_prob": -2.0, "keep_log_prob": -4.0, "mean_log_prob": -9.0}
    assert unfitted.probability(Subject("edit", "rename", "c", judged)) == pytest.approx(sigmoid(2.0))
    # Of a fill a likelihood ratio says nothing: nothing is there to keep.
    assert unfitted.probability(Subject("fill", "rename", "c", judged)) == pytest.approx(math.exp(-9.0))
    assert unfitted.probability(Subject("edit", "canvas", "c", {"mean_log_prob": math.log(0.4)})) == pytest.approx(0.4)
    assert unfitted.probability(Subject("fill")) == unfitted.probability(Subject("edit")) == 0.0


def test_a_probability_stays_one_however_large_the_sum_is() -> None:
    for bias, expected in ((1e6, 1.0), (-1e6, 0.0), (0.0, 0.5)):
        assert KindCalibrator({}, bias).probability(Subject("fill")) == expected
    assert sigmoid(3.0) + sigmoid(-3.0) == pytest.approx(1.0)


TEXT = "total = 1\nresult = tot\n"
EDITS = (Planned(22, 22, "al + 1", ""),)
CANDIDATE = Candidate(
    "al + 1",
    (-0.1, -1.0 / 3),
    (0.2, 1.4),
    -0.05,
    steps=3,
    maker="canvas",
    log_prob=-2.0 / 3,
    keep_log_prob=-4.1,
)
SIGNALS = signals_of(
    CANDIDATE,
    EDITS,
    distance=2,
    since_edit=1.0 / 3,
    accepted=3,
    rejected=4,
    cut=1,
    drafted=DraftSignals(2, 0.5, 3),
    kinship=Kinship(4, 1, 7),
    agreement=CandidateAgreement(1, 2, 1.0 / 7),
    place="code",
    around=surroundings(TEXT, 22, EDITS),
)
LIVE = Subject("edit", "canvas", "python", SIGNALS.known())


def test_a_suggestion_has_the_same_features_live_and_in_the_outcome_log() -> None:
    line = line_of(
        Outcome(
            "1", "shown", "", "edit", "file:///a.py", "python", "edit", "nano", 0.5, 1.0, 6, 0, "al + 1",
            SIGNALS, "canvas",
        ),
        time=1.0,
        session="5e55",
        version="1",
    )  # fmt: skip
    kept = record_of(line)
    logged = Subject(kept.kind, kept.maker, kept.language, kept.signals)
    assert features(logged) == features(LIVE)
    found = features(LIVE)
    assert found["judged"] == 1.0
    assert found["place:code"] == found["maker:canvas"] == found["before:word"] == 1.0
    assert found["ratio"] == pytest.approx((-2 / 3 + 4.1) / 10, abs=1e-5)
    assert found["margin"] == pytest.approx(1 / 70, abs=1e-5)
    # What was chosen by the likelihood that judges it is no draft.
    assert "ratio of a draft" not in found


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, "much", [1], {}])
def test_a_signal_that_is_not_known_is_left_out_and_never_breaks_anything(value: Any) -> None:
    names = [name for name in SIGNALS.flat() if name not in {"before", "place", "finish_reason"}]
    found = features(Subject("edit", "rename", "go", dict.fromkeys(names, value)))
    assert all(math.isfinite(each) for each in found.values())
    assert found["maker:rename"] == 1.0
    nothing = features(Subject("edit", "rename", "go"))
    for name in ("inserted", "steps", "support", "known_words", "repeats"):
        assert name not in found
        assert name not in nothing


FULL = sample(
    3, filters=("secret", "too_large"), saved_characters=4, judged_ms=0.25, shown=False, group="ünï\u2028\ncode"
)


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(FULL.to_line() + "\n" + sample(4).to_line(), encoding="utf-8")
    assert list(read_samples([path])) == [FULL, sample(4)]
    assert list(read_samples([path, path]))[2:] == [FULL, sample(4)]
    assert "\u2028" not in FULL.to_line()
    decided = {outcome for outcome in get_args(Reaction) if sample(outcome=outcome).decided}
    assert decided == {"accepted", "partly", "rejected"}


def test_what_a_later_version_adds_is_left_out_and_what_it_leaves_out_has_a_default() -> None:
    line = json.dumps({"question": "q", "kind": "edit", "outcome": "partly", "mood": "good"})
    assert Sample.from_line(line) == Sample("edit", question="q", outcome="partly")


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        '{"question": "q", "kind": "fill"}',
        '{"question": "q", "kind": "fill", "outcome": "liked"}',
        '{"question": "q", "kind": "fill", "outcome": ["accepted"]}',
        '{"question": "q", "kind": "fill", "outcome": "accepted", "signals": [1]}',
        '{"question": "q", "kind": "fill", "outcome": "accepted", "filters": 7}',
    ],
)
def test_a_damaged_line_of_samples_is_named_by_file_and_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "torn.jsonl"
    path.write_text(f"{FULL.to_line()}\n{line}\n", encoding="utf-8")
    reading = read_samples([path])
    assert next(reading) == FULL
    with pytest.raises(SampleError, match=r"torn\.jsonl, line 3, is not a sample"):
        next(reading)


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "null", '"text"', "{}", b"\xff\xfe\x00", None, "[" * 100_000,
        json.dumps({"format": 3}),
        json.dumps(plain(kinds=[])),
        json.dumps(plain(kinds={"fill": {}})),
        json.dumps(plain(kinds={"fill": {"bias": 0.0, "weights": {"steps": "heavy"}}})),
        json.dumps(plain(kinds={"fill": {"bias": math.nan, "weights": {}}})),
        json.dumps(plain(kinds={"fill": {"bias": 0.0, "weights": {"steps": math.inf}}})),
        json.dumps(plain(kinds={"fill": {"bias": 0.0, "weights": {}, "thresholds": {"quiet": None}}})),
    ],
    ids=range(16),
)  # fmt: skip
def test_a_damaged_or_missing_file_is_refused_by_name(tmp_path: Path, content: str | bytes | None) -> None:
    path = tmp_path / "damaged.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CalibratorError, match=r"damaged\.json is not a calibrator file"):
        Calibrator.read(path)
