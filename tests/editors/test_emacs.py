"""Emacs with its own client, with lsp-mode, and with lsp-mode's client for Copilot's server, as printed lines say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest
from tests.editors.programs import REPOSITORY, find_emacs, wanted
from tests.editors.shared import FAR, HEAD, RENAME, REST, Agent, here
from tests.editors.terminal import InTerminal
from tests.lsp.program import SCRIPTED

from calomel.cli.editor import emacs

pytestmark = pytest.mark.e2e

EGLOT = "(add-hook 'prog-mode-hook #'eglot-ensure)\n(setq eglot-autoreconnect nil)\n"
# No other server is asked for, none is fetched, and nobody is asked what the project's root is.
LSP_MODE = """
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
SERVED = {
    "eglot": "(and (eglot-managed-p) t)",
    "lsp-mode": "(and (seq-some (lambda (it) (eq 'initialized (lsp--workspace-status it))) (lsp-workspaces)) t)",
}


AGENT = Path(__file__).parent / "agent.el"


def snippet(folder: Path, client: str) -> str:
    """What is printed for `lsp-mode` or `eglot`."""
    (found,) = (each.text for each in emacs(here(folder, SCRIPTED)).snippets if f"with {client}" in each.where)
    return found


class Emacs(InTerminal):
    """One Emacs and, once a file is open, one language server with a model that follows a script.

    Args:
        init: the user's init file.
    """

    def __init__(self, program: Path, folder: Path, init: str) -> None:
        (folder / "init.el").write_text(init, encoding="utf-8")
        self._agent = Agent()
        command: list[str | Path] = [program, "-Q", "-nw", "-l", AGENT, "-l", folder / "init.el"]
        super().__init__(command, folder, TERM="linux", CALOMEL_TEST_SOCKET=str(self._agent.path))

    def __enter__(self) -> Self:
        try:
            self._agent.connect()
        except BaseException:
            # Nobody else would end what was started.
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End both; the server ends with its client."""
        self._agent.close()
        self.terminal.end()

    def lisp(self, form: str) -> Any:
        """What a form returns in the buffer that is shown."""
        return self._agent.ask(form=form)

    def messages(self) -> str:
        """What Emacs told the user."""
        return str(self.lisp('(with-current-buffer "*Messages*" (buffer-string))'))

    def open(self, text: str, name: str = "a.py") -> Path:
        """Edit a file with this text, at its beginning."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        self.press("C-x C-f")
        self.type(f"{path}\n")
        self.until(lambda: self.lisp("buffer-file-name") == str(path), f"{path} is shown")
        return path

    def press(self, keys: str) -> None:
        """Press keys, in Emacs's notation."""
        self.lisp(f"(progn (test-press {json.dumps(keys)}) nil)")

    def type(self, text: str) -> None:
        """Type a text."""
        self.press(" ".join({" ": "SPC", "\n": "RET"}.get(character, character) for character in text))

    def renamed(self, text: str) -> None:
        """Change the first word of the file to `new`, with a model that goes on with that."""
        self.script(edit=RENAME)
        self.press("M-d n e w")
        self.until_text(text.replace("old = 1", "new = 1"))

    def text(self) -> str:
        """The buffer's text."""
        return str(self.lisp("(save-restriction (widen) (buffer-string))"))

    def cursor(self) -> int:
        """The cursor's offset."""
        return int(self.lisp("(1- (point))"))

    def until_text(self, text: str) -> None:
        """Wait for the buffer to hold a text."""
        self.until(lambda: self.text() == text, f"text {text!r}")


Starter = Callable[[str], Emacs]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """An Emacs with `eglot`, `lsp-mode` or `lsp-copilot`."""

    def init(client: str) -> str:
        if client == "eglot":
            return snippet(tmp_path, client) + EGLOT
        if client == "lsp-mode":
            return snippet(tmp_path, client) + LSP_MODE
        page = (REPOSITORY / "docs" / "plugins.md").read_text(encoding="utf-8")
        shown = re.search(r"```elisp\n(;; lsp-copilot.*?)```", page, re.DOTALL)
        assert shown is not None
        program = json.dumps(here(tmp_path, SCRIPTED).program)
        lines = shown[1].replace('"calomel"', program)
        return f"{LSP_MODE}{lines}\n(setq lsp-copilot-auth-check-delay 0.1)\n"

    with ExitStack() as stack:
        yield lambda client: stack.enter_context(
            Emacs(wanted(find_emacs(lsp_mode=client != "eglot")), tmp_path, init(client))
        )


def opened(emacs: Emacs, text: str, name: str = "a.py", client: str = "lsp-mode") -> None:
    emacs.open(text, name)
    emacs.until(lambda: emacs.lisp(SERVED[client]), "the server serves the buffer")


def until_ghost(emacs: Emacs, text: str) -> None:
    emacs.until(lambda: text in (emacs.lisp(GHOST) or ""), f"ghost text {text!r}")


def test_eglot_completes_the_word_begun_and_the_server_learns_it(start: Starter) -> None:
    emacs = start("eglot")
    emacs.script(fill={"def add(a, b):\n    re": REST})
    opened(emacs, HEAD, client="eglot")
    emacs.press("C-n C-e")
    emacs.type("re")
    emacs.until_text(HEAD[:-1] + "re\n")
    with emacs.learns("accepted"):
        emacs.press("C-M-i")
        emacs.until_text(HEAD[:-1] + "re" + REST + "\n")
        assert emacs.cursor() == len(HEAD[:-1] + "re" + REST)


def test_a_next_edit_is_the_code_action_of_eglot(start: Starter) -> None:
    emacs = start("eglot")
    opened(emacs, FAR, client="eglot")
    emacs.renamed(FAR)
    emacs.press("M-x eglot-code-actions RET")
    emacs.until(lambda: emacs.lisp("(and (active-minibuffer-window) t)"), "Emacs asks which action")
    asked = emacs.lisp("(with-current-buffer (window-buffer (active-minibuffer-window)) minibuffer-default)")
    assert asked == "Apply next edit"
    with emacs.learns("accepted"):
        emacs.press("RET")
        emacs.until_text(FAR.replace("old", "new"))


def test_a_repository_configures_eglot_without_a_question_and_the_server_ignores_where_it_would_send_text(
    start: Starter, tmp_path: Path
) -> None:
    hostile = '(:server (:upstream "http://127.0.0.1:9") :privacy (:mask_secrets :json-false :ignore ["!.env"]))'
    values = f"((nil . ((eglot-workspace-configuration . (:calomel {hostile})))))"
    (tmp_path / ".dir-locals.el").write_text(values, encoding="utf-8")
    emacs = start("eglot")
    emacs.script(fill={"def add(a, b):\n    re": REST})
    opened(emacs, HEAD, client="eglot")
    assert emacs.lisp("(and eglot-workspace-configuration t)")
    emacs.until(
        lambda: all(
            f"{name}: " in emacs.messages() for name in ("backend.upstream", "privacy.mask_secrets", "privacy.ignore")
        ),
        "the user is told",
    )
    assert "is ignored here" in emacs.messages()


@pytest.mark.parametrize("key", ["C-<return>", "C-g"])
def test_lsp_mode_shows_ghost_text_that_its_keys_take_or_dismiss(start: Starter, key: str) -> None:
    emacs = start("lsp-mode")
    emacs.script(fill={"def add(a, b):\n    re": REST})
    opened(emacs, HEAD)
    emacs.press("C-n C-e")
    emacs.type("re")
    until_ghost(emacs, REST)
    assert emacs.text() == HEAD[:-1] + "re\n"
    if key == "C-g":
        emacs.press(key)
        emacs.until(lambda: emacs.lisp(GHOST) is None, "no ghost text")
        assert emacs.text() == HEAD[:-1] + "re\n"
        return
    with emacs.learns("accepted"):
        emacs.press(key)
        emacs.until_text(HEAD[:-1] + "re" + REST + "\n")
    assert {each["language"] for each in emacs.records()} == {"python"}


@pytest.mark.parametrize("client", ["lsp-mode", "lsp-copilot"])
def test_a_next_edit_is_a_code_action_that_the_mode_line_tells_of(start: Starter, client: str) -> None:
    emacs = start(client)
    opened(emacs, FAR)
    emacs.renamed(FAR)
    if client == "lsp-mode":
        count = '(string-to-number (or lsp-modeline--code-actions-string ""))'
        emacs.until(lambda: emacs.lisp(count) == 1, "the mode line says it")
    with emacs.learns("accepted"):
        emacs.press("M-x lsp-execute-code-action RET")
        emacs.until_text(FAR.replace("old", "new"))


def test_lsp_copilot_counts_as_signed_in_and_shows_ghost_text_that_its_key_takes(start: Starter) -> None:
    emacs = start("lsp-copilot")
    emacs.script(fill={"'😀', (": "value_of(x))"})
    opened(emacs, "'😀'")
    emacs.press("M-x lsp-copilot-check-status RET")
    emacs.until(lambda: "Authenticated as calomel" in emacs.messages(), "an account that counts")
    # Places are counted in units of UTF-16, of which the character before has two.
    emacs.press("C-e")
    emacs.type(", (")
    until_ghost(emacs, "value_of(x))")
    with emacs.learns("accepted"):
        emacs.press("C-<return>")
        emacs.until_text("'😀', (value_of(x))")
    assert "Could not" not in emacs.messages()
    assert "Proceed now" not in emacs.messages()
