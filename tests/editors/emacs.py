"""A real Emacs in a terminal, whose init file holds what `calomel editor setup emacs` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from tests.editors.shared import RENAME, Agent, here
from tests.editors.terminal import InTerminal
from tests.lsp.program import SCRIPTED

from calomel.cli.editor import emacs

AGENT = Path(__file__).parent / "agent.el"


def snippet(folder: Path, client: str) -> str:
    """What is printed for `lsp-mode` or `eglot`."""
    (found,) = (each.text for each in emacs(here(folder, SCRIPTED)).snippets if client in each.where)
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
