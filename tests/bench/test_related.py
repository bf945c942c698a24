from __future__ import annotations

import json
from pathlib import Path

import pytest

from calomel.bench import related
from calomel.bench.related import RelatedBenchError, RelatedOptions, run_related


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(related, "WINDOW_SECONDS", 0.1)


def test_a_folder_is_read_and_asked_about(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for number in range(5):
        (folder / f"m{number}.py").write_text(f"def name{number}():\n    return name{(number + 1) % 5}()\n")
    report = run_related(RelatedOptions(folder=folder, quick=True, json=tmp_path / "out.json"))
    figures = json.loads((tmp_path / "out.json").read_text())
    assert figures["index_files"] == 5
    assert figures["request_n"] == 30
    assert figures["excerpts_p50"] > 0
    assert "request_p95_ms" in report.to_markdown()


def test_an_empty_folder_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RelatedBenchError, match="holds no source code"):
        run_related(RelatedOptions(folder=tmp_path))
