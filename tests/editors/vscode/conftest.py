"""Fixtures of the VS Code extension's tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.editors.vscode.program import EXTENSION, Programs, find_npm, find_programs
from tests.editors.vscode.workbench import START_SECONDS, Workbench


@pytest.fixture(scope="session")
def programs() -> Programs:
    found, reason = find_programs()
    if found is None:
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def vsix(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension as it is, packed."""
    if reason := find_npm():
        pytest.skip(reason)
    path = tmp_path_factory.mktemp("vsix") / "calomel.vsix"
    packing = [programs.node, EXTENSION / "scripts" / "package.mjs", path]
    done = subprocess.run(packing, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return path


@pytest.fixture
def start(programs: Programs, vsix: Path, tmp_path: Path) -> Iterator[Callable[..., Workbench]]:
    """Starts a VS Code of the test's own."""
    with ExitStack() as stack:
        count = 0

        def started(**options: Any) -> Workbench:
            nonlocal count
            count += 1
            folder = tmp_path / str(count)
            folder.mkdir()
            return stack.enter_context(Workbench(programs, vsix, folder, **options))

        yield started


@pytest.fixture(scope="session")
def shared(programs: Programs, vsix: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """One VS Code and one server for all tests that leave both as they were: starting takes seconds."""
    with Workbench(programs, vsix, tmp_path_factory.mktemp("vscode")) as workbench:
        seconds, workbench.seconds = workbench.seconds, START_SECONDS
        workbench.warm_up()
        workbench.seconds = seconds
        yield workbench


@pytest.fixture
def workbench(shared: Workbench) -> Iterator[Workbench]:
    """A VS Code with a scripted server, in which no file is open."""
    shared.script()
    yield shared
    shared.press("Escape", "Escape")
    shared.close_all()
