"""A person in each editor, who does what the README says, with the configuration that came of it and no other."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.e2e.first_hour.readme import FirstHour
from tests.editors.neovim.neovim import Neovim
from tests.editors.programs import Programs
from tests.editors.vscode.workbench import START_SECONDS, Workbench

from calomel.cli.editor import settings_of

# More than the README's file has uses of a name.
_MOST_TABS: Final = 8
_TAKEN_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.7
_LOOK_ON_SECONDS: Final = 6.0
_LOOKS: Final = 4
Note = Callable[[str], None]


def visit_neovim(
    program: Path, project: Path, hour: FirstHour, environment: dict[str, str], note: Note, model: str
) -> None:
    """Open the file, change the name, and press Tab until it is done, with this model. Raises AssertionError."""
    (project / hour.file).write_text(hour.text, encoding="utf-8")
    with Neovim(program, project, own=("-i", "NONE"), surroundings=environment) as neovim:
        neovim.seconds = START_SECONDS
        neovim.command(f"edit {hour.file}")
        neovim.until(neovim.is_served, "the model is there")
        assert model in neovim.status(), neovim.status()
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
        neovim.until(lambda: neovim.count("accepted"), "the server knows of it")


class Visited(Workbench):
    """The VS Code of a home folder, as the README's commands left it."""

    def __init__(self, programs: Programs, project: Path, home: Path, environment: dict[str, str]) -> None:
        self.folder = self.files = project
        self.seconds = START_SECONDS
        self._opened, self._name = 0, ""
        self._programs = programs
        # The workbench's own Node, which a VS Code that is no test's has inside.
        self._environment = environment | {"PATH": f"{programs.node.parent}{os.pathsep}{environment['PATH']}"}
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
        self._start()

    def set(self, settings: dict[str, Any]) -> None:
        """Change settings of the user, beside those that are there; code-server has the machine's, too."""
        path = self.data / "User" / "settings.json"
        known = settings_of(path) or {}
        text = json.dumps({**known, **settings}, indent=2)
        for part in ("User", "Machine"):
            (self.data / part).mkdir(parents=True, exist_ok=True)
            (self.data / part / "settings.json").write_text(text, encoding="utf-8")


def _rests(workbench: Workbench) -> bool:
    """A next edit is shown, and stays for as long as a person needs to press a key."""
    if workbench.ghost():
        # Text at the cursor comes first; an edit is asked for where the cursor goes next.
        workbench.press("Escape", "ArrowDown")
    seen = workbench.decorations()
    time.sleep(_LOOK_SECONDS)
    return bool(seen) and seen == workbench.decorations()


def _offered(workbench: Workbench) -> bool:
    """Whether a next edit is shown; a person to whom nothing is offered looks at the next line."""
    for _ in range(_LOOKS):
        until = time.monotonic() + _LOOK_ON_SECONDS
        while time.monotonic() < until:
            if _rests(workbench):
                return True
        workbench.press("ArrowDown")
    return False


def visit_vscode(
    programs: Programs, project: Path, home: Path, hour: FirstHour, environment: dict[str, str], note: Note, model: str
) -> None:
    """Open the file, change the name, and press Tab until it is done, with this model. Raises AssertionError."""
    with Visited(programs, project, home, environment) as workbench:
        workbench.until(lambda: workbench.status()[0] == "Calomel", "the model is there")
        assert model in workbench.status()[1], workbench.status()
        workbench.open(hour.text, hour.file)
        note("the editor has the file, and the model is loaded")
        column = hour.text.index(hour.old) + 1
        workbench.go(1, column)
        workbench.press("Control+Shift+ArrowRight")
        workbench.type(hour.new)
        workbench.until_saved(hour.typed)
        accepted = 0
        while workbench.saved() != hour.done and accepted < _MOST_TABS:
            before = workbench.saved()
            if not _offered(workbench):
                break
            workbench.press("Tab")
            until = time.monotonic() + _TAKEN_SECONDS
            while workbench.saved() == before and time.monotonic() < until:
                time.sleep(0.05)
            if workbench.saved() not in {before, hour.typed}:
                accepted += 1
                note("a next edit is accepted")
        # What is taken is what was asked for, and nothing else.
        assert accepted, f"no next edit was offered\n{workbench.report()}"
        assert workbench.saved().replace(hour.old, hour.new) == hour.done, workbench.saved()
        if workbench.saved() != hour.done:
            note("no further one was offered")
