"""A real Neovim with the plugin, driven as a person would: keys go in, and what stands on the screen is looked at."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.editors.programs import REPOSITORY
from tests.editors.shared import RENAME, SECONDS, Agent, Scripted
from tests.lsp.program import SCRIPTED, environment

PLUGIN = REPOSITORY / "editors" / "neovim"
AGENT = Path(__file__).parent / "agent.lua"

# The server waits for no pause in the typing, reads nothing but the buffers, and shows its text when asked.
OPTIONS = {"debug": True, "suggest": {"debounce_seconds": 0.0}, "workspace": {"index": False}}

_MARKS = """
local found = {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, require("calomel.render").ns, 0, -1, { details = true })) do
    local details = mark[4]
    details.row, details.col = mark[2], mark[3]
    found[#found + 1] = details
end
return found
"""

_SETUP = """
local rtp, options = ...
vim.opt.runtimepath:prepend(rtp)
vim.cmd.runtime("plugin/calomel.lua")
_G.messages = {}
vim.notify = function(message) table.insert(_G.messages, message) end
require("calomel").setup(options)
"""

_CLEAN_UP = """
vim.cmd("silent! only | silent! %bwipeout!")
_G.messages = {}
local server = require("calomel.server")
for _, client in ipairs(server.clients()) do
    server.execute_sync(client, "toggle", { { scope = "global", enabled = true } })
    server.execute_sync(client, "snooze", { 0 })
end
"""

_OPEN = """
local path, filetype = ...
vim.cmd.edit(vim.fn.fnameescape(path))
vim.bo.filetype = filetype
"""


class Neovim(Scripted):
    """One Neovim and, once a file is open, one language server with a model that follows a script."""

    poll = 0.004

    def __init__(
        self,
        program: Path,
        folder: Path,
        *,
        own: Sequence[str] = ("-u", "NONE", "-i", "NONE", "-n"),
        surroundings: dict[str, str] | None = None,
    ) -> None:
        """`own` says which configuration it reads, `surroundings` replaces the environment of a test."""
        self.folder = folder
        self.files = folder
        self.plugin = str(PLUGIN)
        self.seconds = SECONDS
        self._environment = surroundings or environment(folder, {"fill": None})
        self._agent = Agent()
        self._errors = (folder / "nvim.log").open("wb")
        self.process = subprocess.Popen(
            [program, "--headless", *own, "-S", str(AGENT)],
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            env=self._environment
            | {"CALOMEL_TEST_SOCKET": str(self._agent.path), "NVIM_LOG_FILE": os.devnull, "LC_ALL": "C.UTF-8"},
            cwd=folder,
        )
        self._agent.connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End both; the server ends with its client."""
        self._agent.hang_up()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._agent.close()
        self._errors.close()

    def lua(self, code: str, *arguments: Any) -> Any:
        """What the Lua chunk returns."""
        return self._agent.ask(lua=code, arguments=arguments)

    def report(self) -> str:
        """What a person would look at first when a test fails."""
        state = self.lua("return { require('calomel.buffer').describe(0), vim.api.nvim_get_mode() }")
        asked = [each.get("kind") for each in self.asked()]
        status = self.status()
        return (
            f"{status}\ntext {self.text()!r} cursor {self.cursor()} ghost {self.ghost()!r} {state} asked {asked[-5:]}"
        )

    # The plugin and its server.

    def setup(self, command: Sequence[str] = SCRIPTED, server: dict[str, Any] | None = None, **options: Any) -> None:
        """Load the plugin, and set it up with our scripted server."""
        settings = {**OPTIONS, **(server or {})}
        self.lua(_SETUP, str(PLUGIN), {"cmd": list(command), "settings": settings, **options})

    def clean_up(self) -> None:
        """Close everything, and have suggestions on."""
        self.type("<C-\\><C-n>")
        self.lua(_CLEAN_UP)
        message = self.lua("local message = vim.v.errmsg; vim.v.errmsg = ''; return message")
        assert message == "", message

    def widen(self) -> None:
        """Leave room for whole messages."""
        self.lua("vim.o.columns = 400")

    def messages(self) -> list[str]:
        """What the plugin told the user."""
        return list(self.lua("return _G.messages"))

    def open(self, text: str | bytes, name: str = "a.py", filetype: str = "python", *, served: bool = True) -> Path:
        """Edit a file with this text, in Normal mode at its beginning."""
        path = self.files / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        self.lua(_OPEN, str(path), filetype)
        if served:
            self.until(self.is_served, "the server serves the buffer")
        return path

    def is_served(self) -> bool:
        """The buffer has a server that is ready."""
        return bool(
            self.lua("""
            local client = require("calomel.server").client(0)
            local state = client and require("calomel.server").states[client.id]
            return state ~= nil and state.state == "ready" and require("calomel.buffer").describe(0).attached
            """)
        )

    def server_text(self) -> str:
        """The buffer's text as the server has it, once it knows of everything."""
        code = """
        local client = assert(require("calomel.server").client(0))
        local answer = client:request_sync("calomel/debug/document", { uri = vim.uri_from_bufnr(0) }, 5000)
        return answer.result.text
        """
        return str(self.lua(code))

    def status(self) -> str:
        """What `:Calomel status` says."""
        return str(self.lua("return vim.api.nvim_exec2('Calomel status', { output = true }).output"))

    def count(self, outcome: str) -> int:
        """How many suggestions had this outcome, or how many silences this reason, as the server counts them."""
        code = """
        local server = require("calomel.server")
        local status, name = server.execute_sync(server.client(0), "status", {}), ...
        return status.outcomes[name] or status.silences[name] or 0
        """
        return int(self.lua(code, outcome))

    # Hands.

    def type(self, keys: str) -> None:
        """Press keys, in Neovim's notation; returns when they were read."""
        rest = keys.encode()
        while rest:
            taken = self.lua("return vim.api.nvim_input(...)", rest.decode())
            rest = rest[taken:]
        self.until(self._is_idle, "the keys were read")

    def _is_idle(self) -> bool:
        # Neovim runs what it is asked over the socket only where it would wait for a key.
        return not self.lua("return vim.api.nvim_get_mode().blocking or vim.fn.getchar(1) ~= 0")

    def health(self) -> str:
        """The report of `:checkhealth`."""
        self.command("checkhealth calomel")
        self.until(lambda: "calomel" in self.text(), "a report")
        return self.text()

    def settle(self) -> None:
        """Wait until no question is open or about to be asked."""
        self.until(lambda: not self.lua("return require('calomel.buffer').describe(0).asking"), "quiet")

    def command(self, command: str) -> None:
        """Run an Ex command."""
        self.lua("vim.cmd(...)", command)

    def offered(
        self, ghost: str = "value_of(x)", text: str = "\n", keys: str = "ix = ", options: str = "", **script: Any
    ) -> None:
        """Press keys in a file with this text, until ghost text is there: behind `x = ` and `re`, or as scripted."""
        self.script(**({"fill": {"x = ": ghost, "    re": ghost}} | script))
        self.open(text)
        if options:
            self.command(f"setlocal {options}")
        self.type(keys)
        self.until_ghost(ghost)

    def edited(self, text: str, keys: str = "cwnew<Esc>", options: str = "", **edit: str) -> None:
        """Press keys in a file with this text, until a next edit is shown."""
        self.script(edit=edit or RENAME)
        self.open(text)
        if options:
            self.command(f"setlocal {options}")
        self.type(keys)
        self.until(self.marks, "a next edit is shown")
        self.settle()

    # Eyes.

    def text(self) -> str:
        """The buffer's lines."""
        return "\n".join(self.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))

    def cursor(self) -> tuple[int, int]:
        """Row and byte column, both from 0."""
        row, column = self.lua("return vim.api.nvim_win_get_cursor(0)")
        return row - 1, column

    def mode(self) -> str:
        """Neovim's name of the mode."""
        return str(self.lua("return vim.api.nvim_get_mode().mode"))

    def marks(self) -> list[dict[str, Any]]:
        """What the plugin shows, in order."""
        return list(self.lua(_MARKS))

    def screen(self, row: int) -> str:
        """A line of the screen, without blanks at its end."""
        code = """
        vim.cmd.redraw()
        local row, cells = ..., {}
        for column = 1, vim.o.columns do
            cells[column] = vim.fn.screenstring(row + 1, column)
        end
        return table.concat(cells)
        """
        return str(self.lua(code, row)).rstrip()

    def ghost(self) -> str:
        """The text that is shown as an insertion, lines joined; empty when there is none."""
        lines: list[str] = []
        for mark in self.marks():
            inserted = [piece for piece, group in _pieces(mark.get("virt_text")) if group in _INSERTIONS]
            below = [
                "".join(p for p, group in _pieces(row) if group in _INSERTIONS) for row in mark.get("virt_lines", [])
            ]
            if inserted:
                lines.append("".join(inserted))
            lines += below
        return "\n".join(lines)

    def struck(self) -> list[str]:
        """The pieces of text that are struck out."""
        lines = self.text().split("\n")
        rows = [(mark, lines[mark["row"]].encode()) for mark in self.marks() if mark.get("hl_group") == "CalomelDelete"]
        return [line[mark["col"] : mark["end_col"]].decode() for mark, line in rows]

    def hint(self) -> str:
        """What is said at the end of a line about the key."""
        return "".join(
            piece for mark in self.marks() for piece, group in _pieces(mark.get("virt_text")) if group == "CalomelHint"
        ).strip()

    def until_ghost(self, text: str) -> None:
        """Wait for ghost text."""
        self.until(lambda: self.ghost() == text, f"ghost text {text!r}")

    def until_text(self, text: str) -> None:
        """Wait for the buffer to hold a text."""
        self.until(lambda: self.text() == text, f"text {text!r}")

    def holds(self, text: str, ends: str = "\n") -> None:
        """The buffer has this text, and so has the server, in whose lines it ends so."""
        self.until_text(text)
        assert self.server_text() == text.replace("\n", ends) + ends


_INSERTIONS = frozenset({"CalomelGhost", "CalomelInsert"})


def _pieces(chunks: Any) -> list[tuple[str, str]]:
    return [(chunk[0], chunk[1] if len(chunk) > 1 else "") for chunk in chunks or []]
