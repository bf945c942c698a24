"""`calomel doctor`: what is wrong with a machine, with an editor's settings, with a model; and what to do."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.conftest import Runner, configured
from tests.server._upstreams import Play, ollama, served
from tests.server.program import NO_HTTP, REFUSED, another_program

from calomel.cli import checks
from calomel.cli.checks import Finding, Pace, check_model, check_speed, measured
from calomel.cli.editor import here
from calomel.cli.editor_checks import check_editors
from calomel.cli.main import main
from calomel.infer.completer import CompleterError
from calomel.infer.runtime_file import ServerRecord
from calomel.report import running
from calomel.report.running import Progress
from calomel.server.settings import ServeSettings
from calomel.workspace.settings import Settings, SuggestSettings


@pytest.fixture(autouse=True)
def _machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "0")
    monkeypatch.setattr("calomel.cli.checks.measured", lambda _: Pace(0.3, 0.05, 2048))


def lines(out: str) -> dict[str, str]:
    return {line[6:].partition(":")[0]: line for line in out.splitlines() if not line.startswith(" ")}


def test_a_machine_without_faults_is_found_well(run: Runner) -> None:
    done = run("doctor")
    found = lines(done.out)
    assert done.status == 0
    assert {"settings", "token", "port", "model", "device", "memory", "grammars", "runtime file"} <= set(found)
    assert not [line for line in found.values() if line.startswith("fail")]


def test_what_cannot_work_fails_and_says_what_to_do(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_comes_after_a_wrong_setting_is_examined_too(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "x")
    monkeypatch.setenv("CALOMEL_HOST", "0.0.0.0")
    done = run("doctor")
    assert done.status == 1
    assert done.out.startswith("fail  settings: CALOMEL_PORT: must be a whole number from 0 to 65535")
    assert "fail  settings: CALOMEL_HOST: host is not a loopback address" in done.out
    assert {"model", "device", "editors' model"} <= set(lines(done.out))


def recorded(home: Path, url: str, pid: int, name: str = "server.json") -> None:
    """The file of a server that is, or was, there."""
    path = home / "run" / "calomel" / name
    path.write_text(json.dumps(asdict(ServerRecord(url, "secret", pid, 0, None, "", "cpu", "0", 1))))
    path.chmod(0o600)


def test_the_file_of_a_server_that_died_is_found(run: Runner, home: Path) -> None:
    for name in ("server.json", "engine-0123.json"):
        recorded(home, "http://127.0.0.1:9", 2**22 + 1, name)
    done = run("doctor")

    assert done.status == 0
    assert f"warn  runtime file: {home}/run/calomel/server.json belongs to a server that has stopped" in done.out
    assert f"→ rm {home}/run/calomel/engine-0123.json" in done.out


def test_a_server_that_hangs_is_found(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calomel.cli.checks._ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        recorded(home, url, os.getpid())
        done = run("doctor")
    assert done.status == 1
    assert f"fail  running server: process {os.getpid()} at {url} does not answer" in done.out
    assert f"→ stop process {os.getpid()}, then run `calomel serve` again" in done.out
    assert "secret" not in done.out


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
        ("http://localhost:8017/v1/completions", "nano", "infer", "cannot infer"),
        ("http://localhost:8017/v1/completions", "nano", "sweep", "does not know prompt_format"),
        ("http://localhost:8017/v1", "zeta2.1", "zeta2_1", "is not /v1/completions"),
        ("http://localhost:8080/v1/completions", "zeta2.1", "zeta2_1", "points to http port 8080"),
        ("http://localhost:x/v1/completions", "zeta2.1", "zeta2_1", "is not a valid URL"),
        ("https://team.example/v1/completions", "zeta2.1", "zeta2_1", "set up in"),
    ],
)
def test_zed_is_told_where_it_points(home: Path, url: str, model: str, form: str, told: str) -> None:
    configured(home, "zed/settings.json", ZED % (url, model, form))
    [finding] = [each for each in check_editors(here(ServeSettings(port=8017))) if each.subject == "Zed"]
    assert told in finding.found
    assert (finding.level == "ok") == ("set up in" in told)


@pytest.mark.parametrize(
    "text", ["{", '{"edit_predictions": {"provider": "zed"}}', "[]", '{"edit_predictions": 1}', ""]
)
def test_other_settings_of_zed_are_no_crash(home: Path, text: str) -> None:
    configured(home, "zed/settings.json", text)
    assert [each.level for each in check_editors(here(ServeSettings())) if each.subject == "Zed"] == ["warn"]


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Finding]:
    """What is found with so many MiB free."""

    def find(free: int) -> Finding:
        monkeypatch.setattr("calomel.families.memory.free_bytes", lambda device: free * 1024**2)
        monkeypatch.setattr("calomel.engine.checkpoint.native_bfloat16", lambda: False)
        (found,) = (each for each in check_model(ServeSettings()) if each.subject == "memory")
        return found

    return find


def test_a_model_that_does_not_fit_fails_with_what_it_takes(memory: Callable[[int], Finding]) -> None:
    found = memory(450)

    assert found.level == "fail"
    assert re.search(r"nano needs [\d.]+ MiB of memory on cpu \(weights 24.3 MiB", found.found)


def said(run: Runner, *arguments: str) -> tuple[int, list[str]]:
    """The exit status and the lines that are no `ok`, each with its advice behind it."""
    done = run("doctor", *arguments)
    found: list[str] = []
    for line in done.out.splitlines():
        if line.startswith(("warn", "fail")):
            found.append(line)
        elif line.startswith("      →") and found:
            found[-1] += line.removeprefix("     ")
    return done.status, [line for line in found if "`calomel` is not on the PATH" not in line]


OWN, VSCODE = "calomel/calomel.toml", "Code/User/settings.json"
OFF_IN_VSCODE = '{"calomel.path": "/x", "calomel.editor.hints": true, "calomel.suggest.languages": {"go": false}}'
# The settings, what is asked about, the exit status, and parts of the one line that is not `ok`.
FOUND: dict[str, tuple[str, str, tuple[str, ...], int, tuple[str, ...]]] = {
    "a server that is stopped": (
        OWN, '[backend]\nurl = "http://127.0.0.1:9"', (), 1,
        ("fail  editors' model: no server answers at http://127.0.0.1:9 (backend.url in calomel.toml)",
         "start it (calomel serve)"),
    ),
    "a server on another machine that does not answer": (
        OWN, '[backend]\nurl = "https://192.0.2.1:9"', (), 1,
        ("no server answers at https://192.0.2.1:9", "→ check the network and the address, or remove backend.url"),
    ),
    "an upstream on another machine that does not answer": (
        OWN, '[backend]\nupstream = "https://192.0.2.1:9/v1"', (), 1,
        ("no server answers at https://192.0.2.1:9: check the network and the address (",
         "→ check the network and the address, or remove backend.upstream"),
    ),
    "a server that would be sent to unencrypted": (
        OWN, '[backend]\nurl = "http://192.0.2.1:9"', (), 1,
        ("would send your code unencrypted", "→ correct that, or remove backend.url"),
    ),
    "a model that is missing": (
        OWN, '[backend]\nmodel = "/nowhere"', (), 1,
        ("fail  editors' model: /nowhere/config.json does not exist", "(backend.model in calomel.toml)"),
    ),
    "a file that is ignored": (
        OWN, "", (".env",), 0,
        ("This file may contain a secret (.env).",
         'privacy.ignore = ["!.env"]'),
    ),
    "a language that is off": (
        OWN, "[suggest.languages]\npython = false", ("a.py",), 0,
        ("Suggestions are off for this language. (python, in calomel.toml)",
         "suggest.languages = { python = true }"),
    ),
    "a file that a program wrote": (
        OWN, "", ("a.lock",), 0,
        ("This file is generated (*.lock).",),
    ),
    "a pattern of one's own": (
        OWN, '[privacy]\nignore = ["*.sql"]', ("a.sql",), 0,
        ("A pattern in privacy.ignore excludes this file (*.sql).",),
    ),
    "a server that VS Code names": (
        VSCODE, '{"calomel.backend.url": "http://127.0.0.1:9", "calomel.backend.idleMinutes": 5}', (), 1,
        ("fail  editors' model: no server answers at http://127.0.0.1:9 (backend.url in VS Code)",),
    ),
    "a language that is off in VS Code": (VSCODE, OFF_IN_VSCODE, ("a.go",), 0, ("(go, in VS Code)",)),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "asked", "status", "parts"), FOUND.values(), ids=FOUND)
def test_why_nothing_is_suggested_is_said_in_one_line_with_what_to_do(
    run: Runner,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    text: str,
    asked: tuple[str, ...],
    status: int,
    parts: tuple[str, ...],
) -> None:
    monkeypatch.chdir(home)
    configured(home, name, text)
    for file in asked:
        Path(file).write_text("A=1\n")
    found, (line,) = said(run, *asked)
    assert found == status
    assert [part for part in parts if part not in line] == []


def test_an_upstream_of_the_editors_is_asked(run: Runner, home: Path) -> None:
    with served(ollama(Play())) as url:
        configured(home, OWN, f'[backend]\nupstream = "{url}"')
        well = run("doctor")
    status, (dead,) = said(run)[0], [line for line in said(run)[1] if "editors' model" in line]
    assert well.status == 0
    assert f" through Ollama at {url} (backend.upstream in calomel.toml)\n" in well.out
    assert status == 1
    assert dead.startswith(f"fail  editors' model: no server answers at {url}: start it, or correct upstream")
    assert dead.endswith("→ start that server, or remove backend.upstream")


def test_a_second_model_for_edits_is_asked_too(run: Runner, home: Path) -> None:
    with served(ollama(Play())) as url:
        configured(home, OWN, f'[backend]\nupstream = "{url}"\nedit_upstream = "http://127.0.0.1:9"')
        lines = run("doctor").out.splitlines()
    (text,) = [line for line in lines if "editors' model:" in line]
    (edits,) = [line for line in lines if "editors' model for edits:" in line]
    assert text.startswith("ok")
    assert edits.startswith("fail  editors' model for edits: no server answers at http://127.0.0.1:9: start it")
    assert edits.endswith("(backend.edit_upstream in calomel.toml)")


def test_a_language_that_is_off_leaves_the_others_on(run: Runner, home: Path) -> None:
    configured(home, OWN, "[suggest.languages]\npython = false")
    (home / "a.go").write_text("package a\n")
    assert said(run, str(home / "a.go")) == (0, [])
    assert "ok    suggestions: off in calomel.toml for python" in run("doctor").out


def test_a_port_that_another_program_has(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with another_program(NO_HTTP) as url:
        port = url.rpartition(":")[2]
        monkeypatch.setenv("CALOMEL_PORT", port)
        configured(home, "calomel/calomel.toml", f'[backend]\nurl = "{url}"')
        status, (taken, asked) = said(run)
    assert status == 1
    assert taken.startswith(f"fail  port: 127.0.0.1 port {port}: Address already in use → another program uses it")
    assert f"the program at {url} is not Calomel" in asked


def test_a_wrong_token(run: Runner, home: Path) -> None:
    with another_program(REFUSED) as url:
        configured(home, "calomel/calomel.toml", f'[backend]\nurl = "{url}"\ntoken = "s3cret"').chmod(0o600)
        status, (line,) = said(run)
    assert status == 1
    assert "fail  editors' model: the server does not accept the token" in line
    assert "backend.token_file" in line
    assert "s3cret" not in line


def test_suggestions_that_are_off(run: Runner, home: Path) -> None:
    configured(home, "calomel/calomel.toml", "[suggest]\nenabled = false\nmax_tokens = 0")
    _, lines = said(run)
    assert [line.partition(":")[0] for line in lines] == ["warn  editors' settings", "warn  suggestions"]
    assert "suggest.max_tokens: must be a whole number" in lines[0]


def test_a_machine_that_is_too_slow() -> None:
    finding = check_speed(Settings(), lambda _: Pace(4.0, 1.6, 2048))
    assert finding.level == "warn"
    assert finding.found.startswith("too slow: 1600 ms for the next keystroke, 4000 ms at a new place with 2048 tokens")
    assert "suggest.context_tokens = 512" in finding.advice


def test_the_speed_of_the_shipped_model_is_measured() -> None:
    ticks = iter([0.0, 0.25, 1.0, 1.5, 2.0, 2.25])
    pace = measured(Settings(suggest=SuggestSettings(context_tokens=64)), lambda: next(ticks))
    assert pace == Pace(0.5, 0.25, 64)


def test_a_speed_that_is_enough_or_cannot_be_measured_is_no_fault() -> None:
    def broken(_: Settings) -> Pace:
        raise CompleterError("failed", "no such thing")

    assert check_speed(Settings(), lambda _: Pace(2.0, 0.2, 2048)).level == "ok"
    assert "not measured" in check_speed(Settings(), lambda _: None).found
    assert "not measured: no such thing" in check_speed(Settings(), broken).found


def findings(folder: Path) -> dict[str, Finding]:
    return {found.subject: found for found in check_model(ServeSettings(model=folder, no_auth=True))}


def test_what_is_wrong_with_another_makers_checkpoint_is_found_without_loading_it(sdar: Path) -> None:
    found = findings(sdar)
    assert (found["model"].level, found["memory"].level) == ("ok", "ok")
    assert "fill, edit; up to 2048 tokens" in found["model"].found
    shard = sdar / "model-00001-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    assert "damaged or cut short" in findings(sdar)["model"].found
    (sdar / "vocab.json").unlink()
    assert "vocab.json" in findings(sdar)["model"].found
    (sdar / "config.json").write_text(json.dumps({"model_type": "mamba"}))
    assert "belongs to no family Calomel loads" in findings(sdar)["model"].found


CHECK = checks.check_upstream


@pytest.fixture
def machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on it but what a test puts into its folder of programs, which this is."""
    programs = home / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    no_port(monkeypatch)
    return programs


def no_port(monkeypatch: pytest.MonkeyPatch, *ports: tuple[str, int]) -> None:
    """Only these are the usual ports of model servers."""
    monkeypatch.setattr(checks, "check_upstream", partial(CHECK, ports=ports))


def program(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


def test_a_bare_machine_gets_three_steps(run: Runner, machine: Path) -> None:
    done = run()
    assert done.status == 0
    assert [line[:3] for line in done.out.splitlines() if line[:1].isdigit()] == ["1. ", "2. ", "3. "]
    commands = [line.strip() for line in done.out.splitlines() if line.startswith("   ")]
    assert commands == ["calomel try", "calomel editor setup --help", "calomel models recommend"]
    assert "Calomel uses its small model `nano`" in done.out


def test_an_editor_that_is_there_is_named_with_its_command(run: Runner, machine: Path) -> None:
    program(machine, "hx")
    assert "Helix is on this machine. Connect it to Calomel:\n   calomel editor setup helix" in run().out
    program(machine, "code")
    program(machine, "codium")
    program(machine, "nvim")
    said = run().out
    assert "VS Code, Neovim and Helix are on this machine. Connect the ones you use to Calomel:\n" in said
    assert [line for line in said.splitlines() if "setup" in line] == [
        f"   calomel editor setup {name}" for name in ("vscode", "neovim", "helix")
    ]


def test_an_editor_with_a_configuration_goes_before_a_program(run: Runner, machine: Path, home: Path) -> None:
    program(machine, "code")
    (home / ".config" / "nvim").mkdir(parents=True)
    assert "calomel editor setup neovim" in run().out
    assert run("editor", "setup", "neovim", "--yes").status == 0
    said = run().out
    assert "Neovim is set up in" in said
    assert "Open a source file and type." in said
    assert "calomel doctor" in said


def test_a_gpu_is_named(run: Runner, machine: Path) -> None:
    program(machine, "nvidia-smi")
    assert "This machine has an NVIDIA GPU. See which larger models fit it:" in run().out


def test_a_model_server_that_runs_is_named_with_the_line_that_uses_it(
    run: Runner, machine: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(ollama(Play())) as url:
        no_port(monkeypatch, ("Ollama", int(url.rpartition(":")[2])))
        said = run().out
        configured(home, "calomel/calomel.toml", f'[backend]\nupstream = "{url.replace("127.0.0.1", "localhost")}"\n')
        checked = run("doctor").out
    assert f"Ollama runs at {url}. Use its model, for better suggestions:" in said
    assert f"calomel models use --upstream {url}" in said
    assert f"Ollama runs at {url}; all editors ask it" in checked
    assert "calomel models use --upstream" not in checked


def test_settings_that_cannot_be_read_are_one_line(run: Runner, machine: Path, home: Path) -> None:
    configured(home, "calomel/calomel.toml", "[serve]\nprot = 8018\n")
    done = run()
    assert (done.status, "serve.prot: unknown; did you mean port?" in done.err) == (2, True)


WITHOUT_TORCH = """
import sys
for name in ("torch", "transformers", "fastapi"):
    sys.modules[name] = None
from calomel.cli.main import main
main([])
"""


def test_it_does_not_wait_for_torch() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "calomel --help lists every command." in done.stdout


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


SHOW_CURSOR = "\x1b[?25h"


@pytest.mark.parametrize("error", [None, KeyError()])
def test_a_bar_counts_its_steps_and_gives_the_cursor_back(error: Exception | None) -> None:
    console = terminal()
    with suppress(KeyError), Progress(console) as progress:
        progress.phase("holes", 3)
        assert "0/3" in written(console)
        if error is not None:
            raise error
        for _ in range(3):
            progress.step()
    assert "holes" in written(console)
    assert ("3/3" in written(console)) == (error is None)
    assert SHOW_CURSOR in written(console)


def test_without_a_terminal_there_is_no_bar() -> None:
    console = Console(file=io.StringIO(), width=80)
    with Progress(console) as progress:
        progress.phase("holes", 1)
        progress.step()
    assert written(console) == ""


def test_what_takes_long_is_seen_to_take_long_and_what_does_not_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    quick, slow = terminal(), terminal()
    with Progress(quick).later("calomel doctor"):
        pass
    monkeypatch.setattr(running, "PATIENCE_SECONDS", 0.0)
    with Progress(slow).later("calomel doctor") as progress:
        assert progress.timer is not None
        progress.timer.join()
    assert "calomel doctor" not in written(quick)
    assert "calomel doctor" in written(slow)


def test_a_language_server_that_is_interrupted_at_its_start_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("calomel.lsp.server.run_stdio", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["lsp"])
    assert (ended.value.code, capsys.readouterr()) == (130, ("", ""))
