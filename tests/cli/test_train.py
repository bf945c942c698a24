from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calomel.training import run as training_run
from calomel.training.config import TrainConfig

Run = Callable[..., Any]


def test_options_reach_the_trainer(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[TrainConfig, Path, dict[str, Any]]] = []
    monkeypatch.setattr(training_run, "train", lambda config, out, **options: calls.append((config, out, options)))
    config = tmp_path / "run.toml"
    config.write_text('corpus = "c"\nheld_out = "h"\ntokenizer = "t"\nrows = 5000\n', encoding="utf-8")
    result = run("train", config, "--out", "run", "--resume", "--rows", 7500, "--pause-file", "wait")
    assert result.status == 0
    expected = TrainConfig(corpus=Path("c"), held_out=Path("h"), tokenizer=Path("t"), rows=7500)
    options = {"resume": True, "pause_file": Path("wait"), "device": "cpu"}
    assert [(expected, Path("run"), options)] == calls


@pytest.mark.parametrize("content", [None, "not TOML", 'corpus = "c"\nheld_out = "h"\ntokenizer = "t"\nspeed = 9\n'])
def test_wrong_training_file_ends_with_status_2(run: Run, tmp_path: Path, content: str | None) -> None:
    config = tmp_path / "run.toml"
    if content is not None:
        config.write_text(content, encoding="utf-8")
    result = run("train", config, "--out", tmp_path / "out")
    assert result.status == 2
    assert "run.toml" in result.err
    assert not (tmp_path / "out").exists()
