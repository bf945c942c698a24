from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import Neovim

FILL = {"x = ": "value_of(x)"}
_CLIENTS = "return #require('calomel.server').clients()"


def pids(neovim: Neovim) -> list[int]:
    """Processes that this Neovim started."""
    return list(neovim.lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())"))


def test_a_server_that_dies_takes_its_ghost_text_along_and_restart_brings_it_back(bare: Neovim) -> None:
    bare.script(fill=FILL)
    bare.setup()
    bare.open("\n")
    bare.type("ix = ")
    bare.until_ghost("value_of(x)")
    (pid,) = pids(bare)
    bare.lua("vim.defer_fn = function() end")  # it would be started again by itself
    bare.lua("vim.uv.kill(..., 9)", pid)
    bare.until(lambda: bare.lua(_CLIENTS) == 0)
    bare.until(lambda: bare.marks() == [])
    assert bare.lua("return require('calomel').statusline()") == "Calomel: ended"
    assert bare.status().startswith("The server ended (signal 9); it is started again within 1 s.")
    bare.command("setlocal noexpandtab")
    bare.type("1<Tab>")
    bare.until_text("x = 1\t")
    bare.command("Calomel restart")
    bare.until(bare.is_served)
    assert "Calomel: restarted" in bare.messages()
    bare.type("<CR>x = ")
    bare.until_ghost("value_of(x)")
    bare.type("<Tab>")
    bare.until_text("x = 1\t\nx = value_of(x)")
    assert bare.server_text() == bare.text() + "\n"


def test_a_server_that_dies_is_started_again_by_itself(bare: Neovim) -> None:
    bare.script(fill=FILL)
    bare.setup()
    bare.open("\n")
    (before,) = pids(bare)
    bare.lua("vim.uv.kill(..., 9)", before)
    bare.until(lambda: pids(bare) not in ([], [before]))
    bare.until(bare.is_served)
    assert bare.lua("return require('calomel.server').trouble") is None
    bare.type("ix = ")
    bare.until_ghost("value_of(x)")


def test_a_server_that_ends_again_and_again_is_given_up_with_a_sentence(bare: Neovim) -> None:
    bare.setup(command=["sh", "-c", "exit 3"])
    # Time is not waited for: each start is asked for at once.
    bare.lua("local later = vim.defer_fn; vim.defer_fn = function(f) return later(f, 0) end")
    bare.open("\n", served=False)
    bare.until(lambda: any("6 times in a row (status 3)" in message for message in bare.messages()))
    assert bare.status().startswith("The server ended 6 times in a row (status 3).")


def test_a_buffer_without_a_file_type_is_told_so(bare: Neovim) -> None:
    bare.setup()
    bare.open("\n", name="notes", filetype="", served=False)
    assert bare.status().startswith("No server is running: this buffer has no file type")


@pytest.mark.e2e
def test_restart_replaces_a_server_that_runs(bare: Neovim) -> None:
    bare.script(fill=FILL)
    bare.setup()
    bare.open("\n")
    (before,) = pids(bare)
    bare.command("Calomel restart")
    bare.until(lambda: "Calomel: restarted" in bare.messages())
    bare.until(bare.is_served)
    (after,) = pids(bare)
    assert after != before
    bare.type("ix = ")
    bare.until_ghost("value_of(x)")


@pytest.mark.e2e
def test_one_server_serves_all_files_of_a_folder(bare: Neovim) -> None:
    bare.script(fill=FILL)
    bare.setup()
    (bare.folder / "calomel.toml").touch()
    bare.command("set hidden")
    for name, filetype in (("a.py", "python"), ("b.rs", "rust"), ("c.lua", "lua")):
        bare.open("\n", name=name, filetype=filetype)
        bare.type("ix = ")
        bare.until_ghost("value_of(x)")
        bare.type("<Tab><Esc>")
    assert bare.lua(_CLIENTS) == 1
    assert len(pids(bare)) == 1


@pytest.mark.e2e
def test_it_is_silent_while_the_model_loads_and_speaks_when_it_is_there(bare: Neovim) -> None:
    bare.script(fill=FILL, loading_seconds=0.5)
    bare.setup()
    bare.open("\n", served=False)
    bare.until(lambda: bare.lua("return require('calomel').statusline()") == "Calomel: loading")
    bare.type("ix = ")
    bare.until_ghost("value_of(x)")


def test_a_model_that_fails_is_a_silence_with_its_reason(neovim: Neovim) -> None:
    neovim.script(error="overloaded")
    neovim.open("\n")
    neovim.type("ix = ")
    neovim.settle()
    assert neovim.marks() == []
    neovim.until(lambda: "(overloaded)" in neovim.status())
    assert neovim.messages() == []
