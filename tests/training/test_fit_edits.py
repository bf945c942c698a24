from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from calomel.selectivity.edit_calibrator import EditCalibrator, EditSignals
from calomel.training.fit_edits import Line, SignalsError, calibrator_path, fit, fitted, read_lines


def drawn(count: int = 600) -> list[dict[str, object]]:
    """Renames are right nearly always, canvases rarely, whatever the likelihood ratio says of either."""
    rng = random.Random(3)
    lines = []
    for number in range(count):
        maker = rng.choice(("rename", "canvas"))
        ratio = rng.gauss(2.0, 2.0)
        right = rng.random() < (0.9 if maker == "rename" else 0.1)
        lines.append(
            {
                "log_prob": -3.0,
                "keep_log_prob": -3.0 - ratio,
                "tokens": 8,
                "maker": maker,
                "right": right,
                "story": f"s{number}",
                "path": f"package{number % 12}/a.py",
            }
        )
    return lines


def written(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_fit_says_more_than_the_likelihood_ratio(tmp_path: Path) -> None:
    found = fit(read_lines(written(tmp_path / "signals.jsonl", drawn())))
    assert found.after.ece < 0.05 < found.before.ece
    assert found.after.auroc > 0.85 > found.before.auroc
    assert found.after.log_loss < found.before.log_loss
    weights = dict(found.calibrator.weights)
    assert weights["maker:rename"] > 0 > weights["maker:canvas"]
    assert "ECE" in found.to_text()


def test_what_is_written_is_what_the_gate_reads(tmp_path: Path) -> None:
    path = calibrator_path(tmp_path)
    path.write_text(json.dumps({"fill": {"bias": 1}}))
    found = fit(read_lines(written(tmp_path / "signals.jsonl", drawn(200))))
    found.write(path)
    read = EditCalibrator.from_folder(tmp_path)
    assert read == found.calibrator
    assert json.loads(path.read_text())["fill"] == {"bias": 1}
    likely = read.probability(EditSignals(-3.0, -5.0, tokens=8, maker="rename"))
    assert likely > 0.7 > read.probability(EditSignals(-3.0, -5.0, tokens=8, maker="canvas"))


def test_the_same_lines_give_the_same_fit_in_any_order(tmp_path: Path) -> None:
    lines = read_lines(written(tmp_path / "signals.jsonl", drawn(100)))
    one, other = fitted(lines), fitted(lines[::-1])
    assert dict(one.weights) == pytest.approx(dict(other.weights), abs=1e-4)


def test_a_fit_is_where_the_slope_is_zero(tmp_path: Path) -> None:
    lines = read_lines(written(tmp_path / "signals.jsonl", drawn(300)))
    found = fitted(lines, penalty=1.0)
    for name, weight in found.weights:
        slope = sum(
            (found.probability(line.signals) - line.right) * line.signals.features().get(name, 0.0) for line in lines
        )
        assert slope + weight == pytest.approx(0.0, abs=1e-3)


def test_lines_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SignalsError, match="too few"):
        fit([Line(EditSignals(-1.0, -2.0), right=True, group="a")])
    with pytest.raises(SignalsError, match="too few"):
        fit([Line(EditSignals(-1.0, -2.0), right=True, group=str(number)) for number in range(50)])
    (tmp_path / "bad.jsonl").write_text('{"log_prob": 1}\n')
    with pytest.raises(SignalsError, match="holds no signals"):
        read_lines(tmp_path / "bad.jsonl")
