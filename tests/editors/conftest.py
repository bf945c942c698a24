"""Fixtures of the tests in editors."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.programs import EXTENSION, Programs, find_neovim, find_npm, find_programs, wanted
from tests.editors.vscode.workbench import START_SECONDS, Starter, Workbench


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Neovim]:
    """A Neovim into which nothing was loaded yet."""
    with Neovim(wanted(find_neovim()), tmp_path) as neovim:
        yield neovim


@pytest.fixture(scope="session")
def shared_neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    """One Neovim and one server for all tests that leave both as they were: starting a server takes a second."""
    folder = tmp_path_factory.mktemp("neovim")
    # The folder that the server is started for.
    (folder / "calomel.toml").touch()
    with Neovim(wanted(find_neovim()), folder) as neovim:
        neovim.setup()
        yield neovim


@pytest.fixture
def neovim(shared_neovim: Neovim, tmp_path: Path) -> Iterator[Neovim]:
    """A Neovim with the plugin and a scripted server, in which no file is open."""
    shared_neovim.files = shared_neovim.folder / tmp_path.name
    shared_neovim.files.mkdir()
    shared_neovim.script()
    yield shared_neovim
    shared_neovim.clean_up()


@pytest.fixture(scope="session")
def programs() -> Programs:
    return wanted(find_programs())


@pytest.fixture(scope="session")
def vsix(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension as it is, packed."""
    wanted(find_npm())
    path = tmp_path_factory.mktemp("vsix") / "calomel.vsix"
    packing = [programs.node, EXTENSION / "scripts" / "package.mjs", path]
    done = subprocess.run(packing, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return path


@pytest.fixture
def start(programs: Programs, vsix: Path, tmp_path: Path) -> Iterator[Starter]:
    """Starts a VS Code of the test's own."""
    with ExitStack() as stack:

        def started(**options: Any) -> Workbench:
            workbench = stack.enter_context(Workbench(programs, vsix, tmp_path, **options))
            workbench.seconds = START_SECONDS
            return workbench

        yield started


@pytest.fixture(scope="session")
def shared_workbench(programs: Programs, vsix: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """One VS Code and one server for all tests that leave both as they were: starting takes seconds."""
    with Workbench(programs, vsix, tmp_path_factory.mktemp("vscode")) as workbench:
        seconds, workbench.seconds = workbench.seconds, START_SECONDS
        workbench.warm_up()
        workbench.seconds = seconds
        yield workbench


@pytest.fixture
def workbench(shared_workbench: Workbench) -> Iterator[Workbench]:
    """A VS Code with a scripted server, in which no file is open."""
    shared_workbench.script()
    yield shared_workbench
    shared_workbench.press("Escape", "Escape")
    shared_workbench.close_all()
