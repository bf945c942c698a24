from __future__ import annotations

import pytest
from tests.editors.vscode.workbench import Workbench

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# The first `old` was renamed by hand; the other one is far below.
TEXT = "old = 1\n" + "\n" * 8 + "print(old)\n"
RENAMED = TEXT.replace("old = 1", "new = 1")
DONE = RENAMED.replace("print(old)", "print(new)")
LAST = 10


def shown(workbench: Workbench, text: str = TEXT, edit: dict[str, str] | None = None) -> None:
    """The name in the first line was changed, and the change of another line is shown."""
    workbench.script(edit=edit or {"print(old)": "print(new)"})
    workbench.open(text)
    workbench.press("Control+Shift+ArrowRight")
    workbench.type("new")
    workbench.until(workbench.decorations, "a next edit is shown")


def test_the_first_key_goes_there_and_the_second_takes_it(workbench: Workbench) -> None:
    shown(workbench)
    before = workbench.outcomes().count("accepted")
    assert workbench.shown("hint") == [f"Tab: edit on line {LAST} ↓"]
    assert (workbench.struck(), workbench.shown("insertion")) == (["old"], ["new"])
    workbench.press("Tab")
    workbench.until(lambda: workbench.place() == (LAST, 7), "the cursor is at the edit")
    assert workbench.saved() == RENAMED
    workbench.until(lambda: workbench.shown("hint") == ["Tab"], "the hint names the key alone")
    workbench.press("Tab")
    workbench.until_saved(DONE)
    workbench.until(lambda: not workbench.decorations(), "nothing is shown any more")
    workbench.until(lambda: workbench.outcomes().count("accepted") == before + 1, "the server knows of it")
    assert workbench.place() == (LAST, 10)
    workbench.press("Control+z")
    workbench.until(lambda: "print(old)" in "".join(workbench.lines() or []), "one step takes it back")
    assert (workbench.lines() or [""])[0] == "new = 1"


def test_escape_rejects_it_and_it_does_not_come_back(workbench: Workbench) -> None:
    shown(workbench)
    before = workbench.outcomes().count("rejected")
    workbench.press("Escape")
    workbench.until(lambda: not workbench.decorations(), "nothing is shown any more")
    workbench.until(lambda: workbench.outcomes().count("rejected") == before + 1, "the server knows of it")
    workbench.type(" ")
    workbench.until(lambda: "rejected before" in workbench.status()[1], "the status says why nothing comes")
    assert workbench.decorations() == []


def test_keys_are_their_own_again_when_nothing_is_shown(workbench: Workbench) -> None:
    shown(workbench)
    workbench.press("Tab", "Tab")
    workbench.until_saved(DONE)
    workbench.script()
    workbench.until(lambda: not workbench.decorations(), "nothing is shown any more")
    workbench.press("End", "Tab")
    workbench.until_saved(DONE.replace("print(new)", "print(new)  "))


@pytest.mark.parametrize(
    ("after", "struck", "kind", "text"),
    [
        ("print(new, old)", [], "insertion", "new, "),
        ("repr('{new}', 1)", ["print(old)"], "box", "repr('{new}', 1)"),
        ("min()\nmax()\nsum()", ["print(old)"], "box", "min()\nmax()\nsum()"),
        ("print(old)\nprint(old, old)", [], "box", "print(old, old)"),
    ],
    ids=["within_a_line", "other_line", "other_lines", "added_line"],
)
def test_every_kind_of_change_is_shown_and_taken_as_shown(
    workbench: Workbench, after: str, struck: list[str], kind: str, text: str
) -> None:
    before = "old = 1\nprint(old)\ny = 3\n"
    shown(workbench, before, {"print(old)": after})
    workbench.until(lambda: workbench.shown(kind) == [text], f"the {kind}")
    assert workbench.shown("foot") == (["Tab to accept, Esc to dismiss"] if kind == "box" else [])
    assert workbench.struck() == struck
    workbench.press("Tab")
    workbench.until_saved(before.replace("old = 1", "new = 1").replace("print(old)", after))


def test_one_at_the_cursor_is_ghost_text(workbench: Workbench) -> None:
    workbench.script(edit={"x = 33": "x = 33\nthird = 3"})
    workbench.open("new = 1\nx = 3\n")
    workbench.go(2, 6)
    workbench.type("3")
    workbench.until_ghost("third = 3")
    assert workbench.decorations() == []
    workbench.press("Tab")
    workbench.until_saved("new = 1\nx = 33\nthird = 3\n")


def test_beyond_what_can_be_seen_the_hint_stands_at_the_edge_too(workbench: Workbench) -> None:
    shown(workbench, "old = 1\n" + "\n" * 60 + "print(old)\n")
    hint = "Tab: edit on line 62 ↓"
    workbench.until(lambda: workbench.shown("hint") == [hint, hint], "two hints")
    top, edge = (each["top"] for each in workbench.decorations())
    assert edge - top > 200
    workbench.press("Tab")
    workbench.until(lambda: workbench.place() == (62, 7), "the cursor is at the edit")
    workbench.until(lambda: workbench.shown() == ["new", "Tab"], "it is seen as it is")
    workbench.press("Tab")
    workbench.until(lambda: workbench.saved().endswith("print(new)\n"), "it is taken")


def test_taken_piece_by_piece(workbench: Workbench) -> None:
    shown(workbench, "old = 1\nprint(old)\ny = 3\n", {"print(old)": "min(y)\nmax(y)\nprint(old)"})
    before, asked = workbench.outcomes().count("accepted"), len(workbench.asked())
    workbench.press("Control+l")
    workbench.until_saved("new = 1\nmin(y)\nprint(old)\ny = 3\n")
    workbench.until(lambda: workbench.shown("box") == ["max(y)"], "the rest is shown")
    workbench.until(lambda: len(workbench.asked()) > asked, "the editor asks anew")
    workbench.until(lambda: workbench.shown("box") == ["max(y)"], "the rest stays")
    workbench.press("Control+l")
    workbench.until_saved("new = 1\nmin(y)\nmax(y)\nprint(old)\ny = 3\n")
    workbench.until(lambda: workbench.outcomes().count("accepted") == before + 1, "the server knows of it")


def test_it_moves_along_with_lines_typed_above_it(workbench: Workbench) -> None:
    shown(workbench, "old = 1\n\nprint(old)\n")
    workbench.script(seconds=20, edit={})
    workbench.press("Home")
    workbench.type("#")
    workbench.press("Enter")
    workbench.until(
        lambda: workbench.lines() == ["#", "new = 1", "", "print(oldnew)", ""] or workbench.struck() == ["old"]
    )
    assert workbench.struck() == ["old"]
    workbench.script()


def waiting(workbench: Workbench) -> None:
    """An edit far away is shown, and another line is typed."""
    shown(workbench)
    workbench.press("End", "Enter")
    workbench.type("def f(x):")
    workbench.until(lambda: workbench.struck() == ["old"], "it waits")


def test_tab_indents_a_new_line_while_an_edit_waits_elsewhere(workbench: Workbench) -> None:
    waiting(workbench)
    workbench.until(lambda: workbench.shown("hint") == [], "the hint makes room")
    workbench.press("Enter", "Tab")
    workbench.type("return x")
    workbench.until_saved(RENAMED.replace("new = 1\n", "new = 1\ndef f(x):\n    return x\n"))
    workbench.until(lambda: workbench.struck() == ["old"], "it still waits")
    workbench.press("ArrowUp")
    workbench.until(lambda: workbench.shown("hint") == [f"Tab: edit on line {LAST + 2} ↓"], "the hint is back")
    workbench.press("Tab")
    workbench.until(lambda: workbench.place() == (LAST + 2, 7), "the cursor is at the edit")


def test_a_key_of_its_own_goes_there_from_wherever_one_types(workbench: Workbench) -> None:
    waiting(workbench)
    workbench.press("Enter")
    workbench.until(lambda: workbench.struck() == ["old"], "it waits")
    workbench.press("Alt+l")
    workbench.until(lambda: workbench.place() == (LAST + 2, 7), "the cursor is at the edit")
    workbench.press("Alt+l")
    workbench.until_saved(DONE.replace("new = 1\n", "new = 1\ndef f(x):\n\n"))


def test_ghost_text_is_shown_on_the_line_that_is_typed_while_an_edit_waits_elsewhere(workbench: Workbench) -> None:
    shown(workbench)
    workbench.script(fill={"def f": "(x):"}, edit={"print(old)": "print(new)"})
    workbench.press("End", "Enter")
    workbench.type("def f")
    workbench.until_ghost("(x):")
    workbench.until(lambda: workbench.shown("hint") == [], "no hint beside it")
    workbench.press("Tab")
    workbench.until(lambda: "def f(x):" in workbench.saved(), "Tab takes it")


def test_ghost_text_where_a_line_begins_leaves_tab_to_indent(workbench: Workbench) -> None:
    workbench.script(fill={"def f(x):\n": "    return x", "def f(x):\n    ": "return x"})
    workbench.open("def f(x):\n")
    workbench.press("End", "Enter")
    workbench.until_ghost("    return x")
    workbench.press("Tab")
    workbench.until_ghost("return x")
    workbench.press("Tab")
    workbench.until_saved("def f(x):\n        \n")
    workbench.press("Backspace")
    workbench.until_ghost("return x")
    workbench.press("Alt+l")
    workbench.until_saved("def f(x):\n    return x\n")
