from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import PLUGIN, Neovim

from calomel.suggest.launch import version

HELP = (PLUGIN / "doc" / "calomel.txt").read_text(encoding="utf-8")


def statusline(neovim: Neovim) -> str:
    return str(neovim.lua("return require('calomel').statusline()"))


def test_status(neovim: Neovim) -> None:
    neovim.offered()
    first, suggestions, silences, model, buffer = neovim.status().split("\n")
    assert first == "scripted: ready - scripted is ready. It runs on this machine's CPU."
    assert suggestions.startswith("Suggestions: ")
    assert silences.startswith("Silences: ")
    assert model.startswith("Model: ")
    assert buffer == "This buffer: a suggestion is shown."


@pytest.mark.parametrize(
    ("off", "on", "said", "reason"),
    [
        ("toggle", "toggle", " off", "off_globally"),
        ("toggle language", "toggle language", " off", "off_language"),
        ("toggle file", "toggle file", " off", "off_file"),
        ("snooze 5", "snooze 0", "Calomel: quiet for 5 minutes", "snoozed"),
    ],
)
def test_suggestions_are_turned_off_and_on(neovim: Neovim, off: str, on: str, said: str, reason: str) -> None:
    neovim.offered()
    neovim.command(f"Calomel {off}")
    assert neovim.marks() == []
    assert neovim.messages()[-1].endswith(said)
    neovim.type("<BS> ")
    neovim.settle()
    assert neovim.marks() == []
    neovim.until(lambda: f"({reason})" in neovim.status(), "the reason")
    if reason == "snoozed":
        assert statusline(neovim) == "Calomel: off"
    neovim.command(f"Calomel {on}")
    neovim.type("<BS> ")
    neovim.until_ghost("value_of(x)")


def test_log_and_context_are_shown(neovim: Neovim) -> None:
    neovim.open("def add(a, b):\n    \n")
    neovim.type("j$")
    neovim.command("Calomel context")
    assert "def add(a, b):" in neovim.text()
    assert " tokens. " in neovim.text()
    assert neovim.lua("return vim.bo.buftype") == "nofile"
    neovim.command("Calomel log")
    assert neovim.lua("return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ':t')").endswith(".log")
    assert neovim.lua("return vim.bo.readonly") is True


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Calomel dance", "Calomel: there is no subcommand dance"),
        ("Calomel toggle moon", "Calomel: toggle takes file, global, language"),
        ("Calomel snooze long", "Calomel: snooze takes minutes; 0 ends it"),
    ],
)
def test_a_wrong_argument_is_said(neovim: Neovim, line: str, said: str) -> None:
    neovim.open("\n")
    neovim.command(line)
    assert neovim.messages() == [said]


def test_a_wrong_setting_is_named(bare: Neovim) -> None:
    for options, said in (
        ("{ colour = 1 }", 'calomel: there is no option "colour"'),
        ("{ keys = { eat = 'x' } }", 'calomel: there is no key "eat"'),
        ("{ keys = { accept = 1 } }", "keys.accept: expected key, or false for none"),
        ("{ cmd = {} }", "cmd: expected list of strings"),
        ("{ ghost_text = 'mine' }", "ghost_text: expected"),
        ("{ next_edit = 'yes' }", "next_edit: expected boolean"),
    ):
        code = "vim.opt.runtimepath:prepend(...) return select(2, pcall(require('calomel').setup, %s))"
        assert said in bare.lua(code % options, bare.plugin)


def test_a_missing_program_is_said_once_and_in_the_report(bare: Neovim) -> None:
    bare.setup(command=["calomel-that-is-not-there", "lsp"])
    assert bare.messages() == ['calomel: there is no program "calomel-that-is-not-there"; see :checkhealth calomel']
    bare.open("\n", served=False)
    bare.type("ix = <Esc>")
    assert bare.lua("return #vim.lsp.get_clients()") == 0
    assert bare.status().startswith("No server is running.")
    said = bare.health()
    assert 'ERROR there is no program "calomel-that-is-not-there"' in said
    assert "setup({ cmd =" in said


def test_the_report_says_that_all_is_well_or_which_key_was_taken(neovim: Neovim) -> None:
    neovim.open("\n")
    buffer = neovim.lua("return vim.api.nvim_get_current_buf()")
    said = neovim.health()
    assert "ERROR" not in said
    assert "WARNING" not in said
    assert "model: scripted, ready. scripted is ready." in said
    assert f": version {version()}, " in said
    assert "positions in utf-16" in said
    assert "accept: <Tab>" in said
    neovim.lua("vim.keymap.set('i', '<Tab>', 'x', { buffer = ... })", buffer)
    assert f"another mapping of buffer {buffer} took <Tab>" in neovim.health()


def test_before_setup_the_report_says_what_to_call(bare: Neovim) -> None:
    bare.lua("vim.opt.runtimepath:prepend(...)", bare.plugin)
    assert "Call require('calomel').setup() in your init.lua." in bare.health()


@pytest.mark.e2e
def test_a_model_that_does_not_load_is_an_error_of_the_report(bare: Neovim) -> None:
    bare.script(broken="failed")
    bare.setup()
    bare.open("\n", served=False)
    bare.until(lambda: statusline(bare) == "Calomel: error", "it is said")
    assert "The weights are damaged." in bare.health()


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
    wanted = [f"*calomel-opt-{option}*" for option in names["options"]]
    wanted += [f"`{name}`" for pair in names["keys"].items() for name in pair]
    wanted += [f"*:Calomel-{command}*" for command in names["commands"]]
    wanted += [f"*calomel.{function}()*" for function in names["functions"]]
    assert [each for each in wanted if each not in HELP] == []
    readme = (PLUGIN / "README.md").read_text(encoding="utf-8")
    assert [key for key in names["keys"].values() if f"`{key}`" not in readme] == []
