from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator, CalibratorError, KindCalibrator, sigmoid
from calomel.selectivity.features import Subject

FITTED = Calibrator(
    {
        "fill": KindCalibrator({"mean_log_prob": 1.5, "maker:canvas": -0.25}, 0.5, report={"samples": 7, "ece": 0.01}),
        "edit": KindCalibrator({"ratio": 2.0}, -1.0, frozenset({"verified", "canvas"})),
    },
    {"quiet": 0.5, "balanced": 0.2, "eager": 0.1},
    "abc123",
)


def plain(**changes: Any) -> dict[str, Any]:
    return {"format": 2, "kinds": {"fill": {"bias": 0.5, "weights": {"steps": 1.0}}}, **changes}


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "own.json"
    FITTED.write(path)
    read = Calibrator.read(path)
    assert read == FITTED
    assert read.hopeless("edit") == {"canvas", "verified"}
    assert read.hopeless("fill") == read.hopeless("poem") == frozenset()
    subject = Subject("fill", "canvas", "c", {"mean_log_prob": -0.4})
    assert read.probability(subject) == pytest.approx(sigmoid(0.5 - 0.6 - 0.25))


def test_the_same_calibrator_is_written_to_the_same_bytes(tmp_path: Path) -> None:
    FITTED.write(tmp_path / "a.json")
    Calibrator.read(tmp_path / "a.json").write(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert (tmp_path / "a.json").read_bytes().endswith(b"}\n")


def test_a_file_without_thresholds_model_or_makers_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "plain.json"
    path.write_text(json.dumps(plain()))
    read = Calibrator.read(path)
    assert (read.thresholds, read.model, read.hopeless("fill")) == ({}, "", frozenset())
    assert read.kinds["fill"].weights == {"steps": 1.0}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '"text"',
        "{}",
        json.dumps({"format": 2}),
        json.dumps(plain(kinds=[])),
        json.dumps(plain(kinds={"fill": {}})),
        json.dumps(plain(kinds={"fill": {"bias": 0.0, "weights": {"steps": "heavy"}}})),
        json.dumps(plain(kinds={"fill": {"bias": math.nan, "weights": {}}})),
        json.dumps(plain(kinds={"fill": {"bias": 0.0, "weights": {"steps": math.inf}}})),
        json.dumps(plain(thresholds={"quiet": None})),
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "damaged.json"
    path.write_text(content)
    with pytest.raises(CalibratorError, match=r"damaged\.json is no calibrator file"):
        Calibrator.read(path)


def test_bytes_that_are_no_text_and_a_file_that_is_not_there_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    for name in ("bytes.json", "missing.json", "."):
        with pytest.raises(CalibratorError, match="is no calibrator file"):
            Calibrator.read(tmp_path / name)


def test_a_file_of_another_version_is_refused_with_both_numbers(tmp_path: Path) -> None:
    path = tmp_path / "older.json"
    path.write_text(json.dumps(plain(format=1)))
    with pytest.raises(CalibratorError, match=r"older\.json .*format 1, this version reads 2"):
        Calibrator.read(path)
    path.write_text(json.dumps({"fill": {"bias": 1.0}}))
    with pytest.raises(CalibratorError, match=r"older\.json"):
        Calibrator.read(path)


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
