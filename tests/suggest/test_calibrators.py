from __future__ import annotations

import logging
from pathlib import Path

import pytest

from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator, KindCalibrator
from calomel.suggest.completer import ModelInfo
from calomel.suggest.judging import calibrator_for, user_calibrator_path

SHIPPED = Calibrator(
    {"fill": KindCalibrator({"steps": 1.0}, 0.0), "edit": KindCalibrator({"steps": 2.0}, 0.0)}, {"quiet": 0.6}
)
OWN = Calibrator({"fill": KindCalibrator({"steps": 3.0}, 1.0)}, {"quiet": 0.4}, "0123abcd")


@pytest.fixture
def info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelInfo:
    """A model with a calibrator beside its weights, of somebody who has none of their own yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    SHIPPED.write(tmp_path / "model" / CALIBRATOR_FILE)
    tokenizer = str(tmp_path / "model" / "tokenizer.json")
    return ModelInfo("nano", "0123abcd", ("fill", "edit"), 2048, 1024, tokenizer, "1")


def test_without_one_of_ones_own_the_models_is_used(info: ModelInfo) -> None:
    assert calibrator_for(info) == SHIPPED


def test_ones_own_replaces_the_kinds_that_it_has(info: ModelInfo, tmp_path: Path) -> None:
    path = user_calibrator_path(info.weights)
    assert path.is_relative_to(tmp_path / "state")
    OWN.write(path)
    found = calibrator_for(info)
    assert found.kinds == {"fill": OWN.kinds["fill"], "edit": SHIPPED.kinds["edit"]}
    assert (found.thresholds, found.model) == ({"quiet": 0.4}, "0123abcd")


def test_ones_own_without_thresholds_keeps_those_of_the_model(info: ModelInfo) -> None:
    Calibrator(OWN.kinds, {}, OWN.model).write(user_calibrator_path(info.weights))
    assert calibrator_for(info).thresholds == {"quiet": 0.6}


@pytest.mark.parametrize("model", ["", "another"])
def test_one_that_was_fitted_for_other_weights_is_not_used(info: ModelInfo, model: str) -> None:
    Calibrator(OWN.kinds, OWN.thresholds, model).write(user_calibrator_path(info.weights))
    assert calibrator_for(info) == SHIPPED


def test_models_do_not_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    paths = {user_calibrator_path(weights) for weights in ("a1", "b2", "", "../../a")}
    assert len(paths) == 4
    assert {path.parent for path in paths} == {tmp_path / "calomel" / "calibrators"}


def test_a_damaged_one_is_left_alone_and_said(info: ModelInfo, caplog: pytest.LogCaptureFixture) -> None:
    path = user_calibrator_path(info.weights)
    path.parent.mkdir(parents=True)
    path.write_text("{ torn")
    with caplog.at_level(logging.WARNING):
        assert calibrator_for(info) == SHIPPED
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(path) in caplog.text
    assert path.read_text() == "{ torn"


def test_without_any_the_models_own_numbers_are_believed(
    info: ModelInfo, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "model" / CALIBRATOR_FILE).unlink()
    assert calibrator_for(info) == Calibrator()
    elsewhere = ModelInfo("far", "ffff", ("fill",), 2048, 1024, None, "1")
    assert calibrator_for(elsewhere) == Calibrator()
    assert not caplog.records
    # One's own needs no file beside the weights, which may lie on another machine.
    Calibrator(OWN.kinds, OWN.thresholds, "ffff").write(user_calibrator_path("ffff"))
    assert calibrator_for(elsewhere).kinds == OWN.kinds


def test_a_damaged_one_of_the_model_is_said_too(
    info: ModelInfo, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "model" / CALIBRATOR_FILE).write_text('{"format": 1}')
    assert calibrator_for(info) == Calibrator()
    assert "this version reads" in caplog.text
