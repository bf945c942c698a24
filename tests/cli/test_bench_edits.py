from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from calomel.bench import held_edits
from calomel.bench.held_edits import HeldOptions

Run = Callable[..., Any]


def test_a_folder_without_scenarios_is_refused(run: Run, tmp_path: Path) -> None:
    result = run("bench", "edits", str(tmp_path))
    assert result.status == 1
    assert "has no *.txtar file" in result.err


def test_held_out_options_reach_the_bench(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[HeldOptions] = []

    def fake(options: HeldOptions) -> Any:
        asked.append(options)
        return SimpleNamespace(to_markdown=lambda: "# page", write=lambda **_: None)

    monkeypatch.setattr(held_edits, "run_held_edits", fake)
    words = ("--kinds", "rename,typo_fixed", "--limit", 20, "--aggressiveness", "0.4", "--json", "out.json")
    assert run("bench", "edits", "--held-out", *words).status == 0
    samples = tmp_path / "samples.jsonl"
    run("bench", "edits", "--held-out", "--samples", samples, "--stories", "train.zst")
    assert asked == [
        HeldOptions(kinds=("rename", "typo_fixed"), limit=20, aggressiveness=0.4),
        HeldOptions(samples=samples, stories=Path("train.zst"), baselines=False),
    ]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "--held-out"),
        (("--held-out", "folder"), "leave the folder out"),
        (("--held-out", "--aggressiveness", "loud"), "loud"),
        (("--held-out", "--stories", "none.zst"), "none.zst"),
    ],
)
def test_held_out_options_that_cannot_be_are_refused(run: Run, words: tuple[str, ...], named: str) -> None:
    result = run("bench", "edits", *words)
    assert result.status in {1, 2}
    assert named in result.err
