"""What Tab does once there is nothing left to take, and while a menu is open."""

from __future__ import annotations

import time

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.neovim.test_quiet import MENU
from tests.editors.shared import APART, PAUSE, RENAME, Chain


def taken(neovim: Neovim, chain: Chain) -> float:
    """Press Tab until every edit of a chain is accepted; when the last one was."""
    neovim.script(edit=chain.edits)
    neovim.open(chain.text)
    neovim.type(f"cw{chain.name}")
    while neovim.text() != chain.done[:-1]:
        neovim.until(neovim.marks, "an edit is shown")
        neovim.type("<Tab>")
    return time.monotonic()


def press(neovim: Neovim, key: str, at: float) -> None:
    """Press a key at a moment."""
    time.sleep(max(0.0, at - time.monotonic()))
    neovim.type(key)


@pytest.mark.parametrize("seed", range(9))
def test_a_tab_too_many_changes_nothing(neovim: Neovim, seed: int) -> None:
    chain = Chain.drawn(seed)
    last = taken(neovim, chain)
    row, column = neovim.cursor()
    name = chain.done.split("\n")[row]
    assert column == name.index(chain.name) + len(chain.name), "the cursor stands behind the name"
    press(neovim, "<Tab>", last + APART)
    press(neovim, "<Tab>", last + 2 * APART)
    assert neovim.text() == chain.done[:-1]


def test_an_indent_that_is_wanted_later_is_one(neovim: Neovim) -> None:
    chain = Chain.drawn(0)
    last = taken(neovim, chain)
    press(neovim, "<Tab>z", last + PAUSE)
    assert f"{chain.name}    z" in neovim.text() or f"{chain.name}\tz" in neovim.text()


def test_behind_another_key_tab_is_a_tab(neovim: Neovim) -> None:
    chain = Chain.drawn(0)
    taken(neovim, chain)
    neovim.type("z")
    neovim.settle()
    neovim.type("<Tab>z")
    assert f"{chain.name}z    z" in neovim.text() or f"{chain.name}z\tz" in neovim.text()


def test_behind_ghost_text_that_was_taken_it_is_the_same(neovim: Neovim) -> None:
    neovim.offered()
    neovim.type("<Tab><Tab>")
    assert neovim.text() == "x = value_of(x)"


def test_whole_lines_are_taken_with_the_cursor_behind_the_last_one(neovim: Neovim) -> None:
    neovim.edited("old = 1\nprint(old)\ny = 3\n", **{"print(old)": "print(new)\nprint(new, 2)"})
    neovim.type("A<Tab><Tab>")
    assert neovim.text() == "new = 1\nprint(new)\nprint(new, 2)\ny = 3"
    assert neovim.cursor() == (2, 13)


MENU_HINT = "<M-l>: edit on line 2 ↓"


def menu(neovim: Neovim) -> None:
    """A name is changed, and the menu opens where the new one is typed."""
    neovim.script(edit={"print(width)": "print(wide)"})
    neovim.open("width = 1\nprint(width)\n\nwidening\n")
    neovim.command(f"setlocal {MENU}")
    neovim.type("cwwide")
    neovim.until(lambda: neovim.hint() == "<Tab>", "the edit is shown")
    neovim.type("<C-n>")


def test_beside_the_menu_the_hint_names_the_key_that_works_there(neovim: Neovim) -> None:
    menu(neovim)
    neovim.until(lambda: neovim.hint() == MENU_HINT, "the hint names the other key")
    assert neovim.lua("return vim.fn.pumvisible()") == 1
    neovim.type("<M-l>")
    neovim.holds("wide = 1\nprint(wide)\n\nwidening")
    assert neovim.lua("return vim.fn.pumvisible()") == 0


def test_beside_the_menu_tab_is_the_menus_and_the_hint_is_back_behind_it(neovim: Neovim) -> None:
    neovim.lua("vim.keymap.set('i', '<Tab>', [[pumvisible() ? '<C-n>' : '<Tab>']], { expr = true })")
    try:
        menu(neovim)
        neovim.until(lambda: neovim.hint() == MENU_HINT, "the hint names the other key")
        neovim.type("<Tab>")
        neovim.until(lambda: neovim.text().startswith("widening = 1\nprint(width)"), "Tab took an entry of the menu")
        neovim.type("<C-e>")
        neovim.until(lambda: neovim.hint() == "<Tab>", "the menu is closed")
    finally:
        neovim.lua("vim.keymap.del('i', '<Tab>')")


@pytest.mark.parametrize(("module", "asks"), [("cmp", "visible"), ("blink.cmp", "is_menu_visible")])
def test_the_menu_of_a_plugin_is_one(neovim: Neovim, module: str, asks: str) -> None:
    neovim.script(edit=RENAME)
    neovim.open("old = 1\nprint(old)\n")
    neovim.lua(
        "local name, asks = ...; package.loaded[name] = { [asks] = function() return _G.menu end }", module, asks
    )
    try:
        neovim.type("cwnew")
        neovim.until(lambda: neovim.hint() == "<Tab>", "the edit is shown")
        neovim.lua("_G.menu = true; vim.cmd('doautocmd User BlinkCmpMenuOpen')")
        neovim.until(lambda: neovim.hint() == MENU_HINT, "the hint names the other key")
        neovim.type("<M-l>")
        neovim.holds("new = 1\nprint(new)")
    finally:
        neovim.lua("package.loaded[...], _G.menu = nil, nil", module)


def test_asked_for_in_vain_the_reason_stands_at_the_cursor_for_a_moment(neovim: Neovim) -> None:
    neovim.open("x = 1\n")
    neovim.type("<M-\\>")
    neovim.until(lambda: neovim.hint() == "Nothing shown: The model would change nothing.", neovim.hint)
    neovim.type("i")
    neovim.type("<M-\\>")
    neovim.until(lambda: neovim.hint().startswith("No completion: "), neovim.hint)
    neovim.type("y")
    neovim.settle()
    assert neovim.hint() == ""
