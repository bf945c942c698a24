from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.shared import CHAIN, CHAINED, CHANGED, FAR, HELPER, RENAME, SHOP

# A name that was changed in the first line; the other use of it is far below.
RENAMED = FAR.replace("old = 1", "new = 1")
DONE = RENAMED.replace("print(old)", "print(new)")
LAST = 9
INDENTING = "expandtab shiftwidth=4 softtabstop=4"
HINT = f"<Tab>: edit on line {LAST + 1} ↓"


def struck_row(neovim: Neovim) -> int:
    (row,) = {int(mark["row"]) for mark in neovim.marks() if mark.get("hl_group") == "CalomelDelete"}
    return row


def test_it_is_shown_where_it_is_and_the_hint_at_the_cursor_says_where_that_is(neovim: Neovim) -> None:
    neovim.edited(FAR)
    assert (neovim.struck(), neovim.ghost(), struck_row(neovim)) == (["old"], "new", LAST)
    assert neovim.text() == RENAMED[:-1]
    assert neovim.hint() == HINT
    assert neovim.screen(0).split("  ")[0] == "new = 1"
    assert neovim.screen(0).endswith(f" {HINT}")


def test_the_first_key_goes_there_the_second_takes_it_and_undo_takes_it_back_alone(neovim: Neovim) -> None:
    neovim.edited(FAR)
    with neovim.learns("accepted"):
        neovim.type("<Tab>")
        assert neovim.cursor() == (LAST, 6)
        assert neovim.text() == RENAMED[:-1]
        assert (neovim.struck(), neovim.hint()) == (["old"], "<Tab>")
        neovim.type("<Tab>")
        neovim.holds(DONE[:-1])
        assert neovim.cursor()[0] == LAST
    neovim.type("``")
    assert neovim.cursor()[0] == 0
    neovim.type("u")
    neovim.holds(RENAMED[:-1])


@pytest.mark.parametrize(
    ("after", "struck", "inserted"),
    [
        ("print(old)\nprint(old, old)", [], "print(old, old)"),
        ("", ["print(old)"], ""),
        ("min()\nmax()\nsum()", ["print(old)"], "min()\nmax()\nsum()"),
        ("repr('{new}', 1)", ["print(old)"], "repr('{new}', 1)"),
        ("print(new, old)", [], "new, "),
    ],
    ids=["added_line", "removed_text", "other_lines", "other_line", "within_a_line"],
)
def test_every_kind_of_change_nearby_is_shown_and_taken_as_shown_by_one_key(
    neovim: Neovim, after: str, struck: list[str], inserted: str
) -> None:
    text = "old = 1\nprint(old)\ny = 3\n"
    neovim.edited(text, **{"print(old)": after})
    assert neovim.struck() == struck
    assert neovim.ghost() == inserted
    neovim.type("<Tab>")
    neovim.holds(text.replace("old = 1", "new = 1").replace("print(old)", after)[:-1])


def test_what_was_shown_before_the_last_keys_is_not_taken_but_asked_for_anew(neovim: Neovim) -> None:
    neovim.edited("old = 1\nprint(old)\n")
    neovim.script(edit={"print(old)": "print(newer)"}, seconds=0.5)
    neovim.type("aer<Tab>")
    neovim.until(lambda: neovim.ghost() == "newer", "the edit that goes on with what was typed is shown")
    assert neovim.text() == "newer = 1\nprint(old)"
    neovim.type("<Tab>")
    neovim.holds("newer = 1\nprint(newer)")


def test_what_comes_looks_the_same_beside_what_goes_as_alone(neovim: Neovim) -> None:
    def looks(after: str) -> list[int]:
        neovim.edited("old = 1\nprint(old)\n", **{"print(old)": after})
        neovim.command("redraw")
        row = neovim.screen(1)
        at = row.index("new")
        found = [neovim.lua("return vim.fn.screenattr(2, ...)", column + 1) for column in range(at, at + 3)]
        neovim.clean_up()
        return found

    assert looks("print(new)") == looks("print(new, old)")


def test_a_tab_that_comes_before_the_edit_writes_no_blanks_into_a_word(neovim: Neovim) -> None:
    neovim.script(seconds=0.4, edit={"area(room)": "surface(room)"})
    neovim.open("def area(room):\n    pass\n\n\narea(room)\n")
    neovim.type("wcwsurface")
    neovim.type("<Tab>")
    assert neovim.text().startswith("def surface(room):")
    neovim.until(neovim.marks, "the edit that was waited for")
    neovim.type("<Tab><Tab>")
    neovim.holds("def surface(room):\n    pass\n\n\nsurface(room)")
    # Where nothing is asked, it is a tab.
    neovim.settle()
    neovim.type("<Esc>gg0wea")
    neovim.settle()
    neovim.type("<Tab>")
    assert neovim.text().startswith("def surface\t(room):") or neovim.text().startswith("def surface ")


def test_the_second_key_takes_it_where_a_line_begins_too(neovim: Neovim) -> None:
    text = "old = 1\n" + "\n" * 8 + "show(old)\n"
    neovim.edited(text, **{"show(old)": "await show(old)"})
    neovim.type("A<Tab>")
    assert (neovim.cursor(), neovim.hint()) == ((LAST, 0), "<Tab>")
    neovim.type("<Tab>")
    neovim.holds(text.replace("old = 1", "new = 1").replace("show", "await show")[:-1])


def test_one_behind_characters_beyond_the_basic_plane(neovim: Neovim) -> None:
    neovim.edited("old = 1\nprint('😀', old, '😀')\n", **{"'😀', old": "'😀', new"})
    assert (neovim.struck(), neovim.hint()) == (["old"], "<Tab>")
    neovim.type("<Tab>")
    neovim.holds("new = 1\nprint('😀', new, '😀')")


def test_line_ends_of_both_kinds_stay_where_they_are(neovim: Neovim) -> None:
    neovim.script(edit={"old": "new"})
    path = neovim.open(b"old = 1\nprint(old)\r\nx = old\nprint(x, old)\r\n")
    neovim.type("cwnew<Esc>")
    neovim.until(neovim.marks, "a next edit is shown")
    neovim.type("<Tab>")
    neovim.until(lambda: neovim.text().count("old") < 3, "it is taken")
    neovim.settle()
    neovim.type("<Tab>")
    neovim.until_text("new = 1\nprint(new)\r\nx = new\nprint(x, new)\r")
    neovim.type("<Esc>")
    neovim.command("silent write")
    assert path.read_bytes() == neovim.server_text().encode() == b"new = 1\nprint(new)\r\nx = new\nprint(x, new)\r\n"


def test_dismissed_it_does_not_come_back_unless_it_is_asked_for(neovim: Neovim) -> None:
    neovim.edited(FAR)
    with neovim.learns("rejected"):
        neovim.type("<C-]>")
        assert neovim.marks() == []
    neovim.type("ja <BS><Esc>")
    neovim.settle()
    assert neovim.marks() == []
    assert neovim.count("rejected_before") > 0
    neovim.until(lambda: neovim.lua("return require('calomel').suggest()"), "it is asked for")
    neovim.until(neovim.marks, "asked for, it is shown again")
    neovim.type("<Tab><Tab>")
    assert "print(new)" in neovim.text()


def test_what_follows_from_one_answer_is_counted_and_comes_at_once(neovim: Neovim) -> None:
    neovim.edited(CHAINED, **CHAIN)
    assert neovim.hint() == "<Tab> · 1 of 2 · <M-a>: all"
    asked = len(neovim.asked())
    neovim.type("<Tab>")
    neovim.until(lambda: neovim.hint() == "<Tab>: edit on line 6 ↓ · 2 of 2", "the edit that follows is announced")
    neovim.type("<Tab>")
    assert neovim.hint() == "<Tab> · 2 of 2"
    assert len(neovim.asked()) == asked, "the model is not asked again"
    neovim.type("<Tab>")
    neovim.holds(CHANGED[:-1])
    neovim.until(lambda: neovim.hint() == "done", "it is said that there are no more")
    neovim.until(lambda: neovim.marks() == [], "for a moment")


def test_one_key_takes_all_that_follows_as_one_step(neovim: Neovim) -> None:
    neovim.edited(CHAINED, **CHAIN)
    with neovim.learns("accepted"):
        neovim.type("<M-a>")
        neovim.holds(CHANGED[:-1])
    assert (neovim.cursor(), neovim.marks()) == ((0, 13), [])
    neovim.type("u")
    neovim.holds(CHAINED.replace("old", "new")[:-1])


def test_a_rejected_edit_takes_what_follows_with_it(neovim: Neovim) -> None:
    neovim.edited(CHAINED, **CHAIN)
    with neovim.learns("rejected"):
        neovim.type("<C-]>")
    neovim.type("ja <BS><Esc>")
    neovim.settle()
    assert (neovim.marks(), neovim.count("rejected_before") > 0) == ([], True)


def test_unchanged_lines_between_changes_are_not_marked(neovim: Neovim) -> None:
    before = "old = alpha(1)\nkeep()\nkeep()\nbeta(1)\n"
    neovim.edited(before, **CHAIN)
    assert neovim.struck() == ["1", "1"]
    assert {mark["row"] for mark in neovim.marks()} == {0, 3}
    neovim.type("<Tab>")
    neovim.holds(before.replace("old", "new").replace("(1)", "(2)")[:-1])


PROBLEM = """
local namespace = vim.api.nvim_create_namespace("test")
vim.diagnostic.set(namespace, 0, { { lnum = 9, col = 6, end_lnum = 9, end_col = 9, message = "unknown name" } })
"""


def test_it_is_offered_at_a_problem_that_one_goes_to_without_typing_anything(neovim: Neovim) -> None:
    neovim.script(edit=RENAME)
    neovim.open(FAR.replace("old = 1", "new = 1"))
    neovim.lua(PROBLEM)
    neovim.type("jk")
    neovim.settle()
    assert neovim.marks() == []
    neovim.lua("vim.diagnostic.jump({ count = 1, float = false })")
    neovim.until(lambda: neovim.struck() == ["old"], "the edit is shown there")
    neovim.type("<Tab>")
    neovim.holds(DONE[:-1])


def test_it_moves_along_with_lines_typed_above_it(neovim: Neovim) -> None:
    neovim.edited(FAR)
    neovim.script(seconds=5, edit={})
    neovim.type("O# first<Esc>")
    assert neovim.struck() == ["old"]
    assert struck_row(neovim) == LAST + 1


def test_it_goes_when_its_text_changes(neovim: Neovim) -> None:
    neovim.edited(FAR)
    neovim.script()
    neovim.lua("vim.api.nvim_buf_set_lines(0, ...)", LAST, LAST + 1, True, ["pass"])
    neovim.until(lambda: neovim.marks() == [], "it goes")


def test_it_goes_when_the_user_works_elsewhere(neovim: Neovim) -> None:
    neovim.edited("old = 1\nprint(old)\n" + "\n" * 30)
    neovim.type("20G")
    assert neovim.marks() == []


def typing(neovim: Neovim, keys: str) -> None:
    """The jump to an edit far away is offered while another line is typed."""
    neovim.edited(FAR, "cwnew", INDENTING)
    neovim.type(keys)
    neovim.until(lambda: neovim.struck() == ["old"], "it waits")
    neovim.settle()


def test_tab_indents_a_new_line_while_an_edit_waits_elsewhere(neovim: Neovim) -> None:
    typing(neovim, "<Esc>odef f(x):")
    assert neovim.hint() == ""
    neovim.type("<CR><Tab>return x")
    assert neovim.text().split("\n")[1:3] == ["def f(x):", "    return x"]
    neovim.until(lambda: neovim.struck() == ["old"], "it still waits")
    neovim.type("<Esc>")
    neovim.until(lambda: "edit on line" in neovim.hint(), "the hint is back")
    neovim.type("<Tab>")
    assert neovim.cursor()[0] == 11


def test_a_key_of_its_own_goes_there_from_wherever_one_types(neovim: Neovim) -> None:
    typing(neovim, "<Esc>odef f(x):<CR>")
    neovim.type("<M-l>")
    assert neovim.cursor()[0] == 11
    neovim.type("<M-l>")
    neovim.until_text("new = 1\ndef f(x):\n" + "\n" * 9 + "print(new)")


def test_ghost_text_is_shown_on_the_line_that_is_typed_while_an_edit_waits_elsewhere(neovim: Neovim) -> None:
    neovim.edited(FAR, "cwnew")
    neovim.script(fill={"def f": "(x):"}, edit=RENAME)
    neovim.type("<Esc>odef f")
    neovim.until_ghost("(x):")
    assert neovim.hint() == ""
    neovim.type("<Tab>")
    assert neovim.text().split("\n")[1] == "def f(x):"


def test_an_edit_beside_the_beginning_of_a_line_leaves_tab_to_indent(neovim: Neovim) -> None:
    neovim.edited("\nold = 1\nprint(old)\n", "jcwnew<Esc>ggi", INDENTING)
    assert (neovim.struck(), neovim.hint()) == (["old"], "<M-l>")
    neovim.type("<Tab>")
    assert neovim.text().split("\n")[0] == "    "
    neovim.until(lambda: neovim.struck() == ["old"], "it is still shown")
    neovim.type("<Esc>")
    neovim.until(lambda: neovim.hint() == "<Tab>", "Tab takes it outside of Insert mode")
    neovim.type("<Tab>")
    neovim.until_text("    \nnew = 1\nprint(new)")


@pytest.mark.e2e
def test_without_a_key_the_hint_names_the_place_alone(bare: Neovim) -> None:
    bare.setup(keys=False)
    bare.edited(FAR)
    assert bare.hint() == HINT.removeprefix("<Tab>: ")
    assert bare.lua("return require('calomel').accept()") is True
    assert bare.cursor()[0] == LAST


@pytest.mark.e2e
def test_off_there_are_none(bare: Neovim) -> None:
    bare.script(edit=RENAME)
    bare.setup(next_edit=False)
    bare.open(FAR)
    bare.type("cwnew<Esc>")
    bare.settle()
    assert bare.marks() == []
    assert bare.asked() == []


ELSEWHERE = "<Tab>: edit in helper.py:1"


def announced(neovim: Neovim, function: str) -> None:
    """A function is renamed; what is left to be done is in another open file."""
    neovim.open(HELPER.replace("total", function), "helper.py")
    neovim.open(SHOP.replace("total", function), "shop.py")
    # The server remembers what other tests renamed.
    neovim.script(edit={function: function.upper()})
    neovim.type(f"wcw{function.upper()}<Esc>")
    neovim.until(lambda: neovim.hint() == ELSEWHERE, "the hint")
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
