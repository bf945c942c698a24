from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from calomel.server import run as server_run
from calomel.server.errors import StartError
from calomel.server.settings import ServerSettings

Run = Callable[..., Any]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServerSettings]:
    calls: list[ServerSettings] = []
    monkeypatch.setattr(server_run, "serve", calls.append)
    return calls


def test_options_become_settings(run: Run, served: list[ServerSettings]) -> None:
    assert run("serve", "--port", 0, "--allowed-host", "box", "--allowed-host", "box.lan", "--threads", 2).status == 0
    assert [ServerSettings(port=0, allowed_hosts=("box", "box.lan"), threads=2)] == served


def test_environment_fills_what_the_command_line_leaves_out(
    run: Run, served: list[ServerSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "8123")
    monkeypatch.setenv("CALOMEL_DEVICE", "cuda")
    run("serve", "--device", "cpu")
    assert [(settings.port, settings.device) for settings in served] == [(8123, "cpu")]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--host", "0.0.0.0"], "say allow-remote"),
        (["--port", "70000"], "--port: "),
        (["--token", "secret", "--no-auth"], "drop one of them"),
    ],
)
def test_door_that_would_stand_open_ends_with_status_2(
    run: Run, served: list[ServerSettings], options: list[str], complaint: str
) -> None:
    result = run("serve", *options)
    assert result.status == 2
    assert complaint in result.err
    assert "secret" not in result.err
    assert served == []


def test_address_in_use_becomes_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: ServerSettings) -> None:
        raise StartError("cannot listen on 127.0.0.1 port 8017")

    monkeypatch.setattr(server_run, "serve", refuse)
    result = run("serve")
    assert (result.status, result.err) == (1, "calomel: cannot listen on 127.0.0.1 port 8017\n")
