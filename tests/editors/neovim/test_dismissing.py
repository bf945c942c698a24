from __future__ import annotations

from tests.editors.neovim.neovim import Neovim

HEAD = "def add(a, b):\n    \n"


def test_what_was_dismissed_does_not_come_back(neovim: Neovim) -> None:
    neovim.script(fill={"    re": "turn a + b", "    r": "eturn a + b"})
    neovim.open(HEAD)
    neovim.type("jAre")
    neovim.until_ghost("turn a + b")
    before = neovim.outcomes().get("rejected", 0)
    neovim.type("<C-]>")
    assert neovim.marks() == []
    assert neovim.mode() == "i"
    assert neovim.text() == HEAD[:-1] + "re"
    neovim.until(lambda: neovim.outcomes().get("rejected", 0) == before + 1)
    for keys in ("<BS>", "e", "<Left><Right>", "<Esc>A"):
        neovim.type(keys)
        neovim.settle()
        assert neovim.marks() == []
    assert "rejected_before" in neovim.status()
    neovim.type("<M-\\>")
    neovim.until_ghost("turn a + b")
    neovim.type("<Tab>")
    neovim.until_text(HEAD[:-1] + "return a + b")


def test_another_suggestion_is_shown_all_the_same(neovim: Neovim) -> None:
    neovim.script(fill={"    re": "turn a + b"})
    neovim.open(HEAD)
    neovim.type("jAre")
    neovim.until_ghost("turn a + b")
    neovim.type("<C-]>")
    neovim.script(fill="ult = a + b")
    neovim.type("s")
    neovim.until_ghost("ult = a + b")
    neovim.type("<Tab>")
    neovim.until_text(HEAD[:-1] + "result = a + b")
