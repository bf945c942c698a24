"""The server that the plugin starts; and Neovim's own ways to a server: its ghost text, and no plugin at all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.programs import REPOSITORY, find_neovim, wanted
from tests.editors.shared import FAR, RENAME, no_server_stays
from tests.lsp.program import REAL, SCRIPTED
from tests.server._llama_cpp import Llama

FILL = {"x = ": "value_of(x)"}
_CLIENTS = "return #require('calomel.server').clients()"


def pids(neovim: Neovim) -> list[int]:
    """Processes that this Neovim started."""
    return list(neovim.lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())"))


def test_a_server_that_dies_takes_its_ghost_text_along_and_restart_brings_it_back(bare: Neovim) -> None:
    bare.setup()
    bare.offered()
    (pid,) = pids(bare)
    bare.lua("vim.defer_fn = function() end")  # it would be started again by itself
    bare.lua("vim.uv.kill(..., 9)", pid)
    bare.until(lambda: bare.lua(_CLIENTS) == 0, "the server is gone")
    bare.until(lambda: bare.marks() == [], "its ghost text is gone")
    assert bare.lua("return require('calomel').statusline()") == "Calomel: ended"
    assert bare.status().startswith("The server stopped (signal 9); restarting within 1 s.")
    bare.command("setlocal noexpandtab")
    bare.type("1<Tab>")
    bare.until_text("x = 1\t")
    bare.command("Calomel restart")
    bare.until(bare.is_served, "the server serves the buffer")
    assert "Calomel: restarted" in bare.messages()
    bare.type("<CR>x = ")
    bare.until_ghost("value_of(x)")
    bare.type("<Tab>")
    bare.holds("x = 1\t\nx = value_of(x)")


@pytest.mark.parametrize("command", [None, "Calomel restart"], ids=["it dies", "a restart"])
def test_a_server_is_replaced_by_another(bare: Neovim, command: str | None) -> None:
    bare.setup()
    bare.script(fill=FILL)
    bare.open("\n")
    (before,) = pids(bare)
    if command is None:
        bare.lua("vim.uv.kill(..., 9)", before)
    else:
        bare.command(command)
    bare.until(lambda: (now := pids(bare)) and before not in now, "another server")
    bare.until(bare.is_served, "it serves the buffer")
    assert bare.lua("return require('calomel.server').trouble") is None
    bare.type("ix = ")
    bare.until_ghost("value_of(x)")


def test_a_server_that_ends_again_and_again_is_given_up_with_a_sentence(bare: Neovim) -> None:
    bare.setup(command=["sh", "-c", "exit 3"])
    # Time is not waited for: each start is asked for at once.
    bare.lua("local later = vim.defer_fn; vim.defer_fn = function(f) return later(f, 0) end")
    bare.open("\n", served=False)
    sentence = "6 times in a row (status 3)"
    bare.until(lambda: any(sentence in message for message in bare.messages()), sentence)
    assert bare.status().startswith(f"The server stopped {sentence}.")


@pytest.mark.e2e
def test_it_says_that_the_model_loads_and_speaks_when_it_is_there(bare: Neovim) -> None:
    bare.script(fill=FILL, loading_seconds=2.5)
    bare.setup()
    bare.open("\n", served=False)
    bare.until(lambda: bare.lua("return require('calomel').statusline()") == "Calomel: loading", "it loads")
    loads = "Calomel: The model is loading. Suggestions appear once it is ready."
    bare.until(lambda: loads in bare.messages(), "it says that it loads")
    bare.type("ix = ")
    bare.until_ghost("value_of(x)")
    assert any("is ready" in message for message in bare.messages())


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


def until_neovim_shows(neovim: Neovim, text: str) -> None:
    """Ghost text by Neovim's own inline completion, which came with 0.12."""
    neovim.until(lambda: text in neovim.lua(_SHOWN), f"Neovim's own ghost text {text!r}")


@pytest.fixture
def newer(bare: Neovim) -> Neovim:
    if not bare.lua("return vim.lsp.inline_completion ~= nil"):
        pytest.skip("this Neovim has no inline completion of its own")
    return bare


def test_neovim_shows_ghost_text_itself_and_our_key_takes_it_or_falls_through(newer: Neovim) -> None:
    newer.script(fill=FILL)
    newer.setup(ghost_text="builtin")
    newer.open("\n")
    newer.command("setlocal noexpandtab")
    newer.type("ix = ")
    until_neovim_shows(newer, "value_of(x)")
    assert newer.marks() == []
    with newer.learns("accepted"):
        newer.type("<Tab>")
        newer.holds("x = value_of(x)")
    newer.type("<Esc>A<Tab>z")
    assert newer.text() == "x = value_of(x)\tz"


@pytest.mark.e2e
def test_neovims_own_does_not_show_a_second_one_beside_ours(bare: Neovim) -> None:
    bare.lua("if vim.lsp.inline_completion then vim.lsp.inline_completion.enable() end")
    bare.setup()
    bare.offered()
    assert bare.lua(_SHOWN) == ""
    assert bare.lua("return #vim.lsp.get_clients({ method = 'textDocument/inlineCompletion' })") == 0


@pytest.fixture
def plain(newer: Neovim) -> Neovim:
    """Neovim without the plugin, set up as the page on clients of Copilot's protocol says."""
    page = (REPOSITORY / "docs" / "plugins.md").read_text(encoding="utf-8")
    shown = re.search(r"```lua\n(vim\.lsp\.config\(\"copilot_calomel.*?)```", page, re.DOTALL)
    assert shown is not None
    newer.lua(shown[1].replace('"calomel", "lsp"', ", ".join(map(json.dumps, SCRIPTED))))
    return newer


def opened(plain: Neovim, text: str) -> None:
    plain.open(text, served=False)
    ready = "local client = vim.lsp.get_clients({ bufnr = 0 })[1]; return client ~= nil and client.initialized"
    plain.until(lambda: plain.lua(ready), "the server serves the buffer")


@pytest.mark.e2e
def test_without_the_plugin_ghost_text_is_shown_and_its_key_takes_it(plain: Neovim) -> None:
    plain.script(fill=FILL)
    opened(plain, "\n")
    plain.type("ix = ")
    until_neovim_shows(plain, "value_of(x)")
    plain.type("<Tab>")
    plain.until_text("x = value_of(x)")
    plain.until(lambda: plain.records()[-1:] and plain.records()[-1]["outcome"] == "accepted", "the outcome is kept")


@pytest.mark.e2e
def test_without_the_plugin_the_menu_of_code_actions_has_the_next_edit(plain: Neovim) -> None:
    plain.script(edit=RENAME)
    opened(plain, FAR)
    # What the menu would show, and the user's choice of its first.
    plain.lua("vim.ui.select = function(items, _, done) done(items[1], 1) end")
    plain.type("cwnew<Esc>")
    plain.type("gra")
    plain.until_text(FAR[:-1].replace("old", "new"))
    plain.until(lambda: plain.records()[-1:] and plain.records()[-1]["outcome"] == "accepted", "the outcome is kept")


# Neovim with the language server and the server as they ship, and a real llama.cpp behind them.
@pytest.mark.e2e
@pytest.mark.slow
def test_one_setting_brings_the_suggestions_of_a_llama_cpp_that_runs_already(tmp_path: Path) -> None:
    program = wanted(find_neovim())
    llama = Llama(tmp_path)
    upstream = {"upstream": llama(says="count"), "idle_minutes": 1.0}
    try:
        with Neovim(program, tmp_path) as neovim, no_server_stays(tmp_path):
            neovim.seconds = 60.0
            neovim.setup(command=REAL, server={"backend": upstream, "suggest": {"debounce_seconds": 0.0}})
            neovim.open("def f(count):\n    \n")
            neovim.type("jAreturn ")
            neovim.until_ghost("count")
            neovim.type("<Tab>")
            neovim.until_text("def f(count):\n    return count")
    finally:
        llama.end()
