from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from calomel.prompts.parts import Excerpt
from calomel.workspace import related

SOURCE = "def area(width, height):\n    return width * height\n\n\nprint(area(2, 3))\n"


class FakeRelated:
    """Knows one excerpt, at once."""

    indexer = SimpleNamespace(wait=lambda _seconds: True)

    def __init__(self, *_: object) -> None:
        self.folders: Sequence[Path] = ()

    def start(self, folders: Sequence[Path]) -> None:
        self.folders = folders

    def stop(self) -> None:
        pass

    def excerpts(self, *_: object) -> tuple[Excerpt, ...]:
        return (Excerpt("shapes.py", 11, "class Shape:\n    token = 'x'\n"),) if self.folders else ()

    def opened(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _related(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(related, "Related", FakeRelated)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "area.py"
    path.parent.mkdir()
    path.write_text(SOURCE, encoding="utf-8")
    return path


@pytest.fixture
def parts(run: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """What `--json` says, with the parts by name."""

    def call(*arguments: object) -> dict[str, Any]:
        done = run("context", *arguments, "--json")
        assert done.status == 0, done.err
        said: dict[str, Any] = json.loads(done.out)
        return said | {"parts": {each["part"]: each for each in said["parts"]}}

    return call


def test_the_window_is_the_text_around_the_cursor(parts: Callable[..., dict[str, Any]], file: Path) -> None:
    said = parts(file, "--at", "2:12")
    assert said["parts"]["prefix"]["text"] == "def area(width, height):\n    return "
    assert said["parts"]["suffix"]["text"] == SOURCE[36:]
    assert said["parts"]["prefix"]["tokens"] > 0


def test_related_code_of_the_workspace_is_in_it(parts: Callable[..., dict[str, Any]], file: Path) -> None:
    said = parts(file, "--at", "2:12", "--workspace", file.parent)
    assert said["parts"]["related"]["text"] == "--- shapes.py:12\nclass Shape:\n    token = 'x'\n"
    assert said["parts"]["related"]["why"].startswith("1 excerpts")


def test_the_repository_around_the_file_is_the_workspace(parts: Callable[..., dict[str, Any]], file: Path) -> None:
    assert parts(file, "--at", "1:1")["parts"]["related"]["text"] == ""
    (file.parent / ".git").mkdir()
    assert "class Shape" in parts(file, "--at", "1:1")["parts"]["related"]["text"]


def test_the_default_budget_is_told_with_its_reason(parts: Callable[..., dict[str, Any]], file: Path) -> None:
    said = parts(file, "--at", "1:1")
    assert said["budget"] == said["default_budget"]
    assert "the longest context that pays" in said["budget_why"]


def test_a_budget_is_kept(parts: Callable[..., dict[str, Any]], file: Path) -> None:
    file.write_text(SOURCE * 300, encoding="utf-8")
    for budget in (64, 500, 8192):
        said = parts(file, "--at", "400:5", "--budget", budget)
        assert said["tokens"] <= said["budget"] == budget


def test_no_budget_exceeds_the_positions_of_the_model(parts: Callable[..., dict[str, Any]], file: Path) -> None:
    said = parts(file, "--at", "1:1", "--budget", 100_000)
    assert said["budget"] < said["model_positions"]
    assert "100,000 asked for" in said["budget_why"]


def test_secrets_are_masked(parts: Callable[..., dict[str, Any]], file: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    file.write_text(f'TOKEN = "{secret}"\n{SOURCE}', encoding="utf-8")
    assert secret not in json.dumps(parts(file, "--at", "3:5"))


def test_a_secret_file_is_refused(run: Callable[..., Any], file: Path) -> None:
    secret = file.with_name(".env")
    secret.write_text("TOKEN=1\n", encoding="utf-8")
    done = run("context", secret, "--at", "1:1")
    assert done.status == 2
    assert ".env is kept from every model: secret_file" in done.err


def test_a_place_outside_of_the_file_is_refused(run: Callable[..., Any], file: Path) -> None:
    assert run("context", file, "--at", "99:1").status == 2


def test_the_parts_are_printed_with_a_table(run: Callable[..., Any], file: Path) -> None:
    out = run("context", file, "--at", "2:12", "--workspace", file.parent).out
    assert "── related · shapes.py:12 ──\nclass Shape:" in out
    assert "── prefix · area.py, up to the cursor ──\ndef area(width, height):\n    return" in out
    assert "part" in out
    assert "total" in out


def test_control_characters_do_not_reach_the_terminal(run: Callable[..., Any], file: Path) -> None:
    file.write_text("x = '\x1b[31m'\n" + SOURCE, encoding="utf-8")
    assert "\x1b" not in run("context", file, "--at", "2:1").out
