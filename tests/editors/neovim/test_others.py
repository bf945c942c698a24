from __future__ import annotations

from typing import Any

from tests.editors.neovim.neovim import Neovim

FIRST, SECOND, THIRD = "value_of(x)", "value_of(y)", "None"


def offered(neovim: Neovim, **more: Any) -> None:
    neovim.offered(FIRST, "x, y = 1, 2\n", "ox = ", fill={"x = ": FIRST}, also=[SECOND, f"{FIRST} ", THIRD], **more)


def test_keys_turn_to_the_others_and_back_and_tab_takes_the_one_that_is_shown(neovim: Neovim) -> None:
    offered(neovim)
    seen = []
    for key in ("<M-]>", "<M-]>", "<M-]>", "<M-[>", "<M-[>"):
        neovim.type(key)
        seen.append((neovim.ghost(), neovim.hint()))
    assert seen == [(SECOND, "2/3"), (THIRD, "3/3"), (FIRST, "1/3"), (THIRD, "3/3"), (SECOND, "2/3")]
    with neovim.learns("accepted"):
        neovim.type("<Tab>")
        neovim.until_text(f"x, y = 1, 2\nx = {SECOND}")


def test_what_one_turned_to_stays_while_one_types_what_it_says(neovim: Neovim) -> None:
    offered(neovim)
    neovim.type("<M-]>")
    neovim.type("val")
    neovim.settle()
    assert (neovim.ghost(), neovim.hint()) == (SECOND.removeprefix("val"), "2/2")
    neovim.type("<C-]>")
    assert neovim.ghost() == ""


def test_without_others_the_key_does_what_it_did(neovim: Neovim) -> None:
    neovim.offered()
    neovim.lua("vim.keymap.set('i', '<M-]>', 'mapped')")
    neovim.type("<M-]>")
    assert neovim.text().endswith("x = mapped")
    neovim.lua("vim.keymap.del('i', '<M-]>')")
