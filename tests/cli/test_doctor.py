from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from calomel.cli import jsonc
from calomel.cli.checks import Finding, Pace, check_model
from calomel.cli.editor_checks import check_editors
from calomel.cli.editor_plans import here
from calomel.server.settings import ServerSettings
from calomel.suggest.runtime_file import ServerRecord


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*ServerSettings.model_fields, "config"):
        monkeypatch.delenv(f"CALOMEL_{name.upper()}", raising=False)
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "run" / "calomel").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CALOMEL_PORT", "0")
    monkeypatch.setattr("calomel.cli.checks.measured", lambda _: Pace(0.3, 0.05, 2048))
    return tmp_path


def settings_of(home: Path, editor: str, text: str) -> Path:
    path = home / "config" / editor / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def lines(out: str) -> dict[str, str]:
    return {line[6:].partition(":")[0]: line for line in out.splitlines() if not line.startswith(" ")}


def test_a_machine_without_faults_is_found_well(run: Callable[..., Any]) -> None:
    done = run("doctor")
    found = lines(done.out)
    assert done.status == 0
    assert {"settings", "token", "port", "model", "device", "memory", "grammars", "runtime file"} <= set(found)
    assert not [line for line in found.values() if line.startswith("fail")]


def test_what_cannot_work_fails_and_says_what_to_do(
    run: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = home / "token"
    token.write_text("abc\n")
    token.chmod(0o644)
    monkeypatch.setenv("CALOMEL_TOKEN_FILE", str(token))
    monkeypatch.setenv("CALOMEL_MODEL", str(home / "nothing"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("CALOMEL_PORT", str(taken.getsockname()[1]))
        done = run("doctor")

    found = lines(done.out)
    assert done.status == 1
    for subject in ("token", "model", "port"):
        assert found[subject].startswith("fail")
    assert f"chmod 600 {token}" in done.out
    assert "choose another --port" in done.out


def test_wrong_settings_end_the_examination(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "x")
    done = run("doctor")
    assert done.status == 1
    assert done.out.startswith("fail  settings: port (CALOMEL_PORT)")


def test_the_file_of_a_server_that_died_is_found(run: Callable[..., Any], home: Path) -> None:
    record = ServerRecord("http://127.0.0.1:9", "t", 2**22 + 1, 1, None, "", "cpu", "0", 1)
    for name in ("server.json", "engine-0123.json"):
        path = home / "run" / "calomel" / name
        path.write_text(json.dumps(asdict(record)))
        path.chmod(0o600)
    done = run("doctor")

    assert done.status == 0
    assert f"warn  runtime file: {home}/run/calomel/server.json is of a server that has ended" in done.out
    assert f"→ rm {home}/run/calomel/engine-0123.json" in done.out


def test_a_server_that_hangs_is_found(run: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calomel.cli.checks._ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        path = home / "run" / "calomel" / "server.json"
        path.write_text(json.dumps(asdict(ServerRecord(url, "secret", os.getpid(), 0, None, "", "cpu", "0", 1))))
        path.chmod(0o600)
        done = run("doctor")
    assert done.status == 1
    assert f"fail  running server: process {os.getpid()} at {url} does not answer" in done.out
    assert "secret" not in done.out


def test_a_server_a_part_of_which_ended_is_found(run: Callable[..., Any], home: Path) -> None:
    class Degraded(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            dead = {"name": "calomel-engine", "error": "KeyError", "place": "a.py:1"}
            body = json.dumps({"status": "degraded", "dead_threads": [dead]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing to the output."""

    with HTTPServer(("127.0.0.1", 0), Degraded) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        path = home / "run" / "calomel" / "server.json"
        path.write_text(json.dumps(asdict(ServerRecord(url, "t", os.getpid(), 0, None, "", "cpu", "0", 1))))
        path.chmod(0o600)
        done = run("doctor")
        server.shutdown()
    assert f"at {url}: degraded, for its thread calomel-engine ended with KeyError" in " ".join(done.out.split())


ZED = """{
  // Zed's settings have comments, and commas
  "edit_predictions": {
    "provider": "open_ai_compatible_api", /* and these */
    "open_ai_compatible_api": {
      "api_url": "%s", "model": "%s", "prompt_format": "%s",
    },
  },
}
"""


@pytest.mark.parametrize(
    ("url", "model", "form", "told"),
    [
        ("http://localhost:8017/v1/completions", "zeta2.1", "zeta2_1", "set up in"),
        ("http://localhost:8017/v1/completions", "zeta2.1", "infer", "set up in"),
        ("http://localhost:8017/v1/completions", "nano", "infer", "cannot be inferred"),
        ("http://localhost:8017/v1/completions", "nano", "sweep", "none that this server reads"),
        ("http://localhost:8017/v1", "zeta2.1", "zeta2_1", "another path"),
        ("http://localhost:8080/v1/completions", "zeta2.1", "zeta2_1", "points at http port 8080"),
        ("https://localhost:8017/v1/completions", "zeta2.1", "zeta2_1", "points at https port 8017"),
        ("http://localhost:x/v1/completions", "zeta2.1", "zeta2_1", "an address that is none"),
        ("https://team.example/v1/completions", "zeta2.1", "zeta2_1", "set up in"),
    ],
)
def test_zed_is_told_where_it_points(home: Path, url: str, model: str, form: str, told: str) -> None:
    settings_of(home, "zed", ZED % (url, model, form))
    [finding] = [each for each in check_editors(here(ServerSettings(port=8017))) if each.subject == "Zed"]
    assert told in finding.found
    assert (finding.level == "ok") == ("set up in" in told)


@pytest.mark.parametrize(
    "text", ["{", '{"edit_predictions": {"provider": "zed"}}', "[]", '{"edit_predictions": 1}', ""]
)
def test_other_settings_of_zed_are_no_crash(home: Path, text: str) -> None:
    settings_of(home, "zed", text)
    assert [each.level for each in check_editors(here(ServerSettings())) if each.subject == "Zed"] == ["warn"]


def test_neovim_and_vs_code_are_found(home: Path) -> None:
    (home / "config" / "nvim").mkdir(parents=True)
    (home / "config" / "nvim" / "init.lua").write_text('require("calomel").setup()')
    settings_of(home, "Code/User", '{"calomel.server.url": "http://127.0.0.1:9", // mine\n}')
    found = {each.subject: each for each in check_editors(here(ServerSettings(port=8017)))}
    assert found["Neovim"].level == "ok"
    assert found["VS Code"].level == "ok"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            '{"a": "// no comment", "b": "/* nor this */", "c": ",}"}',
            {"a": "// no comment", "b": "/* nor this */", "c": ",}"},
        ),
        ('{"a": [1, 2, // two\n], /* end */ }', {"a": [1, 2]}),
        ('{"a": "\\"//"}', {"a": '"//'}),
        ("[1, // x\n // y\n ]", [1]),
    ],
)
def test_comments_are_left_out_but_not_in_strings(text: str, value: Any) -> None:
    assert jsonc.loads(text) == value


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Finding]:
    """What is found with so many MiB free."""

    def find(free: int) -> Finding:
        monkeypatch.setattr("calomel.families.memory.free_bytes", lambda device: free * 1024**2)
        monkeypatch.setattr("calomel.engine.checkpoint.native_bfloat16", lambda: False)
        (found,) = (each for each in check_model(ServerSettings()) if each.subject == "memory")
        return found

    return find


@pytest.mark.parametrize(("free", "least"), [(4096, 32_768), (740, 16_384)])
def test_the_memory_that_is_needed_has_the_cache_in_it(memory: Callable[[int], Finding], free: int, least: int) -> None:
    found = memory(free)
    tokens = int(re.findall(r"with (\d+) tokens cached", found.found)[0])

    # 12 KB for each token, a program of 400 MB, and 25 MB of weights
    needed = 425 + tokens * 12 // 1024
    assert found.level == "ok"
    assert least <= tokens <= 32_768
    told = int(re.findall(r"up to (\d+) MiB needed", found.found)[0])
    assert needed < told < needed + 150
    assert told < min(free, 1000)


def test_a_model_that_does_not_fit_fails_with_what_it_takes(memory: Callable[[int], Finding]) -> None:
    found = memory(450)

    assert found.level == "fail"
    assert re.search(r"nano needs [\d.]+ MiB of memory on cpu \(weights 24.3 MiB", found.found)
