from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import Neovim

KEYS = ("<Tab>", "<M-l>", "<C-Right>", "<C-L>", "<C-]>", "<M-\\>")


def quiet(neovim: Neovim, text: str = "one two\n") -> None:
    """A served buffer in which nothing is suggested."""
    neovim.open(text)
    neovim.command("setlocal noexpandtab")


def test_a_tab_is_a_tab(neovim: Neovim) -> None:
    quiet(neovim)
    neovim.type("i<Tab>x<Tab>")
    assert neovim.text() == "\tx\tone two"


def test_a_key_keeps_its_meaning_of_insert_mode(neovim: Neovim) -> None:
    quiet(neovim)
    neovim.type("i<C-Right>x")
    assert neovim.text() == "one xtwo"


def test_an_abbreviation_is_still_triggered(neovim: Neovim) -> None:
    quiet(neovim)
    neovim.command("iabbrev <buffer> tw the world")
    neovim.type("itw<C-]>")
    assert neovim.text() == "the worldone two"


def test_keys_of_normal_mode_keep_their_meaning(neovim: Neovim) -> None:
    neovim.open("one\ntwo\n")
    neovim.type("Gggx<C-O>")
    assert neovim.cursor()[0] == 1
    neovim.type("<Tab>")
    assert neovim.cursor()[0] == 0
    neovim.type("2<Tab>")
    assert neovim.mode() == "n"


MAPPINGS = {
    "text": "vim.keymap.set('i', '<Tab>', 'mapped')",
    "lua": "vim.keymap.set('i', '<Tab>', function() vim.api.nvim_put({ 'mapped' }, 'c', false, true) end)",
    "expr": "vim.keymap.set('i', '<Tab>', function() return 'mapped' end, { expr = true })",
    "vim expr": "vim.cmd([[inoremap <expr> <Tab> 'map' .. 'ped']])",
    "plug": "vim.cmd([[inoremap <Plug>(x) mapped]]) vim.cmd([[imap <Tab> <Plug>(x)]])",
    "buffer": "vim.keymap.set('i', '<Tab>', 'mapped', { buffer = true })",
}


@pytest.mark.parametrize("kind", MAPPINGS)
def test_the_users_own_mapping_runs_when_there_is_nothing_to_accept(neovim: Neovim, kind: str) -> None:
    if kind == "buffer":
        neovim.command("autocmd BufReadPost * ++once lua " + MAPPINGS[kind])
    else:
        neovim.lua(MAPPINGS[kind])
    try:
        quiet(neovim)
        neovim.type("i<Tab>!")
        neovim.until_text("mapped!one two")
        neovim.script(fill={"mapped!": " and shown"})
        neovim.type("<Esc>0Dimapped!")
        neovim.until_ghost(" and shown")
        neovim.type("<Tab>")
        assert neovim.text() == "mapped! and shown"
    finally:
        neovim.lua("pcall(vim.keymap.del, 'i', '<Tab>')")


@pytest.mark.e2e
def test_a_mapping_of_the_buffer_is_back_when_the_server_leaves(bare: Neovim) -> None:
    bare.setup()
    bare.command("autocmd BufReadPost * ++once lua " + MAPPINGS["buffer"])
    bare.open("\n")
    assert bare.lua("return vim.fn.maparg('<Tab>', 'i', false, true).desc") == "Calomel: accept"
    bare.lua("vim.lsp.enable('calomel', false)")
    bare.until(lambda: bare.lua("return vim.fn.maparg('<Tab>', 'i')") == "mapped")
    assert [key for key in KEYS[1:] if bare.lua("return vim.fn.maparg(..., 'i')", key)] == []


@pytest.mark.e2e
def test_keys_are_the_users_choice(bare: Neovim) -> None:
    bare.setup(keys={"accept": "<C-y>", "dismiss": False})
    bare.script(fill={"x = ": "1"})
    bare.open("\n")
    bare.type("ix = ")
    bare.until_ghost("1")
    assert bare.lua("return vim.fn.maparg('<C-]>', 'i')") == ""
    bare.type("<C-y>")
    bare.until_text("x = 1")


@pytest.mark.e2e
def test_without_keys_nothing_is_mapped(bare: Neovim) -> None:
    bare.setup(keys=False)
    bare.open("\n")
    for mode in ("i", "n"):
        assert bare.lua("return #vim.api.nvim_buf_get_keymap(0, ...)", mode) == 0


def test_keys_that_come_in_one_go_see_what_was_typed_before_them(neovim: Neovim) -> None:
    neovim.script(fill={"x = ": "first + second"})
    neovim.open("\n")
    neovim.type("ix = ")
    neovim.until_ghost("first + second")
    neovim.type("first<C-Right><C-Right>!<Tab>")
    assert neovim.text() == "x = first + second!\t"


# The name in the first line was changed, its other use is far below, and a line is opened in between.
FAR = "old = 1\n" + "\n" * 8 + "print(old)\n"


def waiting(neovim: Neovim, text: str = FAR) -> None:
    """The jump to an edit far away is offered, in Insert mode, behind what was typed."""
    neovim.script(edit={"print(old)": "print(new)"})
    neovim.open(text)
    neovim.command("setlocal expandtab shiftwidth=4 softtabstop=4")
    neovim.type("cwnew")
    neovim.until(neovim.marks, "a next edit is shown")
    neovim.settle()


def test_tab_indents_a_new_line_while_an_edit_waits_elsewhere(neovim: Neovim) -> None:
    waiting(neovim)
    neovim.type("<Esc>odef f(x):")
    neovim.until(lambda: neovim.struck() == ["old"], "it waits")
    neovim.settle()
    assert neovim.hint() == ""
    neovim.type("<CR><Tab>return x")
    assert neovim.text().split("\n")[1:3] == ["def f(x):", "    return x"]
    neovim.until(lambda: neovim.struck() == ["old"], "it still waits")
    neovim.type("<Esc>")
    neovim.until(lambda: "edit on line" in neovim.hint(), "the hint is back")
    neovim.type("<Tab>")
    assert neovim.cursor()[0] == 11


def test_tab_is_a_tab_within_a_line_that_is_typed_while_an_edit_waits_elsewhere(neovim: Neovim) -> None:
    waiting(neovim)
    neovim.type("<Esc>ox")
    neovim.until(lambda: neovim.struck() == ["old"], "it waits")
    neovim.settle()
    neovim.type("<Tab># why")
    assert neovim.text().split("\n")[1] == "x   # why"


def test_a_key_of_its_own_goes_there_from_wherever_one_types(neovim: Neovim) -> None:
    waiting(neovim)
    neovim.type("<Esc>odef f(x):<CR>")
    neovim.until(lambda: neovim.struck() == ["old"], "it waits")
    neovim.type("<M-l>")
    assert neovim.cursor()[0] == 11
    neovim.type("<M-l>")
    neovim.until_text("new = 1\ndef f(x):\n" + "\n" * 9 + "print(new)")


def test_ghost_text_is_shown_on_the_line_that_is_typed_while_an_edit_waits_elsewhere(neovim: Neovim) -> None:
    waiting(neovim)
    neovim.script(fill={"def f": "(x):"}, edit={"print(old)": "print(new)"})
    neovim.type("<Esc>odef f")
    neovim.until_ghost("(x):")
    assert neovim.hint() == ""
    neovim.type("<Tab>")
    assert neovim.text().split("\n")[1] == "def f(x):"


def test_ghost_text_where_a_line_begins_leaves_tab_to_indent(neovim: Neovim) -> None:
    neovim.script(fill={"def f(x):\n": "    return x", "def f(x):\n    ": "return x"})
    neovim.open("def f(x):\n")
    neovim.command("setlocal expandtab shiftwidth=4 softtabstop=4")
    neovim.type("o")
    neovim.until_ghost("    return x")
    assert neovim.hint() == "<M-l>"
    neovim.type("<Tab>")
    assert neovim.text() == "def f(x):\n    "
    neovim.until_ghost("return x")
    neovim.type("<M-l>")
    assert neovim.text() == "def f(x):\n    return x"


def test_an_edit_beside_the_beginning_of_a_line_leaves_tab_to_indent(neovim: Neovim) -> None:
    neovim.script(edit={"print(old)": "print(new)"})
    neovim.open("\nold = 1\nprint(old)\n")
    neovim.command("setlocal expandtab shiftwidth=4 softtabstop=4")
    neovim.type("jcwnew<Esc>ggi")
    neovim.until(lambda: neovim.struck() == ["old"], "a next edit is shown")
    assert neovim.hint() == "<M-l>"
    neovim.type("<Tab>")
    assert neovim.text().split("\n")[0] == "    "
    neovim.until(lambda: neovim.struck() == ["old"], "it is still shown")
    neovim.type("<Esc>")
    neovim.until(lambda: neovim.hint() == "<Tab>", "Tab takes it outside of Insert mode")
    neovim.type("<Tab>")
    neovim.until_text("    \nnew = 1\nprint(new)")


@pytest.mark.e2e
def test_whoever_wants_it_has_tab_take_it_anywhere(bare: Neovim) -> None:
    bare.setup(tab_indents=False)
    bare.script(fill={"def f(x):\n": "    return x"})
    bare.open("def f(x):\n")
    bare.type("o")
    bare.until_ghost("    return x")
    assert bare.hint() == ""
    bare.type("<Tab>")
    assert bare.text() == "def f(x):\n    return x"
