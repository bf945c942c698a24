from __future__ import annotations

import re

import pytest
from tests.editors.neovim.neovim import PLUGIN, Neovim

LUA = sorted(path.relative_to(PLUGIN).as_posix() for path in PLUGIN.rglob("*.lua"))
HELP = (PLUGIN / "doc" / "calomel.txt").read_text(encoding="utf-8")


def test_every_file_loads_alone(bare: Neovim) -> None:
    bare.lua("vim.opt.runtimepath:prepend(...)", bare.plugin)
    code = """
    for name in pairs(package.loaded) do
        if vim.startswith(name, "calomel") then package.loaded[name] = nil end
    end
    local before = vim.tbl_keys(_G)
    dofile(...)
    local after = vim.tbl_keys(_G)
    return vim.tbl_filter(function(name) return not vim.list_contains(before, name) end, after)
    """
    for path in LUA:
        # And none leaves a global name behind.
        assert not bare.lua(code, str(PLUGIN / path)), path
    assert bare.lua("return vim.v.errmsg") == ""


@pytest.mark.parametrize("path", LUA)
def test_files_are_small(path: str) -> None:
    lines = (PLUGIN / path).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 320
    assert max(map(len, lines)) <= 120


def test_help_has_tags_that_are_found(bare: Neovim) -> None:
    copy = bare.folder / "plugin" / "doc"
    copy.mkdir(parents=True)
    (copy / "calomel.txt").write_text(HELP, encoding="utf-8")
    bare.lua("vim.opt.runtimepath:prepend(...) vim.cmd.helptags(... .. '/doc')", str(copy.parent))
    for link in sorted(set(re.findall(r"(?<!`)\|([^|\s]+)\|", HELP))):
        bare.command(f"silent help {link}")
        assert bare.lua("return vim.bo.buftype") == "help"
    tags = (copy / "tags").read_text(encoding="utf-8")
    assert len(tags.splitlines()) == len(re.findall(r"(?<=\s)\*\S+\*(?=\s)", "\n" + HELP))


def test_help_tells_of_every_option_key_command_and_function(bare: Neovim) -> None:
    bare.lua("vim.opt.runtimepath:prepend(...)", bare.plugin)
    names = bare.lua("""
    local config = require("calomel.config")
    return {
        options = vim.list_extend(vim.tbl_keys(config.defaults), { "filetypes" }),
        keys = config.defaults.keys,
        commands = require("calomel.command").complete("", "Calomel "),
        functions = vim.tbl_filter(function(name)
            return type(require("calomel")[name]) == "function"
        end, vim.tbl_keys(require("calomel"))),
    }
    """)
    for option in names["options"]:
        assert f"*calomel-opt-{option}*" in HELP
    for action, key in names["keys"].items():
        assert f"`{action}`" in HELP
        assert f"`{key}`" in HELP
    for command in names["commands"]:
        assert f"*:Calomel-{command}*" in HELP
    for function in names["functions"]:
        assert f"*calomel.{function}()*" in HELP
    readme = (PLUGIN / "README.md").read_text(encoding="utf-8")
    assert [key for key in names["keys"].values() if f"`{key}`" not in readme] == []
