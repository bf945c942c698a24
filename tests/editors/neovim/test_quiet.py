from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import Neovim

FILL = {"x = ": "value_of(x)"}


def asked(neovim: Neovim) -> int:
    return len(neovim.asked())


def blocked(neovim: Neovim) -> str:
    return str(neovim.lua("return require('calomel.buffer').describe(0).blocked"))


def test_the_status_says_why_there_is_nothing(neovim: Neovim) -> None:
    neovim.open("\n")
    assert "This buffer: silent. nothing was asked yet." in neovim.status()
    neovim.script(edit={}, fill=None)
    neovim.type("ix = ")
    neovim.settle()
    neovim.until(lambda: "(no_change)" in neovim.status() or "(empty)" in neovim.status())


def test_the_status_says_that_something_is_shown(neovim: Neovim) -> None:
    neovim.script(fill=FILL)
    neovim.open("\n")
    neovim.type("ix = ")
    neovim.until_ghost("value_of(x)")
    assert "This buffer: a suggestion is shown." in neovim.status()


def test_nothing_while_a_macro_is_recorded_or_executed(neovim: Neovim) -> None:
    neovim.script(fill=FILL)
    neovim.open("\n")
    before = asked(neovim)
    neovim.type("qqix = ")
    assert blocked(neovim) == "macro"
    neovim.settle()
    assert (asked(neovim), neovim.marks()) == (before, [])
    assert "a macro is being recorded" in neovim.status()
    neovim.type("<Tab>1<Esc>q")
    neovim.command("setlocal noexpandtab")
    assert neovim.text() == "x = \t1"
    neovim.type("o<Esc>@q")
    assert neovim.text() == "x = \t1\nx = \t1"


def test_a_suggestion_goes_when_a_recording_begins(neovim: Neovim) -> None:
    neovim.script(edit={"print(old)": "print(new)"})
    neovim.open("old = 1\nprint(old)\n")
    neovim.type("cwnew<Esc>")
    neovim.until(neovim.marks)
    neovim.type("qq")
    neovim.until(lambda: neovim.marks() == [])
    neovim.type("q")


def test_nothing_beside_a_popup_menu(neovim: Neovim) -> None:
    neovim.script(fill={"va": "riable"})
    neovim.open("value vast vat\n")
    neovim.command("setlocal completeopt=menuone,noselect")
    neovim.type("ova")
    neovim.until_ghost("riable")
    neovim.type("<C-n>")
    neovim.until(lambda: neovim.marks() == [])
    assert blocked(neovim) == "popup_menu"
    neovim.type("<C-e>")
    neovim.until_ghost("riable")
    neovim.type("<Esc>")


@pytest.mark.e2e
def test_ghost_text_beside_a_menu_if_the_user_wants_it(bare: Neovim) -> None:
    bare.setup(with_menu=True)
    bare.script(fill={"va": "riable"})
    bare.open("value vast vat\n")
    bare.command("setlocal completeopt=menuone,noselect")
    bare.type("ova<C-n>")
    bare.until_ghost("riable")
    bare.type("<C-n>")
    bare.until(lambda: bare.marks() == [])


def test_nothing_within_a_snippet(neovim: Neovim) -> None:
    neovim.script(fill="value")
    neovim.open("\n")
    neovim.type("i")
    neovim.lua("vim.snippet.expand('for ${1:x} in ${2:y}: $0')")
    neovim.type("i")
    neovim.settle()
    assert blocked(neovim) == "snippet"
    assert neovim.marks() == []
    neovim.lua("vim.snippet.stop()")


def test_nothing_in_a_buffer_that_can_not_be_changed(neovim: Neovim) -> None:
    neovim.open("x = 1\n")
    neovim.command("setlocal nomodifiable")
    before = asked(neovim)
    neovim.lua("require('calomel').suggest()")
    neovim.settle()
    assert asked(neovim) == before
    assert "this buffer can not be changed" in neovim.status()


def test_a_suggestion_goes_when_the_user_goes_to_another_window(neovim: Neovim) -> None:
    neovim.script(fill=FILL)
    neovim.open("\n")
    neovim.command("split")
    neovim.type("ix = ")
    neovim.until_ghost("value_of(x)")
    neovim.type("<C-\\><C-o><C-w>w")
    assert neovim.marks() == []
    neovim.settle()
    assert neovim.marks() == []


def test_a_suggestion_stays_in_its_buffer(neovim: Neovim) -> None:
    neovim.script(edit={"print(old)": "print(new)"})
    neovim.open("old = 1\nprint(old)\n", name="first.py")
    neovim.type("cwnew<Esc>")
    neovim.until(neovim.marks)
    neovim.script()
    neovim.command("setlocal hidden")
    neovim.command("set hidden")
    neovim.open("old = 1\nprint(old)\n", name="second.py")
    neovim.settle()
    assert neovim.marks() == []
    neovim.command("buffer first.py")
    assert neovim.marks() == []


def test_nothing_in_a_file_that_a_rule_keeps_from_models(neovim: Neovim) -> None:
    neovim.script(fill="secret")
    neovim.open("A=1\n", name=".env", filetype="sh")
    before = asked(neovim)
    neovim.type("oB=")
    neovim.settle()
    assert (asked(neovim), neovim.marks()) == (before, [])
    neovim.until(lambda: "(ignored_path)" in neovim.status())


def test_several_changes_of_one_key_do_not_confuse_it(neovim: Neovim) -> None:
    neovim.script(fill=None)
    neovim.open("a\na\na\n")
    neovim.type("<C-v>GIx <Esc>")
    neovim.until_text("x a\nx a\nx a")
    neovim.settle()
    assert neovim.server_text() == "x a\nx a\nx a\n"
