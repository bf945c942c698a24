"""A real Emacs in a terminal, whose init file holds what `calomel editor setup emacs` prints."""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.editors.shared import RENAME, Scripted, here
from tests.editors.terminal import SECONDS, Terminal
from tests.lsp.program import SCRIPTED, environment

from calomel.cli.editor_plans import emacs

AGENT = Path(__file__).parent / "agent.el"


def snippet(folder: Path, client: str, command: Sequence[str] = SCRIPTED) -> str:
    """What is printed for `lsp-mode` or `eglot`."""
    (found,) = (each.text for each in emacs(here(folder, command)).snippets if client in each.where)
    return found


class Emacs(Scripted):
    """One Emacs and, once a file is open, one language server with a model that follows a script.

    Args:
        init: the user's init file.
    """

    def __init__(self, program: Path, folder: Path, init: str, script: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.seconds = SECONDS
        (folder / "init.el").write_text(init, encoding="utf-8")
        # The folder that the server is started for; it reads nothing but the buffers.
        (folder / "calomel.toml").write_text("[workspace]\nindex = false\n", encoding="utf-8")
        self._sockets = tempfile.TemporaryDirectory(prefix="calomel-")
        path = Path(self._sockets.name) / "emacs"
        private = environment(folder, {"fill": None} | (script or {})) | {
            "HOME": str(folder),
            "TERM": "linux",
            "LC_ALL": "C.UTF-8",
            "CALOMEL_TEST_SOCKET": str(path),
        }
        self.terminal = Terminal(
            [program, "-Q", "-nw", "-l", str(AGENT), "-l", str(folder / "init.el")], folder, private
        )
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(SECONDS)
        try:
            self.terminal.until(lambda: self._connects(path), "Emacs listens")
        except BaseException:
            # Nobody else would end what was started.
            self._end()
            raise
        self._lines = self._socket.makefile("rb")

    def _connects(self, path: Path) -> bool:
        try:
            self._socket.connect(str(path))
        except OSError:
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End both; the server ends with its client."""
        self._lines.close()
        self._end()

    def _end(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()
        self.terminal.__exit__()
        self._sockets.cleanup()

    def lisp(self, form: str) -> Any:
        """What a form returns in the buffer that is shown."""
        self._socket.sendall(json.dumps({"form": form}).encode() + b"\n")
        answer = json.loads(self._lines.readline())
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def until(self, condition: Callable[[], Any], what: str | Callable[[], str] = "") -> Any:
        """Wait until something is true, and return it."""
        try:
            return self.terminal.until(condition, what, self.seconds)
        except AssertionError as error:
            told = f"text {self.text()!r}\nasked {self.asked()}\n{self.messages()}"
            raise AssertionError(f"{error}\n{told}") from None

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
