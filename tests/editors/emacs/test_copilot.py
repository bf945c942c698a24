"""lsp-mode's client for Copilot's server, as the page on such clients sets it up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.editors.emacs.emacs import Emacs
from tests.editors.emacs.test_lsp_mode import GHOST, INIT, opened
from tests.editors.setup import here, last_outcomes
from tests.lsp.program import SCRIPTED

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[3] / "docs" / "copilot-clients.md"


@pytest.fixture
def emacs(lsp_mode_program: Path, tmp_path: Path) -> Iterator[Emacs]:
    shown = re.search(r"```elisp\n(;; lsp-copilot.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    program = json.dumps(here(tmp_path, SCRIPTED).program)
    init = INIT + shown[1].replace('"calomel"', program) + "\n(setq lsp-copilot-auth-check-delay 0.1)\n"
    with Emacs(lsp_mode_program, tmp_path, init) as emacs:
        yield emacs


def test_it_counts_as_signed_in_and_shows_ghost_text_that_its_key_takes(emacs: Emacs) -> None:
    emacs.script(fill={"'😀', (": "value_of(x))"})
    opened(emacs, "'😀'")
    emacs.press("M-x lsp-copilot-check-status RET")
    emacs.until(lambda: "Authenticated as calomel" in emacs.messages(), "an account that counts")
    # Places are counted in units of UTF-16, of which the character before has two.
    emacs.press("C-e")
    emacs.type(", (")
    emacs.until(lambda: "value_of(x))" in (emacs.lisp(GHOST) or ""), "ghost text")

    emacs.press("C-<return>")

    emacs.until_text("'😀', (value_of(x))")
    emacs.until(lambda: list(last_outcomes(emacs.folder).values()) == ["accepted"], "the outcome is kept")
    assert "Could not" not in emacs.messages()
    assert "Proceed now" not in emacs.messages()


def test_its_menu_of_actions_has_the_next_edit(emacs: Emacs) -> None:
    emacs.script(edit={"print(old)": "print(new)"})
    text = "old = 1\n" + "\n" * 8 + "print(old)\n"
    opened(emacs, text)
    emacs.press("M-d n e w")
    emacs.until_text(text.replace("old = 1", "new = 1"))
    emacs.press("M-x lsp-execute-code-action RET")
    emacs.until_text(text.replace("old", "new"))
