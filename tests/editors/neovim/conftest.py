"""Fixtures of the Neovim plugin's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.neovim.program import find_neovim


def _program() -> Path:
    program, reason = find_neovim()
    if program is None:
        pytest.skip(reason)
    return program


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Neovim]:
    """A Neovim into which nothing was loaded yet."""
    with Neovim(_program(), tmp_path) as neovim:
        yield neovim


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    """One Neovim and one server for all tests that leave both as they were: starting a server takes a second."""
    folder = tmp_path_factory.mktemp("neovim")
    # The folder that the server is started for.
    (folder / "calomel.toml").touch()
    with Neovim(_program(), folder) as neovim:
        neovim.setup()
        yield neovim


@pytest.fixture
def neovim(shared: Neovim, tmp_path: Path) -> Iterator[Neovim]:
    """A Neovim with the plugin and a scripted server, in which no file is open."""
    shared.files = shared.folder / tmp_path.name
    shared.files.mkdir()
    shared.script()
    yield shared
    shared.clean_up()
