"""Neovim without the plugin, set up as the page on clients of Copilot's protocol says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.setup import last_outcomes
from tests.lsp.program import SCRIPTED

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[3] / "docs" / "copilot-clients.md"
SHOWN = """
local found = {}
local ns = vim.api.nvim_get_namespaces()["nvim.lsp.inline_completion"]
for _, mark in ipairs(ns and vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true }) or {}) do
    for _, chunk in ipairs(mark[4].virt_text or {}) do
        found[#found + 1] = chunk[1]
    end
end
return table.concat(found)
"""
READY = "local client = vim.lsp.get_clients({ bufnr = 0 })[1]; return client ~= nil and client.initialized"
# What the menu of code actions would show, and the user's choice of its first.
CHOOSE = "_G.menu = {}; vim.ui.select = function(items, _, done) _G.menu = #items; done(items[1], 1) end"


@pytest.fixture
def plain(bare: Neovim) -> Neovim:
    if not bare.lua("return vim.lsp.inline_completion ~= nil"):
        pytest.skip("this Neovim has no inline completion of its own")
    shown = re.search(
        r"```lua\n(vim\.lsp\.config\(\"copilot_calomel.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    assert shown is not None
    command = ", ".join(json.dumps(word) for word in SCRIPTED)
    bare.lua(shown[1].replace('"calomel", "lsp"', command))
    return bare


def opened(plain: Neovim, text: str) -> None:
    plain.open(text, served=False)
    plain.until(lambda: plain.lua(READY), "the server serves the buffer")


def test_ghost_text_is_shown_and_its_key_takes_it(plain: Neovim) -> None:
    plain.script(fill={"x = ": "value_of(x)"})
    opened(plain, "\n")
    plain.type("ix = ")
    plain.until(lambda: plain.lua(SHOWN) == "value_of(x)", "ghost text")

    plain.type("<Tab>")

    plain.until_text("x = value_of(x)")
    plain.until(lambda: list(last_outcomes(plain.folder).values()) == ["accepted"], "the outcome is kept")


def test_its_key_indents_where_a_line_begins(plain: Neovim) -> None:
    plain.script(fill={"def f(x):\n": "    return x"})
    opened(plain, "def f(x):\n")
    plain.command("setlocal noexpandtab")
    plain.type("o")
    plain.until(lambda: "return x" in plain.lua(SHOWN), "ghost text")
    plain.type("<Tab>")
    assert plain.text() == "def f(x):\n\t"


def test_the_menu_of_code_actions_has_the_next_edit(plain: Neovim) -> None:
    plain.script(edit={"print(old)": "print(new)"})
    opened(plain, "old = 1\n" + "\n" * 8 + "print(old)\n")
    plain.lua(CHOOSE)
    plain.type("cwnew<Esc>")

    plain.type("gra")

    plain.until_text("new = 1\n" + "\n" * 8 + "print(new)")
    plain.until(lambda: "accepted" in last_outcomes(plain.folder).values(), "the outcome is kept")
