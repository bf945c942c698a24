"""The probability that a proposed edit is right."""

import json
from pathlib import Path

import pytest

from calomel.selectivity.edit_calibrator import CALIBRATOR_FILE, EditCalibrator, EditSignals


def test_without_a_fit_the_likelihood_ratio_decides() -> None:
    calibrator = EditCalibrator()
    assert calibrator.probability(EditSignals(-5.0, -5.0)) == pytest.approx(0.5)
    assert calibrator.probability(EditSignals(-3.0, -5.0)) == pytest.approx(0.8808, abs=1e-4)
    assert calibrator.probability(EditSignals(-900.0, -1.0)) == pytest.approx(0.0)


def test_a_fit_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    calibrator = EditCalibrator((("maker:rename", 1.5), ("ratio", 2.0)), bias=-1.0)
    (tmp_path / CALIBRATOR_FILE).write_text(json.dumps({"edit": calibrator.to_dict()}))
    again = EditCalibrator.from_folder(tmp_path)
    assert again == calibrator
    rename = EditSignals(-1.0, -6.0, maker="rename")
    assert again.probability(rename) == pytest.approx(0.8176, abs=1e-4)  # sigmoid(-1 + 2 * 0.5 + 1.5)
    assert again.probability(EditSignals(-1.0, -6.0, maker="new")) == pytest.approx(0.5)


def test_a_folder_without_a_fit_has_an_ignorant_calibrator(tmp_path: Path) -> None:
    assert EditCalibrator.from_folder(tmp_path) == EditCalibrator()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"edit": 3}',
        '{"edit": {"weights": {"a": "x"}, "bias": 0}}',
        '{"edit": {"weights": {"a": NaN}, "bias": 0}}',
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / CALIBRATOR_FILE).write_text(text)
    with pytest.raises(ValueError, match=CALIBRATOR_FILE):
        EditCalibrator.from_folder(tmp_path)
