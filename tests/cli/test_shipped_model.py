"""The command with the weights that are in the package."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calomel.cli.fill import bundled_samples


def test_shipped_model_fills_a_hole(run: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "add.py"
    file.write_text("def add(a, b):\n    return \n", encoding="utf-8")
    result = run("fill", file, "--at", "2:12", "--json", "--max-tokens", 16)
    assert (result.status, result.err) == (0, "")
    answer = json.loads(result.out)
    assert 0 < answer["confidence"] <= 1
    assert answer["completion_tokens"] <= 16
    assert answer["steps"] >= 1
    assert answer["finish_reason"] in {"stop", "length"}


@pytest.mark.e2e
def test_try_shows_every_sample_and_ends_well() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "calomel.cli", "try"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for sample in bundled_samples():
        assert sample.path in done.stdout
    assert f"of {len(bundled_samples())} answers equal what the author wrote" in done.stdout
