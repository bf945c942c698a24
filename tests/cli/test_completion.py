"""Completion in a shell, through the real program, as typer's scripts ask it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from calomel.weights import nano_path
from calomel.weights.folders import models_folder


@pytest.fixture(autouse=True)
def _models(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("mine", "other"):
        shutil.copytree(nano_path(), models_folder() / name)
    (models_folder() / "mine" / "calomel-source.json").write_text("{}")


def completed(shell: str, line: str) -> subprocess.CompletedProcess[str]:
    words = line.split(" ")
    asked = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    command = [sys.executable, "-X", "importtime", "-m", "calomel.cli"]
    environment = {**os.environ, **asked, "_CALOMEL_COMPLETE": f"complete_{shell}"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("calomel mod", ["models"]),
        ("calomel models use ", ["nano", "mine", "other"]),
        ("calomel models estimate o", ["other"]),
        ("calomel models remove ", ["mine"]),
        ("calomel try --upstream-", ["--upstream-model"]),
    ],
)
def test_commands_options_and_models_are_offered(shell: str, line: str, offered: list[str]) -> None:
    done = completed(shell, line)
    known = {"nano", "mine", "other", "models", "--upstream-model"}
    assert [name for name in known if name in done.stdout] == [name for name in known if name in offered]
    assert "torch" not in done.stderr


def test_the_script_of_a_shell_is_installed_in_the_users_home(home: Path) -> None:
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-m", "calomel.cli", "--install-completion", "bash"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "bash completion installed in" in done.stdout
    assert "_CALOMEL_COMPLETE=complete_bash" in (home / ".bash_completions/calomel.sh").read_text()
