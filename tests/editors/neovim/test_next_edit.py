from __future__ import annotations

import pytest
from tests.editors.neovim.neovim import Neovim

# The first `old` was renamed by hand; the other one is far below.
TEXT = "old = 1\n" + "\n" * 8 + "print(old)\n"
RENAMED = TEXT.replace("old = 1", "new = 1")
DONE = RENAMED.replace("print(old)", "print(new)")
LAST = 9


def shown(neovim: Neovim, text: str = TEXT, edit: dict[str, str] | None = None) -> None:
    """The name in the first line was changed, and the change of the other one is shown in Normal mode."""
    neovim.script(edit=edit or {"print(old)": "print(new)"})
    neovim.open(text)
    neovim.type("cwnew<Esc>")
    neovim.until(neovim.marks, "a next edit is shown")
    neovim.settle()


def test_it_is_shown_where_it_is_with_what_goes_struck_and_what_comes_beside_it(neovim: Neovim) -> None:
    shown(neovim)
    assert neovim.struck() == ["old"]
    assert neovim.ghost() == "new"
    rows = {mark["row"] for mark in neovim.marks() if mark.get("hl_group") == "CalomelDelete"}
    assert rows == {LAST}
    assert neovim.text() == RENAMED[:-1]


def test_the_hint_at_the_cursor_says_where_it_is(neovim: Neovim) -> None:
    shown(neovim)
    assert neovim.hint() == f"<Tab>: edit on line {LAST + 1} ↓"
    assert neovim.screen(0).split("  ")[0] == "new = 1"
    assert neovim.screen(0).endswith(f" <Tab>: edit on line {LAST + 1} ↓")


def test_the_first_key_goes_there_and_the_second_takes_it(neovim: Neovim) -> None:
    shown(neovim)
    before = neovim.outcomes().get("accepted", 0)
    neovim.type("<Tab>")
    assert neovim.cursor() == (LAST, 6)
    assert neovim.text() == RENAMED[:-1]
    assert (neovim.struck(), neovim.hint()) == (["old"], "<Tab>")
    neovim.type("<Tab>")
    assert neovim.text() == DONE[:-1]
    assert neovim.cursor()[0] == LAST
    assert neovim.server_text() == DONE
    neovim.until(lambda: neovim.outcomes().get("accepted", 0) == before + 1)
    neovim.type("``")
    assert neovim.cursor()[0] == 0


def test_it_can_be_taken_in_insert_mode(neovim: Neovim) -> None:
    neovim.script(edit={"print(old)": "print(new)"})
    neovim.open(TEXT)
    neovim.type("cwnew")
    neovim.until(neovim.marks)
    neovim.type("<Tab>")
    assert neovim.cursor()[0] == LAST
    assert neovim.mode() == "i"
    neovim.type("<Tab>")
    assert neovim.text() == DONE[:-1]
    assert neovim.mode() == "i"


def test_undo_takes_it_back_alone(neovim: Neovim) -> None:
    shown(neovim)
    neovim.type("<Tab><Tab>")
    assert neovim.text() == DONE[:-1]
    neovim.type("u")
    assert neovim.text() == RENAMED[:-1]
    assert neovim.server_text() == RENAMED


def test_one_nearby_is_taken_by_one_key(neovim: Neovim) -> None:
    shown(neovim, "old = 1\nprint(old)\n")
    assert neovim.hint() == "<Tab>"
    neovim.type("<Tab>")
    assert neovim.text() == "new = 1\nprint(new)"


def test_behind_one_that_changes_several_places_comes_the_next(neovim: Neovim) -> None:
    text = "old = 1\nold = old - old\nif old:\n    old = 0\n" + "\n" * 40 + "print(old)\n"
    shown(neovim, text, {"old": "new"})
    assert len(neovim.struck()) >= 3
    neovim.type("<Tab>")
    neovim.until(neovim.marks, "the next one is shown")
    neovim.type("<Tab><Tab>")
    neovim.until_text(text.replace("old", "new")[:-1])


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
def test_every_kind_of_change_is_shown_and_taken_as_shown(
    neovim: Neovim, after: str, struck: list[str], inserted: str
) -> None:
    text = "old = 1\nprint(old)\ny = 3\n"
    shown(neovim, text, {"print(old)": after})
    assert neovim.struck() == struck
    assert neovim.ghost() == inserted
    neovim.type("<Tab>")
    assert neovim.text() + "\n" == text.replace("old = 1", "new = 1").replace("print(old)", after)
    assert neovim.server_text() == neovim.text() + "\n"


def test_a_line_above_the_first_one_is_shown_above_it(neovim: Neovim) -> None:
    neovim.script(edit={"x = os": "import os\n\nx = os"})
    neovim.open("x = a\n")
    neovim.type("f=wcwos<Esc>")
    neovim.until(neovim.marks)
    assert neovim.ghost() == "import os\n"
    neovim.type("<Tab>")
    assert neovim.text() == "import os\n\nx = os"


def test_dismissed_it_does_not_come_back(neovim: Neovim) -> None:
    shown(neovim)
    before = neovim.outcomes().get("rejected", 0)
    neovim.type("<C-]>")
    assert neovim.marks() == []
    neovim.until(lambda: neovim.outcomes().get("rejected", 0) == before + 1)
    neovim.type("ja <BS><Esc>")
    neovim.settle()
    assert neovim.marks() == []
    assert "rejected_before" in neovim.status()
    neovim.until(lambda: neovim.lua("return require('calomel').suggest()"))
    neovim.until(neovim.marks, "asked for, it is shown again")
    neovim.type("<Tab><Tab>")
    assert "print(new)" in neovim.text()


def test_it_moves_along_with_lines_typed_above_it(neovim: Neovim) -> None:
    shown(neovim)
    neovim.script(seconds=5, edit={})
    neovim.type("O# first<Esc>")
    assert neovim.struck() == ["old"]
    (row,) = {mark["row"] for mark in neovim.marks() if mark.get("hl_group") == "CalomelDelete"}
    assert row == LAST + 1


def test_it_goes_when_its_text_changes(neovim: Neovim) -> None:
    shown(neovim)
    neovim.script()
    neovim.lua("vim.api.nvim_buf_set_lines(0, ...)", LAST, LAST + 1, True, ["pass"])
    neovim.until(lambda: neovim.marks() == [])


def test_it_goes_when_the_user_works_elsewhere(neovim: Neovim) -> None:
    shown(neovim, "old = 1\nprint(old)\n" + "\n" * 30)
    neovim.type("20G")
    assert neovim.marks() == []


@pytest.mark.e2e
def test_without_a_key_the_hint_names_the_place_alone(bare: Neovim) -> None:
    bare.setup(keys=False)
    shown(bare)
    assert bare.hint() == f"edit on line {LAST + 1} ↓"
    assert bare.lua("return require('calomel').accept()") is True
    assert bare.cursor()[0] == LAST


@pytest.mark.e2e
def test_off_there_are_none(bare: Neovim) -> None:
    bare.script(edit={"print(old)": "print(new)"})
    bare.setup(next_edit=False)
    bare.open(TEXT)
    bare.type("cwnew<Esc>")
    bare.settle()
    assert bare.marks() == []
    assert bare.asked() == []
