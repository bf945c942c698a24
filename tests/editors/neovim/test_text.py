from __future__ import annotations

import random

import pytest
from tests.editors.neovim.neovim import Neovim

ASTRAL = "𐐷 = '😀é'"


def test_a_file_with_line_ends_of_windows(neovim: Neovim) -> None:
    neovim.script(fill={"def add(a, b):\r\n    re": "turn a + b\r\n\r\nadd(1, 2)"})
    path = neovim.open(b"def add(a, b):\r\n    \r\n")
    neovim.type("jAre")
    neovim.until_ghost("turn a + b\n\nadd(1, 2)")
    neovim.type("<C-l>")
    assert neovim.text() == "def add(a, b):\n    return a + b"
    neovim.settle()
    neovim.type("<Tab>")
    assert neovim.text() == "def add(a, b):\n    return a + b\n\nadd(1, 2)"
    assert neovim.server_text() == "def add(a, b):\r\n    return a + b\r\n\r\nadd(1, 2)\r\n"
    neovim.type("<Esc>")
    neovim.command("silent write")
    assert path.read_bytes() == neovim.server_text().encode()


def test_a_next_edit_of_a_file_with_line_ends_of_windows(neovim: Neovim) -> None:
    neovim.script(edit={"print(old)": "print(new)\r\nprint(2)"})
    neovim.open(b"old = 1\r\nprint(old)\r\n")
    neovim.type("cwnew<Esc>")
    neovim.until(neovim.marks)
    neovim.type("<Tab>")
    assert neovim.text() == "new = 1\nprint(new)\nprint(2)"
    assert neovim.server_text() == "new = 1\r\nprint(new)\r\nprint(2)\r\n"


def test_line_ends_of_both_kinds_stay_where_they_are(neovim: Neovim) -> None:
    neovim.script(edit={"old": "new"})
    path = neovim.open(b"old = 1\nprint(old)\r\nx = old\nprint(x, old)\r\n")
    neovim.type("cwnew<Esc>")
    neovim.until(neovim.marks)
    neovim.type("<Tab>")
    neovim.until(lambda: neovim.text().count("old") < 3, "it is taken")
    neovim.settle()
    neovim.type("<Tab>")
    neovim.until_text("new = 1\nprint(new)\r\nx = new\nprint(x, new)\r")
    neovim.type("<Esc>")
    neovim.command("silent write")
    assert path.read_bytes() == neovim.server_text().encode() == b"new = 1\nprint(new)\r\nx = new\nprint(x, new)\r\n"


def test_characters_beyond_the_basic_plane(neovim: Neovim) -> None:
    neovim.script(fill={"print(": "𐐷, '😀😀 à')"})
    neovim.open(ASTRAL + "; \n")
    neovim.type("A" + "print(")
    neovim.until_ghost("𐐷, '😀😀 à')")
    for word in ("𐐷", ", ", "'😀😀"):
        before = neovim.text()
        neovim.type("<C-Right>")
        assert len(neovim.text()) > len(before), word
        assert neovim.server_text() == neovim.text() + "\n"
        neovim.settle()
    neovim.type("<Tab>")
    assert neovim.text() == ASTRAL + "; print(𐐷, '😀😀 à')"
    assert neovim.server_text() == neovim.text() + "\n"


def test_a_next_edit_behind_characters_beyond_the_basic_plane(neovim: Neovim) -> None:
    neovim.script(edit={"'😀', old": "'😀', new", "𐐷é": "𐐷éé"})
    neovim.open("old = 1\nprint('😀', old, '😀')\n")
    neovim.type("cwnew<Esc>")
    neovim.until(neovim.marks)
    assert neovim.struck() == ["old"]
    neovim.type("<Tab>")
    assert neovim.text() == "new = 1\nprint('😀', new, '😀')"
    assert neovim.server_text() == neovim.text() + "\n"


@pytest.mark.parametrize("text", ["", "x", "x\n", "x\n\n", "\n\n\n"], ids=repr)
def test_a_suggestion_at_the_very_end(neovim: Neovim, text: str) -> None:
    neovim.script(fill={"print": "(1)\nprint(2)"})
    neovim.open(text)
    neovim.type("Goprint")
    neovim.until_ghost("(1)\nprint(2)")
    neovim.type("<Tab>")
    assert neovim.text().endswith("print(1)\nprint(2)")
    assert neovim.server_text() == neovim.text() + "\n"


def test_lines_at_the_end_of_a_file_are_rewritten(neovim: Neovim) -> None:
    neovim.script(edit={"\nprint(old)\n": "\nprint(new)\nprint(2)\n"})
    neovim.open("old = 1\nprint(old)\n")
    neovim.type("cwnew<Esc>")
    neovim.until(neovim.marks)
    neovim.type("<Tab>")
    assert neovim.text() == "new = 1\nprint(new)\nprint(2)"
    assert neovim.server_text() == neovim.text() + "\n"


def test_after_anything_at_all_the_server_has_the_buffers_text(neovim: Neovim) -> None:
    choices = ["iab <Esc>", "o😀x<Esc>", "<Tab>", "A(<Tab>)<Esc>", "dd", "u", "<C-r>", "xp", "yyP", "J", "gg", "G"]
    choices += [
        "A<C-Right><C-l><Esc>",
        "i<C-]><Esc>",
        "ciwq<Esc>",
        ">>",
        "Vjd",
        "O\u00e9<CR><Esc>",
        "A <BS><BS><Tab><Esc>",
    ]
    numbers = random.Random(20)
    neovim.script(fill="f(😀,\n  y)\n", edit={"ab": "b\na", "x": ""})
    neovim.open("a = 1\nb = '𐐷'\n\nc\n")
    for _ in range(60):
        neovim.type(numbers.choice(choices))
        if numbers.random() < 0.4:
            neovim.settle()
    neovim.settle()
    assert neovim.server_text() == neovim.text() + "\n"
