"""From a clone to a next edit accepted, by the README's words: three ways to a model, in Neovim and in VS Code.

Nothing but what the README says is done to get there: its commands are run as they stand there, in their order, with a
home folder that is empty. Exit status 0 if each way took at most four steps (commands, `git clone` included) and less
than ten minutes of machine time in each editor.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cli.hub import hub_with
from tests.e2e.first_hour.readme import CommandFailedError, FirstHour, Shell, read
from tests.e2e.first_hour.visitors import visit_neovim, visit_vscode
from tests.editors.programs import Programs, find_neovim, find_programs
from tests.editors.shared import end_model_servers
from tests.server._llama_cpp import SMOLLM2, Llama

ROOT: Final = Path(__file__).parents[3]
LIMIT_SECONDS: Final = 600.0
MOST_STEPS: Final = 4
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


@dataclass(frozen=True, slots=True)
class Way:
    """A model to come to: the README's commands, and what its name or place has in the editor's status."""

    name: str
    lines: tuple[str, ...]
    model: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What a way cost somebody with one editor: commands, the clone's included, and seconds."""

    way: str
    editor: str
    steps: int
    seconds: float


@contextlib.contextmanager
def ways(hour: FirstHour, scratch: Path) -> Iterator[tuple[list[Way], dict[str, str]]]:
    """Those of the README, and the environment in which its hub is one of this machine, as is the server of others.

    What both serve is SmolLM2-135M, in the place of the larger model that the README names.
    """
    found = [Way("nano", (), "nano")]
    if not SMOLLM2.exists():
        say(f"NOT TRIED: no {SMOLLM2}: the tests of real weights fetch it")
        yield found, {}
        return
    packed, served = hour.ways.values()
    repository, quant = re.findall(r"([\w.-]+/[\w.-]+):(\w+)", packed[-1])[0]
    name = f"{repository.partition('/')[2]}-{quant}.gguf".lower()
    (scratch / "llama").mkdir()
    llama = Llama(scratch / "llama")
    with hub_with({name: SMOLLM2.read_bytes()}, repository) as hub:
        place = llama(model=SMOLLM2).removeprefix("http://")
        try:
            found.append(Way("a GGUF file", packed, name.removesuffix(".gguf")))
            lines = tuple(line.replace("localhost:8080", place) for line in served)
            found.append(Way("a llama.cpp that runs", lines, place))
            yield found, {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}"}
        finally:
            llama.end()


def first_hour(scratch: Path) -> list[Spent]:
    """Each way in each editor. Raises AssertionError or CommandFailedError where it does not work out."""
    neovim, no_neovim = find_neovim()
    vscode, no_vscode = find_programs()
    for reason in filter(None, (no_neovim, no_vscode)):
        say(f"NOT TRIED: {reason}")
    home, clone = scratch / "home", scratch / "calomel"
    home.mkdir()
    put_editors(scratch / "programs", neovim, vscode, home)
    watch = Watch()
    subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, clone], check=True)
    watch.note(f"$ git clone {ROOT.name}")
    hour = read(clone / "README.md")
    visits: dict[str, Callable[[Path, Watch, str], None]] = {}
    if neovim is not None:
        visits["Neovim"] = lambda project, its, model: visit_neovim(neovim, project, hour, environment, its.note, model)
    if vscode is not None:
        visits["VS Code"] = lambda project, its, model: visit_vscode(
            vscode, project, home, hour, environment, its.note, model
        )
    spent = []
    with ways(hour, scratch) as (found, hub):
        environment = surroundings(home, scratch / "programs") | hub
        with Shell(clone, environment) as shell:
            run(shell, hour.first, watch)
            connecting = {name: Watch() for name in visits}
            for name in visits:
                connecting[name] = Watch()
                run(shell, hour.editors[name], connecting[name])
            for way in found:
                say(f"--- {way.name}")
                choosing = Watch()
                run(shell, way.lines, choosing)
                for name, visit in visits.items():
                    say(f"--- {way.name}, {name}")
                    its, project = Watch(), scratch / f"{way.name} {name}".replace(" ", "-")
                    project.mkdir()
                    try:
                        visit(project, its, way.model)
                    finally:
                        end_model_servers(Path(environment["XDG_RUNTIME_DIR"]))
                    steps = 1 + len(hour.first) + len(hour.editors[name]) + len(way.lines)
                    seconds = watch.total + connecting[name].total + choosing.total + its.total
                    spent.append(Spent(way.name, name, steps, seconds))
    return spent


def main() -> int:
    """Try it, and say how it went."""
    with tempfile.TemporaryDirectory(prefix="first-hour-", ignore_cleanup_errors=True) as scratch:
        try:
            spent = first_hour(Path(scratch))
        except (AssertionError, CommandFailedError) as error:
            say(f"FAILED: {error}")
            return 1
    for each in spent:
        say(f"{each.way}, {each.editor}: {each.steps} steps, {each.seconds / 60:.1f} minutes to a next edit accepted")
    late = [each for each in spent if each.steps > MOST_STEPS or each.seconds >= LIMIT_SECONDS]
    say(f"FAILED: more than {MOST_STEPS} steps or {LIMIT_SECONDS / 60:.0f} minutes" if late else "All in time.")
    return int(not spent or bool(late))


if __name__ == "__main__":
    sys.exit(main())
