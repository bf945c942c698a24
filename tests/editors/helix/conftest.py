"""Fixtures of the tests in Helix."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.editors.helix.program import find_helix


@pytest.fixture(scope="session")
def helix_program() -> Path:
    """A Helix that runs."""
    program, reason = find_helix()
    if program is None:
        pytest.skip(reason)
    return program
