"""What is said to be stored is what the programs store, where and how much of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.house.pages import ROOT

from calomel.lsp import log
from calomel.server import model_folders, tokens
from calomel.suggest import launch, outcome_log, prompt_log
from calomel.workspace import settings
from calomel.workspace.privacy import secret_pattern

PAGE = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
MB = 1_000_000


@pytest.fixture(autouse=True)
def plain_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without folders elsewhere."""
    monkeypatch.setenv("HOME", "/home/ann")
    for name in ("STATE", "CONFIG", "DATA", "CACHE"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)


def row(path: Path) -> str:
    """The line of the table about a file."""
    told = f"| `~/{path.relative_to('/home/ann').as_posix()}"
    (found,) = (line for line in PAGE.splitlines() if line.startswith(told))
    return found


def test_logs_are_as_large_as_the_page_says() -> None:
    outcomes = outcome_log.outcome_log_path()
    assert f"{outcome_log.KEPT_FILES} files of {outcome_log.MAX_BYTES // MB} MB" in row(outcomes)
    prompts = prompt_log.prompt_log_path(outcomes)
    assert f"{prompt_log.KEPT_FILES} files of {prompt_log.MAX_BYTES // MB} MB" in row(prompts)
    # Beside the newest, so many older ones.
    assert f"{log.KEPT_FILES + 1} files of {log.MAX_BYTES // MB} MB" in row(log.log_path())


def test_every_place_stands_there() -> None:
    for path in (
        launch.log_path(),
        tokens.default_path(),
        settings.user_settings_path(),
        model_folders.models_folder(),
    ):
        assert row(path)


def test_files_that_are_said_to_be_secret_are() -> None:
    for name in (
        ".env",
        "server.pem",
        "server.key",
        "credentials.json",
        "terraform.tfstate",
        ".bash_history",
        ".ssh/x",
    ):
        assert secret_pattern(Path("/work") / name) is not None


def test_nothing_of_the_text_is_kept_unless_it_is_asked_for() -> None:
    assert settings.LogSettings().outcome_text is False
    assert "`log.outcome_text = true`" in row(prompt_log.prompt_log_path(outcome_log.outcome_log_path()))
