from __future__ import annotations

from tests.editors.neovim.neovim import Neovim
from tests.editors.shared import HELPER, SHOP

HINT = "<Tab>: edit in helper.py:1"


def announced(neovim: Neovim, function: str) -> None:
    """A function is renamed; what is left to be done is in another open file."""
    neovim.open(HELPER.replace("total", function), "helper.py")
    neovim.open(SHOP.replace("total", function), "shop.py")
    # The server remembers what other tests renamed.
    neovim.script(edit={function: function.upper()})
    neovim.type(f"wcw{function.upper()}<Esc>")
    neovim.until(lambda: neovim.hint() == HINT, "the hint")
    neovim.settle()


def name(neovim: Neovim) -> str:
    return str(neovim.lua("return vim.fs.basename(vim.api.nvim_buf_get_name(0))"))


def test_the_first_key_goes_to_the_other_file_and_the_second_takes_it_there(neovim: Neovim) -> None:
    announced(neovim, "mean")
    assert (neovim.struck(), neovim.ghost(), name(neovim)) == ([], "", "shop.py")
    before = HELPER.replace("total", "mean")[:-1]
    with neovim.learns("accepted"):
        neovim.type("<Tab>")
        assert (name(neovim), neovim.cursor(), neovim.text()) == ("helper.py", (0, 17), before)
        assert (neovim.struck(), neovim.ghost(), neovim.hint()) == (["mean"], "MEAN", "<Tab>")
        neovim.type("<Tab>")
        neovim.until_text(before.replace("import mean", "import MEAN"))
    neovim.until(lambda: neovim.ghost() == "MEAN", "the next one follows")
    neovim.type("<Tab><Tab>")
    neovim.holds(before.replace("mean", "MEAN"))
    neovim.type("<C-o><C-o>")
    neovim.until(lambda: name(neovim) == "shop.py", "the way back")


def test_rejected_it_does_not_come_back(neovim: Neovim) -> None:
    announced(neovim, "largest")
    with neovim.learns("rejected"):
        neovim.type("<C-]>")
        assert neovim.marks() == []


def test_tab_indents_while_it_waits(neovim: Neovim) -> None:
    announced(neovim, "smallest")
    neovim.type("o")
    neovim.until(lambda: neovim.hint() == "", "the hint makes room")
    neovim.type("<Tab>x")
    assert (name(neovim), neovim.text().split("\n")[1].strip()) == ("shop.py", "x")


def test_one_that_holds_no_more_is_gone_to_by_no_key(neovim: Neovim) -> None:
    announced(neovim, "median")
    neovim.script()
    neovim.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('helper.py'), 0, 1, true, { 'import shop' })")
    neovim.type("<Tab>")
    assert (name(neovim), neovim.marks()) == ("shop.py", [])


def test_it_is_shown_in_the_window_that_has_its_file(neovim: Neovim) -> None:
    neovim.open(HELPER, "helper.py")
    neovim.command("split")
    announced(neovim, "variance")
    neovim.type("<Tab>")
    assert (name(neovim), neovim.lua("return #vim.api.nvim_list_wins()")) == ("helper.py", 2)
