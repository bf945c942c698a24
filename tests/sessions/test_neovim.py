"""The scenarios in a real Neovim, with the language server, the engine and the shipped model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.neovim.program import find_neovim
from tests.editors.neovim.test_model import end_model_servers
from tests.lsp.program import REAL
from tests.sessions.conftest import count
from tests.sessions.scenario import Scenario, Step, Verdict, scenarios

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

_MOST_TAKEN = 16
_LANGUAGES = {"py": "python", "js": "javascript", "ts": "typescript", "rs": "rust", "env": "sh", "h": "c"}

_OFFER = """
local state = require("calomel.buffer").state(0)
local s = state and state.shown
if not s then
    return vim.NIL
elseif s.ghost then
    return { s.id, s.kind, vim.split(s.before .. s.text .. s.behind, "\\n") }
end
local lines = {}
for _, hunk in ipairs(s.hunks) do
    vim.list_extend(lines, hunk.lines)
end
return { s.id, s.kind, lines }
"""

_END = """
vim.cmd("silent! %bwipeout!")
for _, client in ipairs(require("calomel.server").clients()) do
    client:stop(true)
end
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    """One Neovim and one engine for all; each scenario has a language server of its own, which knows of no other."""
    program, reason = find_neovim()
    if program is None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("sessions")
    with Neovim(program, folder) as neovim:
        neovim.seconds = 120.0
        neovim.setup(command=REAL, server={"workspace": {"index": True}, "server": {"idle_minutes": 5.0}})
        try:
            yield neovim
        finally:
            end_model_servers(folder / "runtime")


class Player:
    """Plays one scenario, and looks at what is offered whenever the editor is at rest."""

    def __init__(self, neovim: Neovim, scenario: Scenario, folder: Path) -> None:
        self._neovim, self._scenario = neovim, scenario
        self._verdict = Verdict()
        self._seen: set[str] = set()
        folder.mkdir()
        (folder / "calomel.toml").touch()
        neovim.files = folder
        kind = scenario.file.rpartition(".")[2]
        excluded = scenario.file.startswith(".env")
        self._path = neovim.open(
            scenario.before.encode(), scenario.file, _LANGUAGES.get(kind, kind), served=not excluded
        )
        indent = "noexpandtab" if kind == "go" else "expandtab"
        neovim.command(f"setlocal noautoindent {indent} shiftwidth=4 softtabstop=4 commentstring=#\\ %s")

    def play(self) -> Verdict:
        for step in self._scenario.steps:
            getattr(self, f"do_{step.name}")(step)
            self._look()
        self._keys("<Esc>")
        ends = "\r\n" if self._neovim.lua("return vim.bo.fileformat") == "dos" else "\n"
        self._verdict.close(self._scenario, "".join(line + ends for line in self._neovim.text().split("\n")))
        return self._verdict

    def _look(self) -> Any:
        """What is offered once nothing is asked any more: name, kind, and the lines that it puts in; or None."""
        self._neovim.settle()
        found = self._neovim.lua(_OFFER)
        if found is not None and f"{found}" not in self._seen:
            self._seen.add(f"{found}")
            known = set(map(str.strip, self._neovim.text().split("\n")))
            self._verdict.add(
                self._scenario, [line for line in found[2] if line.strip() not in known], ghost=found[1] == "fill"
            )
        return found

    def _keys(self, keys: str) -> None:
        self._neovim.type(keys)

    def _normal(self) -> None:
        if self._neovim.mode() != "n":
            self._keys("<Esc>")

    def _line(self, step: Step) -> str:
        return self._neovim.text().split("\n")[step.line - 1]

    def _cursor(self, line: int, column: int) -> None:
        self._normal()
        self._neovim.command(f"call cursor({line}, {column + 1})")

    # The steps.

    def do_replace(self, step: Step) -> None:
        old = step.words[1]
        line = self._line(step)
        self._cursor(step.line, len(line[: line.index(old)].encode()))
        self._keys(f"c{len(old)}l{_typed(step.text)}<Esc>")

    def do_behind(self, step: Step) -> None:
        line = self._line(step)
        front = line[: line.index(step.text) + len(step.text)]
        self._cursor(step.line, len(front.encode()))
        self._keys("A" if front == line else "i")

    def do_open(self, step: Step) -> None:
        self._cursor(step.line, 0)
        self._keys("o")

    def do_type(self, step: Step) -> None:
        for piece in re.findall(r"\w+\W*|\W+", step.text):
            self._keys(_typed(piece))
            self._look()

    def do_paste(self, step: Step) -> None:
        self._neovim.lua("vim.api.nvim_paste(..., false, -1)", step.text)

    def do_delete(self, step: Step) -> None:
        self._cursor(step.line, 0)
        self._keys("dd")

    def do_comment(self, step: Step) -> None:
        self._cursor(step.line, 0)
        self._keys("gcc")

    def do_leave(self, _: Step) -> None:
        self._normal()

    def do_undo(self, _: Step) -> None:
        self._normal()
        self._keys("u")

    def do_redo(self, _: Step) -> None:
        self._normal()
        self._keys("<C-r>")

    def do_reload(self, _: Step) -> None:
        self._normal()
        self._neovim.command("edit!")

    def do_checkout(self, step: Step) -> None:
        self._path.write_bytes(self._scenario.before.encode())
        self.do_reload(step)

    def do_neovim(self, step: Step) -> None:
        self._keys(step.text)

    def do_vscode(self, _: Step) -> None:
        pass

    def do_jump(self, _: Step) -> None:
        self._keys("<M-l>")

    def do_silent(self, step: Step) -> None:
        found = self._look()
        if found is not None:
            self._verdict.wrong.append(f"not silent at step {self._scenario.steps.index(step) + 1}: {found[2]}")

    def do_follow(self, _: Step) -> None:
        self._normal()
        for _again in range(_MOST_TAKEN):
            if self._look() is None:
                return
            before = self._neovim.text()
            self._keys("<M-l>")
            if self._neovim.text() == before:
                self._keys("<M-l>")
            if self._neovim.text() == before:
                self._verdict.wrong.append("an offer could not be taken")
                return
        self._verdict.wrong.append("there was no end")


def _typed(text: str) -> str:
    return text.replace("<", "<lt>").replace("\n", "<CR>").replace("\t", "<Tab>")


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(
            each,
            id=each.name,
            marks=[pytest.mark.xfail(reason=each.fails)] if each.fails else [],
        )
        for each in scenarios("neovim")
    ],
)
def test_a_session_is_offered_what_it_must_be_and_nothing_that_it_must_not(
    real: Neovim, scenario: Scenario, request: pytest.FixtureRequest
) -> None:
    try:
        verdict = Player(real, scenario, real.folder / scenario.name).play()
        count(request.config, "neovim", verdict)
        assert verdict.wrong == [], f"{verdict.wrong}\n{real.status()}"
    finally:
        real.type("<C-\\><C-n>")
        real.lua(_END)
