"""Why an editor shows nothing: the doctor names the cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.other_program import NO_HTTP, REFUSED, listening

from calomel.cli.checks import Pace, check_speed, measured
from calomel.server.settings import ServerSettings
from calomel.suggest.completer import CompleterError
from calomel.workspace.settings import ServerSettings as EditorServer
from calomel.workspace.settings import Settings, SuggestSettings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*ServerSettings.model_fields, "config"):
        monkeypatch.delenv(f"CALOMEL_{name.upper()}", raising=False)
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CALOMEL_PORT", "0")
    monkeypatch.setattr("calomel.cli.checks.measured", lambda _: Pace(0.3, 0.05, 2048))
    return tmp_path


def settings(home: Path, text: str) -> Path:
    """The user's own settings."""
    path = home / "config" / "calomel" / "calomel.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def said(run: Callable[..., Any], *arguments: str) -> tuple[int, list[str]]:
    """The exit status and the lines that are no `ok`, each with its advice behind it."""
    done = run("doctor", *arguments)
    found: list[str] = []
    for line in done.out.splitlines():
        if line.startswith(("warn", "fail")):
            found.append(line)
        elif line.startswith("      →") and found:
            found[-1] += line.removeprefix("     ")
    return done.status, [line for line in found if "no program `calomel`" not in line]


def test_a_server_that_is_stopped(run: Callable[..., Any], home: Path) -> None:
    settings(home, '[server]\nurl = "http://127.0.0.1:9"')
    status, (line,) = said(run)
    assert status == 1
    assert line.startswith("fail  editors' model: no server answers at http://127.0.0.1:9 (server.url in calomel.toml)")
    assert "start it: calomel serve" in line


def test_a_model_that_is_missing(run: Callable[..., Any], home: Path) -> None:
    settings(home, '[server]\nmodel = "/nowhere"')
    status, (line,) = said(run)
    assert status == 1
    assert line.startswith("fail  editors' model: there is no model in /nowhere, which server.model in calomel.toml")


def test_a_port_that_another_program_has(run: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(NO_HTTP) as url:
        port = url.rpartition(":")[2]
        monkeypatch.setenv("CALOMEL_PORT", port)
        settings(home, f'[server]\nurl = "{url}"')
        status, (taken, asked) = said(run)
    assert status == 1
    assert taken.startswith(f"fail  port: 127.0.0.1 port {port}: Address already in use → another program has it")
    assert f"what listens at {url} is another program than Calomel" in asked


def test_a_wrong_token(run: Callable[..., Any], home: Path) -> None:
    with listening(REFUSED) as url:
        settings(home, f'[server]\nurl = "{url}"\ntoken = "s3cret"')
        status, (line,) = said(run)
    assert status == 1
    assert "fail  editors' model: the server does not accept the token" in line
    assert "server.token_file" in line
    assert "s3cret" not in line


def test_a_file_that_is_ignored(run: Callable[..., Any], home: Path) -> None:
    (home / ".env").write_text("A=1\n")
    status, (line,) = said(run, str(home / ".env"))
    assert status == 0
    assert "This file is excluded by an ignore rule, so no model sees it. (secret_file:.env)" in line
    assert 'privacy.ignore = ["!.env"]' in line


def test_a_file_that_the_workspace_excludes(run: Callable[..., Any], home: Path) -> None:
    project = home / "project"
    (project / "sub").mkdir(parents=True)
    (project / "calomel.toml").write_text('[privacy]\nignore = ["*.sql"]')
    (project / "sub" / "a.sql").write_text("select 1;\n")
    _, (line,) = said(run, str(project / "sub" / "a.sql"))
    assert "(excluded:*.sql)" in line


def test_a_language_that_is_off(run: Callable[..., Any], home: Path) -> None:
    settings(home, "[suggest.languages]\npython = false")
    (home / "a.py").write_text("x = 1\n")
    (home / "a.go").write_text("package a\n")
    _, (line,) = said(run, str(home / "a.py"))
    assert "Suggestions are turned off for this language. (python, in calomel.toml)" in line
    assert "suggest.languages = { python = true }" in line
    assert said(run, str(home / "a.go")) == (0, [])
    assert "ok    suggestions: off in calomel.toml for python" in run("doctor").out


def test_a_language_that_is_off_in_vs_code_alone(run: Callable[..., Any], home: Path) -> None:
    path = home / "config" / "Code" / "User" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"calomel.path": "/x", "calomel.editor.hints": true, "calomel.suggest.languages": {"go": false}}')
    (home / "a.go").write_text("package a\n")
    _, (line,) = said(run, str(home / "a.go"))
    assert "(go, in VS Code)" in line


def test_suggestions_that_are_off(run: Callable[..., Any], home: Path) -> None:
    settings(home, "[suggest]\nenabled = false\nmax_tokens = 0")
    _, lines = said(run)
    assert [line.partition(":")[0] for line in lines] == ["warn  editors' settings", "warn  suggestions"]
    assert "suggest.max_tokens: must be a whole number" in lines[0]


def test_a_file_that_is_not_there(run: Callable[..., Any], home: Path) -> None:
    status, (line,) = said(run, str(home / "nothing.py"))
    assert status == 1
    assert "nothing.py is no file" in line


def test_a_workspace_of_the_server_that_is_gone(
    run: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALOMEL_WORKSPACE", str(home / "gone"))
    status, (line,) = said(run)
    assert status == 1
    assert line.startswith(f"fail  workspace: {home}/gone is no folder")


def test_a_machine_that_is_too_slow() -> None:
    finding = check_speed(Settings(), lambda _: Pace(4.0, 1.6, 2048))
    assert finding.level == "warn"
    assert finding.found.startswith("too slow: 1600 ms for the next keystroke, 4000 ms at a new place with 2048 tokens")
    assert "suggest.context_tokens = 512" in finding.advice


def test_a_machine_that_is_quick_enough() -> None:
    assert check_speed(Settings(), lambda _: Pace(2.0, 0.2, 2048)).level == "ok"
    assert "not measured" in check_speed(Settings(), lambda _: None).found


def test_a_speed_that_cannot_be_measured_is_no_crash() -> None:
    def broken(_: Settings) -> Pace:
        raise CompleterError("failed", "no such thing")

    assert "not measured: no such thing" in check_speed(Settings(), broken).found


def test_the_speed_of_the_shipped_model_is_measured() -> None:
    ticks = iter([0.0, 0.25, 1.0, 1.5, 2.0, 2.25])
    pace = measured(Settings(suggest=SuggestSettings(context_tokens=64)), lambda: next(ticks))
    assert pace == Pace(0.5, 0.25, 64)


def test_a_large_model_is_not_opened_to_be_measured(tmp_path: Path) -> None:
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    assert measured(Settings(server=EditorServer(model=tmp_path))) is None
