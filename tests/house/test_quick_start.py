"""What the README promises a newcomer, and what `make` does for one."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def quick_start() -> list[str]:
    """The commands of the fenced blocks under `## Quick start`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## Quick start\s*$(.*?)(?=^## |\Z)", readme, re.MULTILINE | re.DOTALL)
    assert section is not None
    return [block.strip() for block in re.findall(r"^```sh$(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as a newcomer does, not as a part of the make that may be running these tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_quick_start_is_the_main_job_and_then_the_tests() -> None:
    assert quick_start() == ["make try", "make test"]


@pytest.mark.parametrize("target", ["try", "test", "test-full", "fix", "lint", "types", "bench"])
def test_fresh_clone_installs_before_it_runs(target: str, tmp_path: Path) -> None:
    planned = make("--dry-run", f"VENV={tmp_path / 'venv'}", target)
    assert (planned.returncode, planned.stderr) == (0, "")
    steps = planned.stdout
    assert steps.index("-m venv") < steps.index("--constraint constraints.txt") < steps.index("touch")


def test_machine_without_python_is_told_what_to_install(tmp_path: Path) -> None:
    refused = make(f"VENV={tmp_path / 'venv'}", "PYTHON=/nowhere/python3", "try")
    assert refused.returncode != 0
    assert "needs Python 3.11, 3.12 or 3.13" in refused.stderr
    assert "apt-get install python3 python3-venv" in refused.stderr
    assert not (tmp_path / "venv").exists()


def test_continuous_integration_runs_the_same_commands() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert script.rstrip().split("\n")[-2:] == quick_start()
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
