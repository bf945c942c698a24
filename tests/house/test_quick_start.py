"""What the README promises a newcomer, and what `make` does for one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from calomel.infer.completer import FillRequest
from calomel.infer.in_process import open_filler
from calomel.prompts.parts import PromptParts

ROOT = Path(__file__).parents[2]


def quick_start() -> list[str]:
    """The commands of the fenced blocks under `## Quick start`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## Quick start\s*$(.*?)(?=^## |\Z)", readme, re.MULTILINE | re.DOTALL)
    assert section is not None
    return [block.strip() for block in re.findall(r"^```sh$(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)]


def test_the_first_request_on_the_page_waits_for_the_server_and_gets_a_line_that_compiles() -> None:
    page = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    block = next(each for each in re.findall(r"^```sh$(.*?)^```$", page, re.MULTILINE | re.DOTALL) if "curl" in each)
    assert block.index("calomel serve &") < block.index("/health") < block.index("/v1/fim/completions")
    (said,) = re.findall(r"-d '(.*)'", block)
    body = json.loads(said)
    with closing(open_filler()) as filler:
        parts = PromptParts(prefix=body["prompt"], suffix=body["suffix"])
        answer = filler.fill(FillRequest("fill", parts, max_tokens=body["max_tokens"], fitted=True))
    assert answer.text
    compile(body["prompt"] + answer.text + body["suffix"], "page", "exec")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as a newcomer does, not as a part of the make that may be running these tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", ["try", "test", "test-full", "fix", "lint", "types", "bench"])
def test_fresh_clone_installs_before_it_runs(target: str, tmp_path: Path) -> None:
    planned = make("--dry-run", f"VENV={tmp_path / 'venv'}", target)
    assert (planned.returncode, planned.stderr) == (0, "")
    steps = planned.stdout
    assert steps.index("-m venv") < steps.index("--constraint constraints.txt") < steps.index("touch")


def test_what_a_newcomer_sees_is_the_program_and_not_its_shell_lines(tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "calomel"
    program.write_text('#!/bin/sh\necho "played $*"\n')
    program.chmod(0o755)
    (folder / "bin" / "python").symlink_to("/bin/true")
    (folder / ".installed-base").touch()

    assert make(f"VENV={folder}", "try").stdout == "played try\n"


def test_machine_without_python_is_told_what_to_install(tmp_path: Path) -> None:
    refused = make(f"VENV={tmp_path / 'venv'}", "PYTHON=/nowhere/python3", "try")
    assert refused.returncode != 0
    assert "needs Python 3.11, 3.12 or 3.13" in refused.stderr
    assert "apt-get install python3 python3-venv" in refused.stderr
    assert not (tmp_path / "venv").exists()


def test_continuous_integration_runs_the_same_commands_as_the_quick_start() -> None:
    assert quick_start() == ["make try", "make test"]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^(?:if ! )?timeout \d+ (make \w+)", script, re.MULTILINE)[:2] == quick_start()
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


@pytest.mark.parametrize(
    ("absent", "status", "words", "smoke"),
    [
        (("neovim", "vscode"), 0, ["NO NEOVIM", "NO VS CODE"], False),
        (("neovim",), 0, ["NO NEOVIM"], True),
        ((), 0, [], True),
        (("tests once",), 0, ["TESTS FAILED AND THEN PASSED BY THEMSELVES"], True),
        (("tests once", "tests"), 1, [], False),
        (("wheel",), 1, [], False),
        (("smoke",), 1, [], True),
        (("smoke once",), 0, [], True),
        (("vsix",), 0, ["NOT PACKED"], False),
        (("time",), 0, ["NO TIME FOR VS CODE"], False),
    ],
)
def test_continuous_integration_says_loudly_what_is_not_tried(
    absent: tuple[str, ...], status: int, words: list[str], *, smoke: bool, tmp_path: Path
) -> None:
    broken = f"exit {int('smoke' in absent)}"
    if "smoke once" in absent:
        broken = f"[ -e {tmp_path}/tried ] || {{ touch {tmp_path}/tried; exit 1; }}"
    programs = {
        "tests/tools/get-neovim": f"exit {int('neovim' in absent)}",
        "tests/tools/get-vscode": f"echo {tmp_path}/vscode; exit {int('vscode' in absent)}",
        "tests/tools/try-wheel": f"exit {int('wheel' in absent)}",
        "bin/make": f'echo "make $1"; case $1 in vscode-smoke) {broken};; vsix) exit {int("vsix" in absent)};; '
        f"test) exit {int('tests once' in absent)};; esac",
        ".venv/bin/python": f"exit {int('tests' in absent)}",
        "bin/npm": "exit 0",
    }
    for name, words_of_it in programs.items():
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{words_of_it}\n")
        program.chmod(0o755)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "calomel.vsix").touch()
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    environment = os.environ | {"PATH": f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}"}
    if "time" in absent:
        environment["SECONDS"] = "2000"
    done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status
    said = [line for line in done.stderr.splitlines() if line.startswith("!!! ")]
    # Once where it happens, and once at the end, where it is read.
    assert [line.split(":")[0].removeprefix("!!! ") for line in said] == words * 2
    assert ("make vscode-smoke" in done.stdout) == smoke
    assert [line for line in done.stdout.splitlines() if line.startswith("make ")][:2] == quick_start()
