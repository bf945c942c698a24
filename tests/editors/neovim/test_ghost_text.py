from __future__ import annotations

from tests.editors.neovim.neovim import Neovim

HEAD = "def add(a, b):\n    \n"


def test_it_appears_while_typing(neovim: Neovim) -> None:
    neovim.script(fill="turn a + b")
    neovim.open(HEAD)
    neovim.type("jAre")
    neovim.until_ghost("turn a + b")
    (mark,) = neovim.marks()
    assert (mark["row"], mark["col"], mark["virt_text_pos"]) == (1, 6, "inline")
    assert neovim.screen(1) == "    return a + b"
    assert neovim.text() == "def add(a, b):\n    re"


def test_several_lines_stand_below_each_other(neovim: Neovim) -> None:
    neovim.script(fill="add(a, b):\n    return a + b")
    neovim.open("\nx = 1\n")
    neovim.type("idef ")
    neovim.until_ghost("add(a, b):\n    return a + b")
    assert [neovim.screen(row) for row in range(3)] == ["def add(a, b):", "    return a + b", "x = 1"]


def test_text_behind_the_cursor_stays_readable(neovim: Neovim) -> None:
    neovim.script(fill="1,\n  2")
    neovim.open("x = []\n")
    neovim.type("f]ia<BS>")
    neovim.until_ghost("1,\n  2")
    assert [neovim.screen(row) for row in range(2)] == ["x = [1,", "  2]"]


def test_a_tab_in_it_is_as_wide_as_in_the_buffer(neovim: Neovim) -> None:
    neovim.script(fill="type T struct {\n\ty int\n}")
    neovim.open("\n", name="a.go", filetype="go")
    neovim.command("setlocal tabstop=4")
    neovim.type("i <BS>")
    neovim.until_ghost("type T struct {\n    y int\n}")
    neovim.type("<M-l>")
    neovim.until_text("type T struct {\n\ty int\n}")


def test_typing_along_shortens_it_without_asking(neovim: Neovim) -> None:
    neovim.script(fill="turn a + b")
    neovim.open(HEAD)
    neovim.type("jAre")
    neovim.until_ghost("turn a + b")
    asked = len(neovim.asked())
    neovim.script(fill="something else")
    for typed, left in (("t", "urn a + b"), ("urn", " a + b"), (" a", " + b")):
        neovim.type(typed)
        assert neovim.ghost() == left
        neovim.settle()
        assert neovim.ghost() == left
    assert len(neovim.asked()) == asked


def test_typing_something_else_takes_it_away(neovim: Neovim) -> None:
    neovim.script(fill="turn a + b")
    neovim.open(HEAD)
    neovim.type("jAre")
    neovim.until_ghost("turn a + b")
    neovim.script()
    neovim.type("x")
    assert neovim.ghost() == ""
    neovim.settle()
    assert neovim.marks() == []


def test_deleting_takes_it_away(neovim: Neovim) -> None:
    neovim.script(fill={"re": "turn a + b"})
    neovim.open(HEAD)
    neovim.type("jAre")
    neovim.until_ghost("turn a + b")
    neovim.type("<BS>")
    neovim.settle()
    assert neovim.marks() == []


def test_it_goes_with_insert_mode(neovim: Neovim) -> None:
    neovim.script(fill="turn a + b")
    neovim.open(HEAD)
    neovim.type("jAre")
    neovim.until_ghost("turn a + b")
    neovim.type("<Esc>")
    assert neovim.marks() == []
    neovim.settle()
    assert neovim.marks() == []


def test_it_goes_when_the_cursor_moves_on(neovim: Neovim) -> None:
    neovim.script(fill={"re": "turn a + b"})
    neovim.open(HEAD)
    neovim.type("jAre")
    neovim.until_ghost("turn a + b")
    neovim.type("<Up>")
    assert neovim.marks() == []


def test_an_answer_that_comes_too_late_is_not_shown(neovim: Neovim) -> None:
    neovim.script(fill="turn a + b", seconds=0.15)
    neovim.open(HEAD)
    neovim.type("jAre")
    neovim.until(neovim.asked)
    neovim.script(fill=None)
    neovim.type("x")
    neovim.settle()
    assert neovim.marks() == []


def test_many_keys_at_once_end_in_one_ghost_text(neovim: Neovim) -> None:
    neovim.script(fill={"def add(a, b):\n    return": " a + b"})
    neovim.open("\n")
    neovim.type("idef add(a, b):<CR>    return")
    neovim.until_ghost(" a + b")
    assert neovim.server_text() == "def add(a, b):\n    return\n"
