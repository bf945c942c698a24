"""A person in each editor, who does what the README says, with the configuration that came of it and no other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.e2e.first_hour.readme import FirstHour
from tests.editors.neovim.neovim import Neovim
from tests.editors.vscode.program import Programs
from tests.editors.vscode.workbench import START_SECONDS, Workbench

from calomel.cli.checks import jsonc

# More than the README's file has uses of a name.
_MOST_TABS: Final = 8
_TAKEN_SECONDS: Final = 20.0
Note = Callable[[str], None]


def visit_neovim(program: Path, project: Path, hour: FirstHour, environment: dict[str, str], note: Note) -> None:
    """Open the file, change the name, and press Tab until it is done. Raises AssertionError."""
    (project / hour.file).write_text(hour.text, encoding="utf-8")
    with Neovim(program, project, own=("-i", "NONE"), surroundings=environment) as neovim:
        neovim.seconds = START_SECONDS
        neovim.command(f"edit {hour.file}")
        neovim.until(neovim.is_served, "the model is there")
        note("the editor has the file, and the model is loaded")
        neovim.type(f"/{hour.old}<CR>cw{hour.new}<Esc>")
        assert neovim.text() == hour.typed.rstrip("\n")
        for _ in range(_MOST_TABS):
            before = neovim.text()
            neovim.until(neovim.marks, "a next edit is shown")
            neovim.type("<Tab>")
            until = time.monotonic() + _TAKEN_SECONDS
            while neovim.text() == before and not neovim.marks() and time.monotonic() < until:
                time.sleep(0.05)
            if neovim.text() != hour.typed.rstrip("\n"):
                note("a next edit is accepted")
            if neovim.text() == hour.done.rstrip("\n"):
                break
        neovim.until_text(hour.done.rstrip("\n"))
        neovim.until(lambda: neovim.outcomes().get("accepted"), "the server knows of it")


class Visited(Workbench):
    """The VS Code of a home folder, as the README's commands left it."""

    def __init__(self, programs: Programs, project: Path, home: Path, environment: dict[str, str]) -> None:
        self.folder = self.files = project
        self.seconds = START_SECONDS
        self._opened, self._name = 0, ""
        self._programs = programs
        self._environment = environment
        self.data, self.extensions = home / ".config" / "Code", home / ".vscode" / "extensions"
        # What a person would click away, and saving, so that the text can be looked at.
        self.set(
            {
                "workbench.startupEditor": "none",
                "security.workspace.trust.enabled": False,
                "chat.disableAIFeatures": True,
                "workbench.secondarySideBar.defaultVisibility": "hidden",
                "files.autoSave": "afterDelay",
                "files.autoSaveDelay": 50,
            }
        )
        self._log = (home / "workbench.log").open("wb")
        self._trusted = True
        self._start()

    def set(self, settings: dict[str, Any]) -> None:
        """Change settings of the user, beside those that are there; code-server has the machine's, too."""
        path = self.data / "User" / "settings.json"
        known = jsonc.loads(path.read_text(encoding="utf-8"))
        text = json.dumps({**known, **settings}, indent=2)
        for part in ("User", "Machine"):
            (self.data / part).mkdir(parents=True, exist_ok=True)
            (self.data / part / "settings.json").write_text(text, encoding="utf-8")


def visit_vscode(
    programs: Programs, project: Path, home: Path, hour: FirstHour, environment: dict[str, str], note: Note
) -> None:
    """Open the file, change the name, and press Tab until it is done. Raises AssertionError."""
    with Visited(programs, project, home, environment) as workbench:
        workbench.until(lambda: workbench.status()[0] == "Calomel", "the model is there")
        workbench.open(hour.text, hour.file)
        note("the editor has the file, and the model is loaded")
        column = hour.text.index(hour.old) + 1
        workbench.go(1, column)
        workbench.press("Control+Shift+ArrowRight")
        workbench.type(hour.new)
        for _ in range(_MOST_TABS):
            before = workbench.saved()
            workbench.until(lambda: workbench.decorations() or workbench.ghost(), "a next edit is shown")
            workbench.press("Tab")
            until = time.monotonic() + _TAKEN_SECONDS
            while workbench.saved() == before and time.monotonic() < until:
                time.sleep(0.05)
            if workbench.saved() not in {before, hour.typed}:
                note("a next edit is accepted")
            if workbench.saved() == hour.done:
                break
        workbench.until_saved(hour.done)
