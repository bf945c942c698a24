"""Fixtures of the Neovim plugin's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.neovim.program import find_neovim


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Neovim]:
    """A Neovim into which nothing was loaded yet."""
    program, reason = find_neovim()
    if program is None:
        pytest.skip(reason)
    with Neovim(program, tmp_path) as neovim:
        yield neovim


@pytest.fixture
def neovim(bare: Neovim) -> Neovim:
    """A Neovim with the plugin and a scripted server, in which no file is open yet."""
    bare.setup()
    return bare
