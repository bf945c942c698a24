from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import Neovim

HEAD = "def add(a, b):\n    \n"
REST = "turn a + b\n\n\ndef sub(a, b):\n    return a - b"


def shown(neovim: Neovim, fill: str = REST) -> None:
    """`re` was typed, and the rest is offered."""
    neovim.script(fill={"def add(a, b):\n    re": fill})
    neovim.open(HEAD)
    neovim.type("jAre")
    neovim.until_ghost(fill)


def accepted(neovim: Neovim, before: dict[str, int], outcome: str) -> bool:
    return neovim.outcomes().get(outcome, 0) == before.get(outcome, 0) + 1


def test_all_of_it(neovim: Neovim) -> None:
    shown(neovim)
    before = neovim.outcomes()
    neovim.type("<Tab>")
    assert neovim.text() == HEAD[:-1] + "re" + REST
    assert neovim.cursor() == (5, len("    return a - b"))
    assert neovim.mode() == "i"
    neovim.settle()
    assert neovim.marks() == []
    assert neovim.server_text() == neovim.text() + "\n"
    neovim.until(lambda: accepted(neovim, before, "accepted"))


def test_word_by_word(neovim: Neovim) -> None:
    shown(neovim, "turn a + b")
    before = neovim.outcomes()
    for text, left in (("    return", " a + b"), ("    return a", " + b"), ("    return a +", " b")):
        neovim.type("<C-Right>")
        assert neovim.text().split("\n")[1] == text
        assert neovim.ghost() == left
        neovim.settle()
        assert neovim.ghost() == left
    neovim.until(lambda: neovim.outcomes().get("partly_accepted", 0) > before.get("partly_accepted", 0))
    neovim.type("<C-Right>")
    assert neovim.text().split("\n")[1] == "    return a + b"
    assert neovim.mode() == "i"
    neovim.until(lambda: accepted(neovim, before, "accepted"))
    assert neovim.server_text() == neovim.text() + "\n"


def test_line_by_line(neovim: Neovim) -> None:
    shown(neovim)
    neovim.type("<C-l>")
    assert neovim.text() == HEAD[:-1] + "return a + b"
    neovim.settle()
    assert neovim.ghost() == "\n\n\ndef sub(a, b):\n    return a - b"
    neovim.type("<C-l>")
    assert neovim.text() == HEAD[:-1] + "return a + b\n\n\ndef sub(a, b):"
    neovim.settle()
    neovim.type("<C-l>")
    assert neovim.text() == HEAD[:-1] + "re" + REST
    assert neovim.server_text() == neovim.text() + "\n"


def test_a_word_typed_then_the_rest_taken(neovim: Neovim) -> None:
    shown(neovim, "turn a + b")
    neovim.type("turn<C-Right><Tab>")
    neovim.until_text(HEAD[:-1] + "return a + b")


@pytest.mark.parametrize("key", ["<Tab>", "<C-Right>", "<C-l>"])
def test_one_undo_takes_back_what_was_accepted_and_no_more(neovim: Neovim, key: str) -> None:
    shown(neovim)
    neovim.type(key)
    neovim.settle()
    neovim.type("<Esc>u")
    assert neovim.text() == HEAD[:-1] + "re"
    neovim.type("<C-r>")
    assert neovim.text().startswith(HEAD[:-1] + "return")
    neovim.type("uu")
    assert neovim.text() == HEAD[:-1]
    assert neovim.server_text() == HEAD


def test_text_that_is_accepted_is_not_indented_again(neovim: Neovim) -> None:
    neovim.script(fill={"if x:": "\n    y()\n    z()"})
    neovim.open("\n")
    neovim.command("setlocal autoindent cindent expandtab shiftwidth=4")
    neovim.type("iif x:")
    neovim.until_ghost("\n    y()\n    z()")
    neovim.type("<Tab>")
    assert neovim.text() == "if x:\n    y()\n    z()"


def test_lua_functions_do_the_same_as_the_keys(neovim: Neovim) -> None:
    shown(neovim, "turn a + b")
    assert neovim.lua("return require('calomel').visible()") is True
    assert neovim.lua("return require('calomel').accept_word()") is True
    assert neovim.text().split("\n")[1] == "    return"
    assert neovim.lua("return require('calomel').accept()") is True
    assert neovim.text() == HEAD[:-1] + "return a + b"
    assert neovim.lua("return require('calomel').accept()") is False


def test_it_replaces_what_it_says_it_replaces(neovim: Neovim) -> None:
    neovim.script(fill={"print(": '"hello")'})
    neovim.open("\n")
    neovim.type("iprint()<Left>")
    neovim.until(neovim.ghost)
    neovim.type("<Tab>")
    neovim.until_text('print("hello")')
    assert neovim.server_text() == 'print("hello")\n'


def test_the_dot_repeats_what_was_typed_and_accepted(neovim: Neovim) -> None:
    neovim.script(fill={"x = re": "sult"})
    neovim.open("\n\n")
    neovim.type("ix = re")
    neovim.until_ghost("sult")
    neovim.type("<Tab><Esc>")
    neovim.script()
    neovim.type("j.")
    assert neovim.text() == "x = result\nx = result"
