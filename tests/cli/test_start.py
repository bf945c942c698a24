"""`calomel` alone says what comes next on this machine; slow commands say how far they are, to a terminal alone."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.conftest import Runner, configured
from tests.server._upstreams import Play, ollama, served

from calomel.cli import checks
from calomel.cli.main import main
from calomel.report import running
from calomel.report.running import Progress

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
    assert commands == ["calomel editor setup --help", "calomel models recommend", "calomel try"]
    assert "Calomel found no GPU or model server" in done.out


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
    run: Runner, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(ollama(Play())) as url:
        no_port(monkeypatch, ("Ollama", int(url.rpartition(":")[2])))
        said = run().out
    assert f"Ollama runs at {url}. Use its model, for better suggestions:" in said
    assert f"calomel serve --upstream {url}" in said
    assert f'upstream = "{url}"' in said


def test_settings_that_cannot_be_read_are_one_line(run: Runner, machine: Path, home: Path) -> None:
    configured(home, "calomel/calomel.toml", "[serve]\nprot = 8018\n")
    done = run()
    assert (done.status, "prot is not a setting" in done.err) == (2, True)


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
