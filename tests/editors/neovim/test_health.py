from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import Neovim

from calomel.suggest.launch import version


def health(neovim: Neovim) -> str:
    neovim.command("checkhealth calomel")
    neovim.until(lambda: "calomel" in neovim.text())
    return neovim.text()


def test_all_is_well(neovim: Neovim) -> None:
    neovim.open("\n")
    said = health(neovim)
    assert "ERROR" not in said
    assert "WARNING" not in said
    assert "model: scripted, ready. scripted is ready." in said
    assert f": version {version()}, " in said
    assert "positions in utf-16" in said
    assert "accept: <Tab>" in said


def test_a_missing_program_is_an_error_with_advice(bare: Neovim) -> None:
    bare.setup(command=["calomel-that-is-not-there", "lsp"])
    said = health(bare)
    assert 'ERROR there is no program "calomel-that-is-not-there"' in said
    assert "setup({ cmd =" in said


def test_before_setup_it_says_what_to_call(bare: Neovim) -> None:
    bare.lua("vim.opt.runtimepath:prepend(...)", bare.plugin)
    assert "Call require('calomel').setup() in your init.lua." in health(bare)


@pytest.mark.e2e
def test_a_model_that_does_not_load_is_an_error(bare: Neovim) -> None:
    bare.script(broken=True)
    bare.setup()
    bare.open("\n", served=False)
    bare.until(lambda: bare.lua("return require('calomel').statusline()") == "Calomel: error")
    assert "The weights are damaged." in health(bare)


def test_a_key_that_another_plugin_took_is_said(neovim: Neovim) -> None:
    neovim.open("\n")
    neovim.lua("vim.keymap.set('i', '<Tab>', 'x', { buffer = true })")
    buffer = neovim.lua("return vim.api.nvim_get_current_buf()")
    assert f"another mapping of buffer {buffer} took <Tab>" in health(neovim)
