from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import Neovim

FILL = {"x = ": "value_of(x)"}


def typed(neovim: Neovim) -> None:
    neovim.script(fill=FILL)
    neovim.open("\n")
    neovim.type("ix = ")
    neovim.until_ghost("value_of(x)")


def test_status(neovim: Neovim) -> None:
    typed(neovim)
    first, suggestions, silences, model, buffer = neovim.status().split("\n")
    assert first == "scripted: ready - scripted is ready."
    assert suggestions.startswith("Suggestions: ")
    assert silences.startswith("Silences: ")
    assert model.startswith("Model: ")
    assert buffer == "This buffer: a suggestion is shown."


def test_status_says_what_was_held_back(neovim: Neovim) -> None:
    neovim.script(fill=FILL, log_prob=-3.0)
    neovim.open("\n")
    neovim.type("ix = ")
    neovim.until(lambda: "Held back: low_confidence 1 (canvas 1). The last: low_confidence, 0.22" in neovim.status())
    assert "with a threshold of 0.30" in neovim.status()


def test_status_where_nothing_is_served(neovim: Neovim) -> None:
    neovim.lua("vim.cmd.new() vim.bo.buftype = 'nofile'")
    assert neovim.status().endswith("This buffer: not served.") or "No server" in neovim.status()


@pytest.mark.parametrize("scope", ["", "global", "language", "file"])
def test_toggle_turns_suggestions_off_and_on(neovim: Neovim, scope: str) -> None:
    typed(neovim)
    neovim.command(f"Calomel toggle {scope}")
    assert neovim.marks() == []
    assert neovim.messages()[-1].endswith(" off")
    neovim.type("<BS> ")
    neovim.settle()
    assert neovim.marks() == []
    reason = f"off_{scope or 'global'}ly" if scope in {"", "global"} else f"off_{scope}"
    neovim.until(lambda: f"({reason})" in neovim.status())
    neovim.command(f"Calomel toggle {scope}")
    assert neovim.messages()[-1].endswith(" on")
    neovim.type("<BS> ")
    neovim.until_ghost("value_of(x)")


def test_snooze_is_quiet_for_a_while(neovim: Neovim) -> None:
    typed(neovim)
    neovim.command("Calomel snooze 5")
    assert neovim.marks() == []
    assert neovim.messages()[-1] == "Calomel: quiet for 5 minutes"
    neovim.type("<BS> ")
    neovim.settle()
    assert neovim.marks() == []
    neovim.until(lambda: "(snoozed)" in neovim.status())
    assert neovim.lua("return require('calomel').statusline()") == "Calomel: off"
    neovim.command("Calomel snooze 0")
    neovim.type("<BS> ")
    neovim.until_ghost("value_of(x)")


def test_the_status_line_says_how_it_is(neovim: Neovim) -> None:
    assert neovim.lua("return require('calomel').statusline()") == ""
    neovim.open("\n")
    neovim.until(lambda: neovim.lua("return require('calomel').statusline()") == "Calomel")


def test_log_shows_the_log(neovim: Neovim) -> None:
    neovim.open("\n")
    neovim.command("Calomel log")
    assert neovim.lua("return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ':t')").endswith(".log")
    assert neovim.lua("return vim.bo.readonly") is True


def test_context_shows_what_the_model_would_see(neovim: Neovim) -> None:
    neovim.open("def add(a, b):\n    \n")
    neovim.type("j$")
    neovim.command("Calomel context")
    assert "def add(a, b):" in neovim.text()
    assert " tokens. " in neovim.text()
    assert neovim.lua("return vim.bo.buftype") == "nofile"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Calomel dance", "Calomel: there is no subcommand dance"),
        ("Calomel toggle moon", "Calomel: toggle takes file, global, language"),
        ("Calomel snooze long", "Calomel: snooze takes minutes; 0 ends it"),
        ("Calomel snooze -1", "Calomel: snooze takes minutes; 0 ends it"),
    ],
)
def test_a_wrong_argument_is_said(neovim: Neovim, line: str, said: str) -> None:
    neovim.open("\n")
    neovim.command(line)
    assert neovim.messages() == [said]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("Calomel s", ["snooze", "status"]),
        ("Calomel toggle ", ["file", "global", "language"]),
        ("Calomel toggle g", ["global"]),
        ("Calomel snooze ", []),
    ],
)
def test_arguments_are_completed(neovim: Neovim, line: str, offered: list[str]) -> None:
    # An empty list is an empty table.
    assert list(neovim.lua("return vim.fn.getcompletion(..., 'cmdline')", line) or []) == offered


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


def test_a_missing_program_is_said_once(bare: Neovim) -> None:
    bare.setup(command=["calomel-that-is-not-there", "lsp"])
    assert bare.messages() == ['calomel: there is no program "calomel-that-is-not-there"; see :checkhealth calomel']
    bare.open("\n", served=False)
    bare.type("ix = ")
    assert bare.lua("return #vim.lsp.get_clients()") == 0
    assert bare.status().startswith("No server is running.")
