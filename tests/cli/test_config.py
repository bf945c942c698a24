from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calomel.server.settings import ServerSettings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*ServerSettings.model_fields, "config"):
        monkeypatch.delenv(f"CALOMEL_{name.upper()}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "calomel").mkdir()
    return tmp_path / "calomel" / "calomel.toml"


def test_every_setting_is_shown_with_its_origin(
    run: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write_text("[serve]\nport = 8018\ntoken = 'secret-token'\n")
    home.chmod(0o600)
    monkeypatch.setenv("CALOMEL_MAX_REQUESTS", "7")
    done = run("config", "show")
    rows = {line.split()[0]: line.split()[1:] for line in done.out.splitlines()}

    assert done.status == 0
    assert rows["port"] == ["8018", str(home)]
    assert rows["max_requests"] == ["7", "CALOMEL_MAX_REQUESTS"]
    assert rows["device"] == ["cpu"]
    assert rows["token"] == ["(hidden)", str(home)]
    assert set(rows) == set(ServerSettings.model_fields)
    assert "secret-token" not in done.out


def test_settings_are_shown_to_programs_too(run: Callable[..., Any]) -> None:
    assert json.loads(run("config", "show", "--json").out)["port"] == {"value": "8017", "from": "default"}


def test_a_wrong_file_is_named_by_show_and_by_serve(run: Callable[..., Any], home: Path) -> None:
    home.write_text("[serve]\nprot = 8018\n")
    for command in (("config", "show"), ("serve",)):
        done = run(*command)
        assert done.status == 2
        assert "prot is no setting; did you mean port?" in done.err


def test_where_the_file_is(run: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("config", "path").out == f"{home}\n"
    monkeypatch.setenv("CALOMEL_CONFIG", "/elsewhere.toml")
    assert run("config", "path").out == "/elsewhere.toml\n"
    assert run("config", "path", "--config", "/named.toml").out == "/named.toml\n"
