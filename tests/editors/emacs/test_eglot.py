"""Emacs's own client: what is suggested comes as a completion, next edits as a code action."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.editors.emacs.emacs import Emacs, snippet
from tests.editors.setup import last_outcomes, outcomes

pytestmark = pytest.mark.e2e

HEAD = "def add(a, b):\n    \n"
REST = "turn a + b\n\n\ndef sub(a, b):\n    return a - b"
INIT = "(add-hook 'prog-mode-hook #'eglot-ensure)\n(setq eglot-autoreconnect nil)\n"


@pytest.fixture
def emacs(emacs_program: Path, tmp_path: Path) -> Iterator[Emacs]:
    with Emacs(emacs_program, tmp_path, snippet(tmp_path, "eglot") + INIT) as emacs:
        yield emacs


def opened(emacs: Emacs, text: str, name: str = "a.py") -> None:
    emacs.open(text, name)
    emacs.until(lambda: emacs.lisp("(and (eglot-managed-p) t)"), "eglot serves the buffer")


@pytest.mark.parametrize("rest", ["turn a + b", REST], ids=["a_line", "lines"])
def test_the_word_begun_is_completed_and_the_server_learns_it(emacs: Emacs, rest: str) -> None:
    emacs.script(fill={"def add(a, b):\n    re": rest})
    opened(emacs, HEAD)
    emacs.press("C-n C-e")
    emacs.type("re")
    emacs.until_text(HEAD[:-1] + "re\n")

    emacs.press("C-M-i")

    emacs.until_text(HEAD[:-1] + "re" + rest + "\n")
    assert emacs.cursor() == len(HEAD[:-1] + "re" + rest)
    emacs.until(lambda: list(last_outcomes(emacs.folder).values()) == ["accepted"], "the outcome is kept")


def test_what_follows_a_blank_is_completed_too(emacs: Emacs) -> None:
    emacs.script(fill={"x = ": "value_of(x)"})
    opened(emacs, "")
    emacs.type("x = ")
    emacs.until_text("x = ")

    emacs.press("C-M-i")

    emacs.until_text("x = value_of(x)")
    emacs.until(lambda: "accepted" in last_outcomes(emacs.folder).values(), "the outcome is kept")


def test_a_next_edit_is_the_code_action(emacs: Emacs) -> None:
    emacs.script(edit={"print(old)": "print(new)"})
    text = "old = 1\n" + "\n" * 8 + "print(old)\n"
    opened(emacs, text)
    emacs.press("M-d n e w")
    emacs.until_text(text.replace("old = 1", "new = 1"))

    emacs.press("M-x eglot-code-actions RET")
    emacs.until(lambda: emacs.lisp("(and (active-minibuffer-window) t)"), "Emacs asks which action")
    assert emacs.lisp("(with-current-buffer (window-buffer (active-minibuffer-window)) minibuffer-default)") == (
        "Apply predicted edit"
    )
    emacs.press("RET")

    emacs.until_text(text.replace("old", "new"))
    emacs.until(lambda: "accepted" in last_outcomes(emacs.folder).values(), "the outcome is kept")


def test_the_server_learns_each_buffers_language(emacs: Emacs) -> None:
    emacs.script(fill={"alpha ": "beta"})
    languages = {"a.c": "c", "a.py": "python", "a.js": "javascript"}
    for name in languages:
        opened(emacs, "alpha", name)
        emacs.press("C-e SPC")
        emacs.until_text("alpha ")
        emacs.press("C-M-i")
        emacs.until_text("alpha beta")
    emacs.until(lambda: len(last_outcomes(emacs.folder)) == len(languages), "the outcomes are kept")
    assert {each["language"] for each in outcomes(emacs.folder)} == set(languages.values())
