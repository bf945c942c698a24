"""From a clone to a next edit accepted, in Neovim and in VS Code, by the README's words; seconds for each step.

Nothing but what the README says is done to get there: its commands are run as they stand there, in their order, with a
home folder that is empty. Exit status 0 if each editor took less than ten minutes of machine time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.e2e.first_hour.readme import CommandFailedError, Shell, read
from tests.e2e.first_hour.visitors import visit_neovim, visit_vscode
from tests.editors.programs import Programs, find_neovim, find_programs
from tests.editors.shared import end_model_servers

ROOT: Final = Path(__file__).parents[3]
LIMIT_SECONDS: Final = 600.0
# Where this machine fetches packages from is no matter of the README's.
_MIRRORS: Final = {"PIP_CONFIG_FILE": (".config/pip/pip.conf", ".pip/pip.conf"), "NPM_CONFIG_USERCONFIG": (".npmrc",)}
_DROPPED: Final = ("XDG_", "CALOMEL_", "VIRTUAL_ENV", "PYTHON", "CONDA_", "MAKE", "MFLAGS", "HF_")


def say(line: str) -> None:
    """To whoever waits."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Watch:
    """Seconds of each step, printed as they pass."""

    def __init__(self) -> None:
        self.total = 0.0
        self._began = time.monotonic()

    def note(self, what: str) -> None:
        """Something is done."""
        now = time.monotonic()
        say(f"{now - self._began:7.1f} s  {what}")
        self.total += now - self._began
        self._began = now


def surroundings(home: Path, programs: Path) -> dict[str, str]:
    """The environment of somebody who has just come."""
    found = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    own = os.environ.get("VIRTUAL_ENV")
    path = [each for each in found["PATH"].split(os.pathsep) if own is None or not each.startswith(own)]
    for name, files in _MIRRORS.items():
        there = [Path.home() / each for each in files if (Path.home() / each).is_file()]
        if there and name not in found:
            found[name] = str(there[0])
    runtime = home / ".runtime"
    runtime.mkdir(mode=0o700)
    return found | {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(programs), *path]),
        "XDG_RUNTIME_DIR": str(runtime),
        "LC_ALL": "C.UTF-8",
    }


def put_editors(programs: Path, neovim: Path | None, vscode: Programs | None, home: Path) -> None:
    """The editors under the names that they have elsewhere."""
    programs.mkdir()
    if neovim is not None:
        (programs / "nvim").symlink_to(neovim)
    if vscode is not None:
        folders = f"--user-data-dir='{home}/.config/Code' --extensions-dir='{home}/.vscode/extensions'"
        code = programs / "code"
        code.write_text(
            f"#!/bin/sh\nPATH='{vscode.node.parent}':$PATH exec '{vscode.code_server}' {folders} \"$@\"\n",
            encoding="utf-8",
        )
        code.chmod(0o755)


def run(shell: Shell, lines: tuple[str, ...], watch: Watch) -> None:
    """The README's commands."""
    for line in lines:
        shell.run(line, LIMIT_SECONDS)
        watch.note(f"$ {line}")


def first_hour(scratch: Path) -> dict[str, float]:
    """Seconds for each editor. Raises AssertionError or CommandFailedError where it does not work out."""
    neovim, no_neovim = find_neovim()
    vscode, no_vscode = find_programs()
    for reason in filter(None, (no_neovim, no_vscode)):
        say(f"NOT TRIED: {reason}")
    home, clone = scratch / "home", scratch / "calomel"
    home.mkdir()
    put_editors(scratch / "programs", neovim, vscode, home)
    environment = surroundings(home, scratch / "programs")
    watch = Watch()
    subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, clone], check=True)
    watch.note(f"$ git clone {ROOT.name}")
    hour = read(clone / "README.md")
    with Shell(clone, environment) as shell:
        run(shell, hour.first, watch)
        shared, spent = watch.total, {}
        visits: dict[str, Callable[[Path, Watch], None]] = {}
        if neovim is not None:
            visits["Neovim"] = lambda project, its: visit_neovim(neovim, project, hour, environment, its.note)
        if vscode is not None:
            visits["VS Code"] = lambda project, its: visit_vscode(vscode, project, home, hour, environment, its.note)
        for name, visit in visits.items():
            say(f"--- {name}")
            its, project = Watch(), scratch / name.replace(" ", "")
            project.mkdir()
            try:
                run(shell, hour.editors[name], its)
                visit(project, its)
            finally:
                end_model_servers(Path(environment["XDG_RUNTIME_DIR"]))
            spent[name] = shared + its.total
    return spent


def main() -> int:
    """Try it, and say how it went."""
    with tempfile.TemporaryDirectory(prefix="first-hour-", ignore_cleanup_errors=True) as scratch:
        try:
            spent = first_hour(Path(scratch))
        except (AssertionError, CommandFailedError) as error:
            say(f"FAILED: {error}")
            return 1
    for name, seconds in spent.items():
        verdict = "" if seconds < LIMIT_SECONDS else f", more than {LIMIT_SECONDS:.0f}"
        say(f"{name}: {seconds:.0f} s from a clone to a next edit accepted{verdict}")
    return int(not spent or max(spent.values()) >= LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
