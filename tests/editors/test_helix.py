"""Helix: what is suggested comes as a completion, next edits as a code action."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import pytest
from tests.editors.programs import find_helix, wanted
from tests.editors.shared import FAR, HEAD, RENAME, REST, here
from tests.editors.terminal import InTerminal
from tests.lsp.program import SCRIPTED

from calomel.cli.editor import helix

pytestmark = pytest.mark.e2e


# What is asked for comes at once.
_CONFIG = "[editor]\nidle-timeout = 50\ncompletion-timeout = 5\n"
ESCAPE = "\x1b"


class Helix(InTerminal):
    """One Helix with one file, and one language server with a model that follows a script."""

    def __init__(self, program: Path, folder: Path, text: str) -> None:
        self.file = folder / "a.py"
        self.file.write_text(text, encoding="utf-8")
        (snippet,) = helix(here(folder, SCRIPTED)).snippets
        settings = folder / "xdg_config_home" / "helix"
        assert snippet.where == f"in {settings / 'languages.toml'}"
        settings.mkdir(parents=True)
        (settings / "languages.toml").write_text(snippet.text, encoding="utf-8")
        (settings / "config.toml").write_text(_CONFIG, encoding="utf-8")
        super().__init__([program, "--working-dir", folder, self.file], folder, TERM="xterm-256color")

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
        self.terminal.end()

    def press(self, keys: str) -> None:
        """Press keys."""
        self.terminal.write(keys)

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


def test_a_completion_is_shown_and_taken_and_the_server_learns_it(tmp_path: Path) -> None:
    with Helix(wanted(find_helix()), tmp_path, HEAD) as helix:
        helix.script(fill={"def add(a, b):\n    re": REST})
        helix.press("jAre")
        # The menu: its label, and the kind of completion.
        helix.until_shown("return a + b text")
        with helix.learns("accepted"):
            helix.press("\t")
            helix.until_shown("Calomel")
            helix.press("\r")
            assert helix.saved() == HEAD[:-1] + "re" + REST + "\n"
        assert {each["language"] for each in helix.records()} == {"python"}


def test_a_next_edit_is_the_code_action(tmp_path: Path) -> None:
    with Helix(wanted(find_helix()), tmp_path, FAR) as helix:
        helix.script(edit=RENAME)
        helix.press(f"ecnew{ESCAPE}")
        helix.until_shown("new = 1")
        helix.until_shown("NOR")
        helix.press(" a")
        helix.until_shown("Apply next edit")
        with helix.learns("accepted"):
            # The first of the menu has to be chosen first.
            helix.press("\t\r")
            helix.until_shown("print(new)")
            assert helix.saved() == FAR.replace("old", "new")
