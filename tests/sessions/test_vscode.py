"""The scenarios in a real VS Code, with the language server, the engine and the shipped model: one window for all."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.editors.conftest import programs as programs  # noqa: PLC0414 (fixtures that come with the workbench)
from tests.editors.conftest import vsix as vsix  # noqa: PLC0414
from tests.editors.shared import no_server_stays
from tests.editors.vscode.workbench import START_SECONDS, Workbench
from tests.lsp.program import REAL
from tests.sessions.conftest import count
from tests.sessions.scenario import Player, Scenario, Step, added, cases

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# Nobody tells that no answer will come; the shipped model answers in a third of a second where nobody else computes.
_OFFER_SECONDS = 4.0
_TAKEN_SECONDS = 4.0
_MOVE_SECONDS = 0.3
_POLL_SECONDS = 0.05


@pytest.fixture(scope="module")
def real(programs: Any, vsix: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """One VS Code and one engine; each scenario has a language server of its own, which knows of no other."""
    folder = tmp_path_factory.mktemp("sessions-vscode")
    with Workbench(programs, vsix, folder, command=REAL) as workbench, no_server_stays(folder):
        workbench.seconds = START_SECONDS
        workbench.until_status("Calomel")
        yield workbench


class WorkbenchPlayer(Player):
    def __init__(self, workbench: Workbench, scenario: Scenario) -> None:
        # Of a next edit the screen shows pieces: which lines it puts in is known once it is taken.
        takes = any(step.name == "follow" for step in scenario.steps)
        super().__init__(scenario if takes else replace(scenario, must=()))
        self._workbench = workbench
        workbench.command("Calomel: Restart")
        workbench.until_status("Calomel")
        workbench.open(scenario.before, f"{scenario.name}.{scenario.file}")

    def end(self) -> str:
        self._wait(lambda: self.scenario.after in {None, self._workbench.saved()})
        return self._workbench.saved()

    def look(self) -> None:
        self._edit_comes(0.0)

    def offer(self) -> Any:
        return (self._workbench.shown(), self._workbench.struck()) if self._edit_comes() else None

    def take(self) -> bool | None:
        if not self._edit_comes():
            return None
        before = self._saved()
        if self._is_elsewhere():
            self._press("Alt+l")
            self._wait(lambda: not self._is_elsewhere())
        self._press("Alt+l")
        self._wait(lambda: self._workbench.saved() != before)
        after = self._saved()
        if after != before:
            self.verdict.add(self.scenario, added(before, after))
        return after != before

    def _edit_comes(self, seconds: float = _OFFER_SECONDS) -> bool:
        """Whether a next edit is shown, or comes within this time. Text at the cursor is judged, and taken away."""
        deadline = time.monotonic() + seconds
        while not self._workbench.decorations():
            if self._workbench.ghost():
                known = self._workbench.saved()
                self.verdict.add(self.scenario, added(known, "\n".join(self._workbench.lines() or [])), ghost=True)
                if seconds:
                    # The next edit is asked for where the cursor goes; Escape would reject one that comes meanwhile.
                    self._press("ArrowDown" if deadline - time.monotonic() > seconds / 2 else "ArrowUp")
                    time.sleep(_MOVE_SECONDS)
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _is_elsewhere(self) -> bool:
        return any("edit on line" in each for each in self._workbench.shown("hint"))

    def _saved(self) -> str:
        """The file's text once it is what was typed: it is saved a moment behind the last key."""
        text = ""
        while text != (text := self._workbench.saved()):
            time.sleep(_MOVE_SECONDS)
        return text

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _TAKEN_SECONDS
        while not condition() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def _press(self, *keys: str) -> None:
        self._workbench.press(*keys)

    def _cursor(self, line: int, front: str = "") -> None:
        """Behind the beginning of a line, which counts from 1."""
        self._workbench.go(line)
        # Columns of that box are those of the screen, where a tab has several.
        self._press(*["ArrowRight"] * len(front))

    def _line(self, step: Step) -> str:
        return self._saved().splitlines()[step.line - 1]

    # The steps.

    def do_replace(self, step: Step) -> None:
        old = step.words[1]
        line = self._line(step)
        self._cursor(step.line, line[: line.index(old)])
        self._press(*["Shift+ArrowRight"] * len(old))
        if step.text:
            self._workbench.type(step.text)
        else:
            self._press("Delete")

    def do_behind(self, step: Step) -> None:
        line = self._line(step)
        self._cursor(step.line, line[: line.index(step.text)] + step.text)

    def do_open(self, step: Step) -> None:
        self._cursor(step.line)
        self._press("End", "Enter")

    def do_type(self, step: Step) -> None:
        for piece in re.findall(r"\t|[^\t]+", step.text):
            if piece == "\t":
                self._press("Tab")
            else:
                self._workbench.type(piece)

    def do_paste(self, step: Step) -> None:
        self._workbench.ask("insert", text=step.text)

    def do_delete(self, step: Step) -> None:
        self._cursor(step.line)
        self._press("Control+Shift+k")

    def do_comment(self, step: Step) -> None:
        self._cursor(step.line)
        self._press("Control+/")

    def do_leave(self, _: Step) -> None:
        self._press("Home")

    def do_undo(self, _: Step) -> None:
        self._press("Control+z")

    def do_redo(self, _: Step) -> None:
        self._press("Control+Shift+z")

    def do_jump(self, _: Step) -> None:
        self._edit_comes()
        self._press("Alt+l")
        time.sleep(_MOVE_SECONDS)

    def do_vscode(self, step: Step) -> None:
        self._press(*step.text.split(" "))


@pytest.mark.parametrize("scenario", cases("vscode"))
def test_a_session_is_offered_what_it_must_be_and_nothing_that_it_must_not(
    real: Workbench, scenario: Scenario, request: pytest.FixtureRequest
) -> None:
    try:
        verdict = WorkbenchPlayer(real, scenario).play()
        count(request.config, "vscode", verdict)
        assert verdict.wrong == [], f"{verdict.wrong}\n{real.status()}"
    finally:
        real.press("Escape", "Escape")
        real.close_all()
