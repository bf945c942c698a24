"""lsp-mode: ghost text by its own inline completion, as the printed lines set it up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.editors.emacs.emacs import Emacs, snippet
from tests.editors.setup import last_outcomes, outcomes

pytestmark = pytest.mark.e2e

HEAD = "def add(a, b):\n    \n"
REST = "turn a + b\n\n\ndef sub(a, b):\n    return a - b"
# No other server is asked for, none is fetched, and nobody is asked what the project's root is.
INIT = """
(load "lsp-mode-autoloads" t t)
(setq lsp-enable-snippet nil
      lsp-auto-guess-root t
      lsp-guess-root-without-session t
      lsp-enable-suggest-server-download nil
      lsp-restart 'ignore
      lsp-warn-no-matched-clients nil
      lsp-inline-completion-idle-delay 0.05)
(add-hook 'prog-mode-hook #'lsp)
"""
GHOST = """
(and (overlayp lsp-inline-completion--overlay)
     (concat (overlay-get lsp-inline-completion--overlay 'display)
             (overlay-get lsp-inline-completion--overlay 'after-string)))
"""


@pytest.fixture
def emacs(lsp_mode_program: Path, tmp_path: Path) -> Iterator[Emacs]:
    with Emacs(lsp_mode_program, tmp_path, snippet(tmp_path, "lsp-mode") + INIT) as emacs:
        yield emacs


def opened(emacs: Emacs, text: str, name: str = "a.py") -> None:
    emacs.open(text, name)
    ready = "(and (seq-some (lambda (it) (eq 'initialized (lsp--workspace-status it))) (lsp-workspaces)) t)"
    emacs.until(lambda: emacs.lisp(ready), "lsp-mode serves the buffer")


def shown(emacs: Emacs) -> None:
    """`re` was typed, and the rest is shown."""
    emacs.script(fill={"def add(a, b):\n    re": REST})
    opened(emacs, HEAD)
    emacs.press("C-n C-e")
    emacs.type("re")
    emacs.until(lambda: REST in (emacs.lisp(GHOST) or ""), "ghost text")
    assert emacs.text() == HEAD[:-1] + "re\n"


def test_what_is_typed_brings_ghost_text_and_its_key_takes_it(emacs: Emacs) -> None:
    shown(emacs)
    emacs.press("C-<return>")

    emacs.until_text(HEAD[:-1] + "re" + REST + "\n")
    emacs.until(lambda: list(last_outcomes(emacs.folder).values()) == ["accepted"], "the outcome is kept")
    assert {each["language"] for each in outcomes(emacs.folder)} == {"python"}


def test_dismissed_it_leaves_the_text_alone(emacs: Emacs) -> None:
    shown(emacs)
    emacs.press("C-g")
    emacs.until(lambda: emacs.lisp(GHOST) is None, "no ghost text")
    assert emacs.text() == HEAD[:-1] + "re\n"


def test_the_mode_line_says_that_there_is_a_next_edit(emacs: Emacs) -> None:
    emacs.script(edit={"print(old)": "print(new)"})
    opened(emacs, "old = 1\nprint(old)\n")
    emacs.press("M-d n e w")
    count = '(string-to-number (or lsp-modeline--code-actions-string ""))'
    emacs.until(lambda: emacs.lisp(count) == 1, "the mode line says it")
    assert emacs.text() == "new = 1\nprint(old)\n"


def test_a_next_edit_is_the_code_action(emacs: Emacs) -> None:
    emacs.script(edit={"print(old)": "print(new)"})
    text = "old = 1\n" + "\n" * 8 + "print(old)\n"
    opened(emacs, text)
    emacs.press("M-d n e w")
    emacs.until_text(text.replace("old = 1", "new = 1"))

    emacs.press("M-x lsp-execute-code-action RET")

    emacs.until_text(text.replace("old", "new"))
    emacs.until(lambda: "accepted" in last_outcomes(emacs.folder).values(), "the outcome is kept")
