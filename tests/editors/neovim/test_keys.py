from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import Neovim

KEYS = ("<Tab>", "<M-l>", "<C-Right>", "<C-L>", "<C-]>", "<M-\\>")


@pytest.mark.parametrize(
    ("keys", "text"),
    [("i<Tab>x<Tab>", "\tx\tone two"), ("i<C-Right>x", "one xtwo"), ("itw<C-]>", "the worldone two")],
    ids=["a_tab", "a_move", "an_abbreviation"],
)
def test_a_key_keeps_its_meaning_of_insert_mode(neovim: Neovim, keys: str, text: str) -> None:
    neovim.open("one two\n")
    neovim.command("setlocal noexpandtab")
    neovim.command("iabbrev <buffer> tw the world")
    neovim.type(keys)
    assert neovim.text() == text


@pytest.mark.parametrize("key", ["<M-]>", "<M-[>", "<M-l>", "<M-a>"])
def test_an_alt_key_types_nothing_where_there_is_nothing(neovim: Neovim, key: str) -> None:
    neovim.open("one two\n")
    neovim.type(f"i{key}x")
    assert (neovim.text(), neovim.mode()) == ("xone two", "i")


def test_keys_of_normal_mode_keep_their_meaning(neovim: Neovim) -> None:
    neovim.open("one\ntwo\n")
    neovim.type("Gggx<C-O>")
    assert neovim.cursor()[0] == 1
    neovim.type("<Tab>")
    assert neovim.cursor()[0] == 0
    neovim.type("2<Tab>")
    assert neovim.mode() == "n"


OF_THE_BUFFER = "autocmd BufReadPost * ++once lua vim.keymap.set('i', '<Tab>', 'mapped', { buffer = true })"
MAPPINGS = {
    "text": "lua vim.keymap.set('i', '<Tab>', 'mapped')",
    "lua": "lua vim.keymap.set('i', '<Tab>', function() vim.api.nvim_put({ 'mapped' }, 'c', false, true) end)",
    "expr": "lua vim.keymap.set('i', '<Tab>', function() return 'mapped' end, { expr = true })",
    "vim expr": "inoremap <expr> <Tab> 'map' .. 'ped'",
    "plug": "inoremap <Plug>(x) mapped| imap <Tab> <Plug>(x)",
    "buffer": OF_THE_BUFFER,
}


@pytest.mark.parametrize("kind", MAPPINGS)
def test_the_users_own_mapping_runs_when_there_is_nothing_to_accept(neovim: Neovim, kind: str) -> None:
    neovim.command(MAPPINGS[kind])
    try:
        neovim.open("one two\n")
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
    bare.command(OF_THE_BUFFER)
    bare.open("\n")
    assert bare.lua("return vim.fn.maparg('<Tab>', 'i', false, true).desc") == "Calomel: accept"
    bare.lua("vim.lsp.enable('calomel', false)")
    bare.until(lambda: bare.lua("return vim.fn.maparg('<Tab>', 'i')") == "mapped", "the user's mapping is back")
    assert [key for key in KEYS[1:] if bare.lua("return vim.fn.maparg(..., 'i')", key)] == []


@pytest.mark.e2e
def test_keys_are_the_users_choice(bare: Neovim) -> None:
    bare.setup(keys={"accept": "<C-y>", "dismiss": False})
    bare.offered("12")
    assert bare.lua("return vim.fn.maparg('<C-]>', 'i')") == ""
    bare.type("<C-y>")
    bare.until_text("x = 12")


def test_keys_that_come_in_one_go_see_what_was_typed_before_them(neovim: Neovim) -> None:
    neovim.offered("first + second")
    neovim.type("first<C-Right><C-Right>!<Tab>")
    assert neovim.text() == "x = first + second!\t"


BLOCK = {"def f(x):\n": "    return x", "def f(x):\n    ": "return x"}


def test_ghost_text_where_a_line_begins_leaves_tab_to_indent(neovim: Neovim) -> None:
    neovim.offered("    return x", "def f(x):\n", "o", "expandtab shiftwidth=4 softtabstop=4", fill=BLOCK)
    assert neovim.hint() == "<M-l>"
    neovim.type("<Tab>")
    assert neovim.text() == "def f(x):\n    "
    neovim.until_ghost("return x")
    neovim.type("<M-l>")
    assert neovim.text() == "def f(x):\n    return x"


@pytest.mark.e2e
def test_whoever_wants_it_has_tab_take_it_anywhere(bare: Neovim) -> None:
    bare.setup(tab_indents=False)
    bare.offered("    return x", "def f(x):\n", "o", fill=BLOCK)
    assert bare.hint() == ""
    bare.type("<Tab>")
    assert bare.text() == "def f(x):\n    return x"
