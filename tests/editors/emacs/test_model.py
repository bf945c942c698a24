"""The whole of it: Emacs, lsp-mode, the language server, the model's server and the shipped weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.editors.emacs.emacs import Emacs, snippet
from tests.editors.emacs.test_lsp_mode import GHOST, INIT, opened
from tests.editors.neovim.test_model import PLACES, end_model_servers
from tests.editors.setup import is_ready, last_outcomes
from tests.lsp.program import REAL

FORGET = '(with-current-buffer "*Messages*" (let ((inhibit-read-only t)) (erase-buffer)))'

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_asks_sees_ghost_text_takes_it_and_the_buffer_holds_it(lsp_mode_program: Path, tmp_path: Path) -> None:
    try:
        with Emacs(lsp_mode_program, tmp_path, snippet(tmp_path, "lsp-mode", REAL) + INIT) as emacs:
            # Loading the weights on a busy machine.
            emacs.seconds = 120.0
            opened(emacs, "")
            emacs.until(lambda: is_ready(tmp_path), "the model is ready")
            assert any(takes(emacs, before, behind) for before, behind in PLACES), emacs.messages()
            emacs.until(lambda: "accepted" in last_outcomes(tmp_path).values(), "the outcome is kept")
    finally:
        end_model_servers(tmp_path / "runtime")


def takes(emacs: Emacs, before: str, behind: str) -> bool:
    """Ask at the end of `before`, and take what is suggested; False if that is nothing."""
    insert = f"(insert {json.dumps(before)}) (save-excursion (insert {json.dumps(behind)}))"
    emacs.lisp(f"(progn (erase-buffer) {insert} {FORGET} nil)")
    emacs.press("M-x lsp-inline-completion-display RET")
    emacs.until(lambda: emacs.lisp(GHOST) or "No Suggestions" in emacs.messages(), "an answer")
    if not emacs.lisp(GHOST):
        return False
    emacs.press("C-<return>")
    emacs.until(lambda: emacs.text() != before + behind, "the text is taken")
    text = emacs.text()
    assert text.startswith(before)
    assert text.endswith(behind)
    assert len(text) > len(before + behind)
    return True
