"""Plain HTTP to another machine from commands: the editors' list counts, and for `calomel serve` its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Runner, configured
from tests.server._upstreams import Play, llama_cpp, resolved, served

from calomel.server.errors import StartError
from calomel.server.settings import load
from calomel.server.upstream import upstream_of

NAME = "desktop.lan"
OF_EDITORS, OF_SERVE = (f'allow_http = ["{NAME}"] under [{table}]' for table in ("backend", "serve"))


@pytest.fixture
def desktop(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    resolved(monkeypatch, NAME)
    monkeypatch.chdir(home)
    (home / "a.py").write_text("x = ")
    with served(llama_cpp(Play())) as url:
        yield url.replace("127.0.0.1", NAME)


def listed(home: Path, table: str, more: str = "") -> None:
    configured(home, "calomel/calomel.toml", f'[{table}]\nallow_http = ["{NAME}"]\n{more}')


@pytest.mark.parametrize("command", [("fill", "a.py", "--at", "1:5"), ("models", "use")], ids=" ".join)
def test_commands_send_where_editors_may(run: Runner, home: Path, desktop: str, command: tuple[str, ...]) -> None:
    listed(home, "serve")
    configured(home.parent, "calomel.toml", f'[backend]\nallow_http = ["{NAME}"]\n')
    refused = run(*command, "--upstream", desktop)
    assert refused.status != 0
    assert OF_EDITORS in refused.err
    listed(home, "backend")
    assert run(*command, "--upstream", desktop).status == 0


def test_a_server_sends_where_its_own_table_says(home: Path, desktop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed(home, "backend")
    with pytest.raises(StartError) as refused:
        load({"upstream": desktop})
    assert OF_SERVE in str(refused.value)
    listed(home, "serve")
    upstream = upstream_of(load({"upstream": desktop}).settings)
    assert upstream is not None
    upstream.look()
    upstream.close()
    monkeypatch.setenv("CALOMEL_ALLOW_HTTP", "other.lan, 10.0.0.0/8")
    assert load({}).settings.allow_http == ("other.lan", "10.0.0.0/8")


def test_the_doctor_asks_where_each_table_says(run: Runner, home: Path, desktop: str) -> None:
    lines = f'upstream = "{desktop}"\n'
    configured(home, "calomel/calomel.toml", f"[serve]\n{lines}[backend]\n{lines}")
    refused = run("doctor").out
    assert OF_EDITORS in refused
    assert OF_SERVE in refused
    listed(home, "serve", f'{lines}[backend]\nallow_http = ["{NAME}"]\n{lines}')
    done = run("doctor").out
    assert "unencrypted" not in done
    assert f"llama.cpp at {desktop}" in done
