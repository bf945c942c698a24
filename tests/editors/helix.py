"""A real Helix in a terminal, whose languages.toml is what `calomel editor setup helix` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.editors.shared import Scripted, here
from tests.editors.terminal import SECONDS, Terminal
from tests.lsp.program import SCRIPTED, environment

from calomel.cli.editor_plans import helix

# What is asked for comes at once.
_CONFIG = "[editor]\nidle-timeout = 50\ncompletion-timeout = 5\n"
ESCAPE = "\x1b"


class Helix(Scripted):
    """One Helix with one file, and one language server with a model that follows a script."""

    def __init__(
        self, program: Path, folder: Path, text: str, name: str = "a.py", command: Sequence[str] = SCRIPTED
    ) -> None:
        self.folder = folder
        self.seconds = SECONDS
        self.file = folder / name
        self.file.write_text(text, encoding="utf-8")
        # The folder that the server is started for; it reads nothing but the buffers.
        (folder / "calomel.toml").write_text("[workspace]\nindex = false\n", encoding="utf-8")
        (snippet,) = helix(here(folder, command)).snippets
        settings = folder / "xdg_config_home" / "helix"
        assert snippet.where == f"in {settings / 'languages.toml'}"
        settings.mkdir(parents=True)
        (settings / "languages.toml").write_text(snippet.text, encoding="utf-8")
        (settings / "config.toml").write_text(_CONFIG, encoding="utf-8")
        private = environment(folder, {"fill": None}) | {
            "HOME": str(folder),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }
        command_line = [program, "--working-dir", folder, self.file]
        self.terminal = Terminal([str(each) for each in command_line], folder, private)

    def __enter__(self) -> Self:
        """Wait until it shows the file and has its server, as a person does."""
        try:
            self.until_shown(self.file.name)
            self.until(self.is_ready, "the server is ready")
        except BaseException:
            # Nobody else would end what was started.
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End both; the server ends with its client."""
        self.terminal.__exit__()

    def press(self, keys: str) -> None:
        """Press keys."""
        self.terminal.write(keys)

    def until(self, condition: Callable[[], Any], what: str | Callable[[], str] = "") -> Any:
        """Wait until something is true, and return it."""
        return self.terminal.until(condition, what, self.seconds)

    def until_shown(self, text: str) -> None:
        """Wait for a text on the screen."""
        self.until(lambda: any(text in line for line in self.terminal.lines()), f"{text!r} on the screen")

    def saved(self) -> str:
        """The buffer's text, which is saved for that."""
        if any(" INS " in line for line in self.terminal.lines()):
            self.press(ESCAPE)
            # With the key after it, it would be another key.
            self.until_shown(" NOR ")
        self.press(":w\r")
        self.until_shown("written,")
        return self.file.read_text(encoding="utf-8")
