"""Ghost text by Neovim's own inline completion, which came with 0.12."""

from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import Neovim

FILL = {"x = ": "value_of(x)"}
_SHOWN = """
local found = {}
local ns = vim.api.nvim_get_namespaces()["nvim.lsp.inline_completion"]
for _, mark in ipairs(ns and vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true }) or {}) do
    for _, chunk in ipairs(mark[4].virt_text or {}) do
        found[#found + 1] = chunk[1]
    end
end
return table.concat(found)
"""


@pytest.fixture
def builtin(bare: Neovim) -> Neovim:
    if not bare.lua("return vim.lsp.inline_completion ~= nil"):
        pytest.skip("this Neovim has no inline completion of its own")
    bare.script(fill=FILL, edit={"print(x)": "print(y)"})
    bare.setup(ghost_text="builtin")
    return bare


def test_neovim_shows_it_and_our_key_takes_it(builtin: Neovim) -> None:
    builtin.open("\n")
    builtin.type("ix = ")
    builtin.until(lambda: builtin.lua(_SHOWN) == "value_of(x)")
    assert builtin.marks() == []
    builtin.type("<Tab>")
    builtin.until_text("x = value_of(x)")
    assert builtin.server_text() == "x = value_of(x)\n"
    builtin.until(lambda: builtin.outcomes().get("accepted") == 1)


@pytest.mark.e2e
def test_the_key_falls_through_when_there_is_nothing(builtin: Neovim) -> None:
    builtin.open("\n")
    builtin.command("setlocal noexpandtab")
    builtin.type("iy<Tab>z")
    assert builtin.text() == "y\tz"


@pytest.mark.e2e
def test_next_edits_are_ours_all_the_same(builtin: Neovim) -> None:
    builtin.open("x = 1\nprint(x)\n")
    builtin.type("ry")
    builtin.until(builtin.marks)
    builtin.type("<Tab>")
    assert builtin.text() == "y = 1\nprint(y)"


@pytest.mark.e2e
def test_without_it_the_plugin_shows_ghost_text_itself(bare: Neovim) -> None:
    bare.lua("vim.lsp.inline_completion = false")
    bare.script(fill=FILL)
    bare.setup(ghost_text="builtin")
    bare.open("\n")
    bare.type("ix = ")
    bare.until_ghost("value_of(x)")


@pytest.mark.e2e
def test_neovims_own_does_not_show_a_second_one_beside_ours(bare: Neovim) -> None:
    bare.lua("if vim.lsp.inline_completion then vim.lsp.inline_completion.enable() end")
    bare.script(fill=FILL)
    bare.setup()
    bare.open("\n")
    bare.type("ix = ")
    bare.until_ghost("value_of(x)")
    assert bare.lua(_SHOWN) == ""
    assert bare.lua("return #vim.lsp.get_clients({ method = 'textDocument/inlineCompletion' })") == 0
