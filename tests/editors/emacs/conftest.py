"""Fixtures of the tests in Emacs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.editors.emacs.program import find_emacs, find_lsp_mode


@pytest.fixture(scope="session")
def emacs_program() -> Path:
    """An Emacs that is new enough."""
    program, reason = find_emacs()
    if program is None:
        pytest.skip(reason)
    return program


@pytest.fixture(scope="session")
def lsp_mode_program(emacs_program: Path) -> Path:
    """One that has lsp-mode with inline completions."""
    reason = find_lsp_mode()
    if reason:
        pytest.skip(reason)
    return emacs_program
