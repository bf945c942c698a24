"""The scenarios in a real Neovim, with the language server, the engine and the shipped model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.programs import find_neovim, wanted
from tests.editors.shared import no_server_stays
from tests.lsp.program import REAL
from tests.sessions.conftest import count
from tests.sessions.scenario import Player, Scenario, Step, cases

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

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
    folder = tmp_path_factory.mktemp("sessions")
    with Neovim(wanted(find_neovim()), folder) as neovim, no_server_stays(folder):
        neovim.seconds = 120.0
        neovim.setup(command=REAL, server={"workspace": {"index": True}, "backend": {"idle_minutes": 5.0}})
        yield neovim


class NeovimPlayer(Player):
    def __init__(self, neovim: Neovim, scenario: Scenario, folder: Path) -> None:
        super().__init__(scenario)
        self._neovim = neovim
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

    def end(self) -> str:
        self._keys("<Esc>")
        ends = "\r\n" if self._neovim.lua("return vim.bo.fileformat") == "dos" else "\n"
        return "".join(line + ends for line in self._neovim.text().split("\n"))

    def look(self) -> None:
        self.offer()

    def offer(self) -> Any:
        """What is offered once nothing is asked any more: name, kind, and the lines that it puts in; or None."""
        self._neovim.settle()
        found = self._neovim.lua(_OFFER)
        if found is not None and f"{found}" not in self._seen:
            self._seen.add(f"{found}")
            known = set(map(str.strip, self._neovim.text().split("\n")))
            added = [line for line in found[2] if line.strip() not in known]
            self.verdict.add(self.scenario, added, ghost=found[1] == "fill")
        return found

    def take(self) -> bool | None:
        self._normal()
        if self.offer() is None:
            return None
        before = self._neovim.text()
        self._keys("<M-l>")
        if self._neovim.text() == before:
            self._keys("<M-l>")
        return self._neovim.text() != before

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
            self.look()

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
        self._path.write_bytes(self.scenario.before.encode())
        self.do_reload(step)

    def do_neovim(self, step: Step) -> None:
        self._keys(step.text)

    def do_jump(self, _: Step) -> None:
        self._keys("<M-l>")


def _typed(text: str) -> str:
    return text.replace("<", "<lt>").replace("\n", "<CR>").replace("\t", "<Tab>")


@pytest.mark.parametrize("scenario", cases("neovim"))
def test_a_session_is_offered_what_it_must_be_and_nothing_that_it_must_not(
    real: Neovim, scenario: Scenario, request: pytest.FixtureRequest
) -> None:
    try:
        verdict = NeovimPlayer(real, scenario, real.folder / scenario.name).play()
        count(request.config, "neovim", verdict)
        assert verdict.wrong == [], f"{verdict.wrong}\n{real.status()}"
    finally:
        real.type("<C-\\><C-n>")
        real.lua(_END)
