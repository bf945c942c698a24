from __future__ import annotations

from tests.editors.neovim.neovim import Neovim


def test_ghost_text_appears_while_typing(neovim: Neovim) -> None:
    neovim.script(fill="return a + b")
    neovim.open("def add(a, b):\n    \n")
    neovim.type("jA")
    neovim.type("x<BS>")
    neovim.until_ghost("return a + b")
    (mark,) = neovim.marks()
    assert (mark["row"], mark["col"], mark["virt_text_pos"]) == (1, 4, "inline")
