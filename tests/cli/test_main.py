from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

Run = Callable[..., Any]


def test_version_is_the_one_of_the_package(run: Run) -> None:
    assert run("--version").out.strip() == version("calomel")


@pytest.mark.parametrize("command", ["try", "fill", "serve", "corpus", "train", "bench"])
def test_help_names_every_command(run: Run, command: str) -> None:
    assert f"\n  {command} " in run("--help").out
    assert run(command, "--help").status == 0


def test_unknown_command_ends_with_status_2(run: Run) -> None:
    result = run("fly")
    assert result.status == 2
    assert "fly" in result.err


def test_module_can_be_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "calomel.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == version("calomel")
