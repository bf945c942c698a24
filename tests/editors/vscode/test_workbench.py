from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.editors.shared import CHAIN, CHAINED, CHANGED, FAR, HEAD, HELPER, RENAME, SHOP
from tests.editors.vscode.workbench import Workbench

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# A name that was changed in the first line; the other use of it is far below.
RENAMED = FAR.replace("old = 1", "new = 1")
DONE = RENAMED.replace("print(old)", "print(new)")
LAST = 10
# What goes on behind its first line, and the time in which the rest would be shown.
WHOLE = "turn a + b\n\n\ndef sub(a, b):\n    return a - b"
REST_SECONDS = 0.5


def until_gone(workbench: Workbench) -> None:
    workbench.until(lambda: not workbench.decorations(), "nothing is shown any more")


def until_hint(workbench: Workbench, *hints: str) -> None:
    workbench.until(lambda: workbench.shown("hint") == list(hints), f"the hints {hints}")


def until_place(workbench: Workbench, line: int, column: int) -> None:
    workbench.until(lambda: workbench.place() == (line, column), f"the cursor is at {line}:{column}")


def test_it_appears_while_typing_and_tab_takes_it(workbench: Workbench) -> None:
    workbench.offered(HEAD, (2, 5), "re", "turn a + b")
    with workbench.learns("accepted"):
        workbench.press("Tab")
        workbench.until_saved("def add(a, b):\n    return a + b\n")


# The editor itself waits 0.75 s for ghost text; then it opens its menu, or would if it had anything for it.
@pytest.mark.parametrize("seconds", [0.2, 0.7, 1.5])
@pytest.mark.parametrize(("typed", "rest"), [("return ", "a + b"), ("re", "turn a + b")], ids=["place", "word"])
def test_however_long_the_model_takes_its_text_is_shown_where_the_cursor_waits(
    workbench: Workbench, seconds: float, typed: str, rest: str
) -> None:
    workbench.offered(HEAD, (2, 5), typed, rest, seconds=seconds)
    with workbench.learns("accepted"):
        workbench.press("Tab")
        workbench.until_saved("def add(a, b):\n    return a + b\n")


@pytest.mark.parametrize("seconds", [0.2, 0.7, 1.5, 3.0])
def test_however_long_the_model_takes_its_edit_is_shown_where_the_cursor_waits(
    workbench: Workbench, seconds: float
) -> None:
    workbench.edited(FAR, seconds=seconds)
    until_hint(workbench, f"Tab: edit on line {LAST} ↓")
    with workbench.learns("accepted"):
        workbench.press("Tab")
        until_place(workbench, LAST, 7)
        workbench.press("Tab")


def test_text_that_does_not_go_on_with_the_menu_is_shown_once_that_is_closed(workbench: Workbench) -> None:
    workbench.script(fill={"return to": "day()"}, seconds=1.5)
    workbench.open("total = 1\n\n")
    workbench.go(2)
    workbench.type("return to")
    workbench.until(lambda: workbench.see("menuIsOpen"), "the menu is open")
    workbench.until(workbench.asked, "the model answers")
    workbench.until(lambda: workbench.asked()[-1]["prefix"].endswith("return to"), "the model answers")
    assert workbench.ghost() == ""
    workbench.press("Escape")
    workbench.until_ghost("day()")


def test_escape_rejects_it_and_it_does_not_come_back(workbench: Workbench) -> None:
    workbench.offered(HEAD, (2, 5), "re", "turn a + b")
    with workbench.learns("rejected"):
        workbench.press("Escape")
        workbench.until_ghost("")
    workbench.type("x")
    workbench.press("Backspace")
    workbench.until_silent_because("dismissed this suggestion before")


def test_words_and_lines_are_taken_one_by_one(workbench: Workbench) -> None:
    workbench.offered(HEAD, (2, 5), "re", "turn add(a,\n               b)")
    with workbench.learns("partly_accepted"):
        workbench.press("Control+ArrowRight")
        workbench.until_ghost(" add(a,\n               b)")
    with workbench.learns("partly_accepted"):
        workbench.press("Control+l")
        workbench.until(lambda: workbench.saved().startswith("def add(a, b):\n    return add(a,\n"), "a line was taken")
        workbench.until(lambda: workbench.ghost().strip() == "b)", "the rest is shown")


def test_the_editor_turns_to_other_texts_and_the_one_that_is_shown_is_taken(workbench: Workbench) -> None:
    workbench.offered(HEAD, (2, 5), "re", "turn a + b", also=["turn a - b", "turn b"])
    workbench.press("Alt+]")
    workbench.until_ghost("turn a - b")
    workbench.press("Alt+]")
    workbench.until_ghost("turn b")
    workbench.press("Alt+[")
    workbench.until_ghost("turn a - b")
    with workbench.learns("accepted"):
        workbench.press("Tab")
        workbench.until_saved("def add(a, b):\n    return a - b\n")
    assert workbench.records()[-1]["length"] == len("turn a - b")


def test_one_edit_at_the_cursor_is_ghost_text(workbench: Workbench) -> None:
    edit = {"x = 33": "x = 33\nthird = 3"}
    workbench.offered("new = 1\nx = 3\n", (2, 6), "3", "third = 3", fill=None, edit=edit)
    assert workbench.decorations() == []
    workbench.press("Tab")
    workbench.until_saved("new = 1\nx = 33\nthird = 3\n")


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

    def taken() -> bool:
        # The editor shows at once what it has kept; the key takes it when the server has answered.
        workbench.press("Alt+l")
        return workbench.saved() == "def f(x):\n    return x\n"

    workbench.until(taken, "the key takes it")


def test_the_first_key_goes_there_and_the_second_takes_it(workbench: Workbench) -> None:
    workbench.edited(FAR)
    until_hint(workbench, f"Tab: edit on line {LAST} ↓")
    assert (workbench.struck(), workbench.shown("insertion")) == (["old"], ["new"])
    with workbench.learns("accepted"):
        workbench.press("Tab")
        until_place(workbench, LAST, 7)
        assert workbench.saved() == RENAMED
        until_hint(workbench, "Tab")
        workbench.press("Tab")
        workbench.until_saved(DONE)
        until_gone(workbench)
    assert workbench.place() == (LAST, 10)
    workbench.press("Control+z")
    workbench.until(lambda: "print(old)" in "".join(workbench.lines() or []), "one step takes it back")
    assert (workbench.lines() or [""])[0] == "new = 1"


def test_the_second_key_takes_it_where_a_line_begins_too(workbench: Workbench) -> None:
    workbench.edited(FAR, {"print(old)": "await print(old)"})
    until_hint(workbench, f"Tab: edit on line {LAST} ↓")
    workbench.press("Tab")
    until_place(workbench, LAST, 1)
    until_hint(workbench, "Tab")
    workbench.press("Tab")
    workbench.until_saved(RENAMED.replace("print", "await print"))


def test_a_tab_that_comes_before_the_edit_writes_no_blanks_into_a_word(workbench: Workbench) -> None:
    workbench.script(seconds=2, edit={"area(room)": "surface(room)"})
    workbench.open("area(room)\npass\narea(room)\n")
    workbench.press("Control+Shift+ArrowRight")
    workbench.type("surface")
    until_place(workbench, 1, 8)
    workbench.press("Tab")
    workbench.until(workbench.decorations, "the edit that was waited for")
    assert (workbench.lines() or [""])[0].startswith("surface(room)")
    workbench.press("Tab")
    workbench.until_saved("surface(room)\npass\nsurface(room)\n")


def test_the_menu_says_what_a_click_does(workbench: Workbench) -> None:
    def rows() -> str:
        workbench.command("Calomel: Menu")
        workbench.until(lambda: "Settings" in str(workbench.see("quickRows")), "the menu")
        found = str(workbench.see("quickRows"))
        workbench.press("Escape")
        return found

    workbench.open("x\n")
    assert "Turn suggestions off" in rows()
    assert "Turn suggestions in this file off" in rows()
    workbench.command("Calomel: Turn Suggestions On or Off")
    workbench.until_status("Calomel: off")
    assert "Turn suggestions on" in rows()
    workbench.command("Calomel: Turn Suggestions On or Off")
    workbench.until_status("Calomel")


def test_the_hint_behind_a_long_line_can_be_read(workbench: Workbench) -> None:
    long = "total = old" + " + 10000000" * 20
    workbench.edited(f"old = 1\n{long}\n\nend\n", {"total = old": "total = new"})
    until_hint(workbench, "Tab")
    # Behind that line itself it would lie beyond the window.
    (hint,) = [each for each in workbench.decorations() if each["kind"] == "hint"]
    assert 0 < hint["indent"] < 100


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
    workbench.edited(before, {"print(old)": after})
    workbench.until(lambda: workbench.shown(kind) == [text], f"the {kind}")
    assert workbench.shown("foot") == (["Tab to accept, Esc to dismiss"] if kind == "box" else [])
    assert workbench.struck() == struck
    workbench.press("Tab")
    workbench.until_saved(before.replace("old = 1", "new = 1").replace("print(old)", after))


def test_taken_piece_by_piece(workbench: Workbench) -> None:
    workbench.edited("old = 1\nprint(old)\ny = 3\n", {"print(old)": "min(y)\nmax(y)\nprint(old)"})
    asked = len(workbench.asked())
    with workbench.learns("accepted"):
        workbench.press("Control+l")
        workbench.until_saved("new = 1\nmin(y)\nprint(old)\ny = 3\n")
        workbench.until(lambda: workbench.shown("box") == ["max(y)"], "the rest is shown")
        workbench.until(lambda: len(workbench.asked()) > asked, "the editor asks anew")
        workbench.until(lambda: workbench.shown("box") == ["max(y)"], "the rest stays")
        workbench.press("Control+l")
        workbench.until_saved("new = 1\nmin(y)\nmax(y)\nprint(old)\ny = 3\n")


def test_what_follows_from_one_answer_is_counted_and_comes_at_once(workbench: Workbench) -> None:
    workbench.edited(CHAINED, CHAIN)
    until_hint(workbench, "Tab · 1 of 2 · Alt+A: all")
    asked = len(workbench.asked())
    workbench.press("Tab")
    until_hint(workbench, "Tab: edit on line 6 ↓ · 2 of 2")
    workbench.press("Tab")
    until_hint(workbench, "Tab · 2 of 2")
    assert len(workbench.asked()) == asked, "the model is not asked again"
    workbench.press("Tab")
    workbench.until_saved(CHANGED)
    until_hint(workbench, "done")
    until_gone(workbench)


def test_one_key_takes_all_that_follows_as_one_step(workbench: Workbench) -> None:
    workbench.edited(CHAINED, CHAIN)
    until_hint(workbench, "Tab · 1 of 2 · Alt+A: all")
    with workbench.learns("accepted"):
        workbench.press("Alt+a")
        workbench.until_saved(CHANGED)
    until_gone(workbench)
    assert workbench.place() == (1, 14)
    workbench.press("Control+z")
    workbench.until_saved(CHAINED.replace("old", "new"))


def test_a_rejected_edit_takes_what_follows_with_it(workbench: Workbench) -> None:
    workbench.edited(CHAINED, CHAIN)
    until_hint(workbench, "Tab · 1 of 2 · Alt+A: all")
    with workbench.learns("rejected"):
        workbench.press("Escape")
    until_gone(workbench)
    workbench.type("x")
    workbench.press("Backspace")
    workbench.until_silent_because("dismissed this suggestion before")


def test_unchanged_lines_between_changes_are_not_marked(workbench: Workbench) -> None:
    before = "old = alpha(1)\nkeep()\nkeep()\nbeta(1)\n"
    workbench.edited(before, CHAIN)
    workbench.until(lambda: workbench.shown("insertion") == ["2", "2"], "what comes in both lines")
    assert workbench.struck() == ["1", "1"]
    until_hint(workbench, "Tab")
    workbench.press("Tab")
    workbench.until_saved(before.replace("old", "new").replace("(1)", "(2)"))


def typing(workbench: Workbench, text: str = "def f(x):") -> None:
    """An edit far away is shown, and another line is typed."""
    workbench.edited(FAR)
    workbench.press("End", "Enter")
    workbench.type(text)
    workbench.until(lambda: workbench.struck() == ["old"], "it waits")


def test_tab_indents_a_new_line_while_an_edit_waits_elsewhere(workbench: Workbench) -> None:
    typing(workbench)
    until_hint(workbench)
    workbench.press("Enter", "Tab")
    workbench.type("return x")
    workbench.until_saved(RENAMED.replace("new = 1\n", "new = 1\ndef f(x):\n    return x\n"))
    workbench.until(lambda: workbench.struck() == ["old"], "it still waits")
    workbench.press("ArrowUp")
    until_hint(workbench, f"Tab: edit on line {LAST + 2} ↓")
    workbench.press("Tab")
    until_place(workbench, LAST + 2, 7)


def test_a_key_of_its_own_goes_there_from_wherever_one_types(workbench: Workbench) -> None:
    typing(workbench)
    workbench.press("Enter")
    workbench.until(lambda: workbench.struck() == ["old"], "it waits")
    workbench.press("Alt+l")
    until_place(workbench, LAST + 2, 7)
    workbench.press("Alt+l")
    workbench.until_saved(DONE.replace("new = 1\n", "new = 1\ndef f(x):\n\n"))


def test_ghost_text_is_shown_on_the_line_that_is_typed_while_an_edit_waits_elsewhere(workbench: Workbench) -> None:
    workbench.edited(FAR)
    workbench.script(fill={"def f": "(x):"}, edit=RENAME)
    workbench.press("End", "Enter")
    workbench.type("def f")
    workbench.until_ghost("(x):")
    until_hint(workbench)
    workbench.press("Tab")
    workbench.until(lambda: "def f(x):" in workbench.saved(), "Tab takes it")


def test_the_status_says_that_it_is_off_in_this_file_and_why(workbench: Workbench) -> None:
    workbench.script(fill="secret")
    workbench.open("A=1\n", ".env")
    before = len(workbench.asked())
    workbench.press("End", "Enter")
    workbench.type("B=")
    workbench.until_status("Calomel: off here")
    workbench.until_silent_because("This file may contain a secret")
    workbench.until(lambda: "Calomel: This file may contain a secret (.env)" in workbench.see("bar"), "the sentence")
    assert (len(workbench.asked()), workbench.toasts()) == (before, [])


def test_an_edit_is_offered_at_a_problem_that_one_goes_to_without_typing_anything(workbench: Workbench) -> None:
    workbench.script(edit={"tru": "true"})
    workbench.open('{\n  "a": 1,\n\n\n\n  "b": tru\n}\n', "problem.json")

    def landed() -> bool:
        # The problem is there a moment after the file.
        workbench.press("F8")
        return workbench.place() == (6, 8)

    workbench.until(landed, "the cursor is at the problem")
    workbench.until_ghost("e")
    workbench.press("Escape")


def choose(workbench: Workbench, title: str, row: str) -> None:
    """Run a command that asks, and choose a row."""
    workbench.command(title)
    workbench.until(lambda: any(row in each for each in workbench.see("quickRows")), f"the choice {row!r}")
    workbench.ask("insert", text=row)
    workbench.until(lambda: row in workbench.see("focusedRow"), f"{row!r} is chosen")
    workbench.press("Enter")
    workbench.until(lambda: workbench.see("quickInput") is None, "it was taken")


@contextmanager
def silence(workbench: Workbench) -> Iterator[None]:
    """Between the first words and the last, nothing is asked."""
    workbench.script(fill={"x = ": "value_of(x)"})
    workbench.open("\n")
    yield
    workbench.until_status("Calomel")
    workbench.press("Backspace")
    workbench.type(" ")
    workbench.until_ghost("value_of(x)")
    workbench.press("Escape")


def type_in_vain(workbench: Workbench) -> None:
    workbench.until_status("Calomel: off")
    before = len(workbench.asked())
    workbench.type("x = ")
    workbench.until_saved("x = \n")
    assert (len(workbench.asked()), workbench.ghost()) == (before, "")


def test_snoozed_it_is_quiet_until_it_is_woken(workbench: Workbench) -> None:
    with silence(workbench):
        choose(workbench, "Calomel: Snooze", "10 minutes")
        type_in_vain(workbench)
        assert "snoozed" in workbench.status()[1]
        choose(workbench, "Calomel: Snooze", "Wake up")


def test_a_setting_reaches_the_server(workbench: Workbench) -> None:
    workbench.set({"calomel.suggest.languages": {"python": False}})
    try:
        workbench.open("\n")

        def off() -> bool:
            workbench.type("x")
            return workbench.status()[0] == "Calomel: off here"

        workbench.until(off, "off here")
        assert "off for this language" in workbench.status()[1]
    finally:
        workbench.set({"calomel.suggest.languages": None})


def test_what_is_wrong_with_a_suggestion_is_kept_with_its_outcome(workbench: Workbench) -> None:
    tell = "Calomel: Report a Bad Suggestion"
    workbench.edited(FAR)
    with workbench.learns("rejected"):
        choose(workbench, tell, "Not what I wanted")
    until_gone(workbench)
    assert "unwanted" in json.dumps(workbench.records()[-1])
    workbench.type(" ")
    workbench.until_silent_because("dismissed this suggestion before")
    workbench.command(tell)
    sentence = "Calomel: No suggestion to report."
    workbench.until(lambda: sentence in workbench.toasts(), "the sentence")
    workbench.clear_toasts()


def test_pages_and_menus_open(workbench: Workbench) -> None:
    workbench.command("Calomel: Open the Guide")
    workbench.until(lambda: "The server is ready" in workbench.see("guide"), "the guide")
    # A click there would install a second one.
    assert "Install the server" not in workbench.see("guide")
    assert all(step in workbench.see("guide") for step in ("Type", "Change something", "When nothing appears"))
    line = "~/.local/share/calomel/venv/bin/pip install './calomel[engine,llama]'"
    workbench.until(lambda: any(line in text for text in workbench.ask("frames")), "the lines to type, beside the step")

    workbench.offered("\n", (1, 1), "x = ", "value_of(x)")
    with workbench.learns("accepted"):
        workbench.press("Tab")
    workbench.command("Calomel: Show What the Model Sees")
    workbench.until_tab("What the model sees")
    workbench.command("Calomel: Show Suggestion Statistics")
    workbench.until_tab("Suggestion statistics")
    workbench.until(lambda: any("accepted" in text for text in workbench.see("texts")), "its numbers")
    workbench.command("Calomel: Menu")
    workbench.until(lambda: any("Snooze" in row for row in workbench.see("quickRows")), "the menu")
    assert len(workbench.see("quickRows")) > 6


def announced(workbench: Workbench, function: str) -> str:
    """A function is renamed; what is left to be done is in another open file, whose text this is."""
    # Server and editor remember what other tests did.
    helper = HELPER.replace("shop", f"{function}_shop").replace("total", function)
    workbench.open(helper, f"{function}_helper.py")
    workbench.open(SHOP.replace("total", function), f"{function}_shop.py")
    workbench.script(edit={f"import {function}": f"import {function.upper()}"})
    workbench.go(1, 5)
    workbench.press("Control+Shift+ArrowRight")
    workbench.type(function.upper())
    workbench.until(lambda: workbench.shown() == [f"Tab: edit in {function}_helper.py:1"], "the hint")
    # The menu of words has opened, too, and keeps all keys to itself until it is closed.
    workbench.until(lambda: workbench.see("menuIsOpen"), "the menu is open")
    workbench.press("Escape")
    workbench.until(lambda: not workbench.see("menuIsOpen"), "the menu is closed")
    return helper


@pytest.mark.e2e
@pytest.mark.slow
def test_the_first_key_goes_to_the_other_file_and_the_second_takes_it_there(workbench: Workbench) -> None:
    helper = announced(workbench, "mean")
    with workbench.learns("accepted"):
        workbench.press("Tab")
        workbench.until(lambda: "mean_helper.py" in workbench.see("activeTab"), "the other file")
        workbench.until(lambda: workbench.shown("insertion") == ["MEAN"], "the edit")
        assert (workbench.struck(), workbench.place()) == (["mean"], (1, helper.index("import") + 8))
        workbench.press("Tab")
        taken = helper.replace("import mean", "import MEAN")
        workbench.until(lambda: (workbench.files / "mean_helper.py").read_text() == taken, "it is taken")


@pytest.mark.e2e
@pytest.mark.slow
def test_rejected_it_is_gone(workbench: Workbench) -> None:
    announced(workbench, "largest")
    with workbench.learns("rejected"):
        workbench.press("Escape")
        workbench.until(lambda: not workbench.decorations(), "it is gone")


def writing(workbench: Workbench, *, seconds: float = 0) -> None:
    """The first line of a longer text is shown."""
    workbench.offered(HEAD, (2, 5), "re", "turn a + b", fill={"    re": WHOLE}, pauses=True, seconds=seconds)


# The editor stops waiting after 0.75 s.
@pytest.mark.parametrize("seconds", [0, 1.5])
def test_the_first_line_is_shown_while_the_model_writes_the_rest(workbench: Workbench, seconds: float) -> None:
    writing(workbench, seconds=seconds)
    asked = len(workbench.asked())
    workbench.script()
    workbench.until_ghost(WHOLE)
    assert len(workbench.asked()) == asked
    with workbench.learns("accepted"):
        workbench.press("Tab")
        workbench.until_saved(f"{HEAD[:-1]}re{WHOLE}\n")


def test_all_of_it_is_taken_word_by_word(workbench: Workbench) -> None:
    writing(workbench)
    workbench.script()
    workbench.until_ghost(WHOLE)
    workbench.press("Control+ArrowRight")
    workbench.until_ghost(WHOLE.removeprefix("turn"))


def test_the_rest_comes_behind_what_was_typed_along(workbench: Workbench) -> None:
    writing(workbench)
    workbench.type("turn")
    workbench.until_ghost(" a + b")
    workbench.script()
    workbench.until_ghost(WHOLE.removeprefix("turn"))


@pytest.mark.parametrize("key", ["x", "ArrowUp", "Escape"], ids=["against", "away", "rejected"])
def test_the_rest_of_what_is_gone_is_not_shown(workbench: Workbench, key: str) -> None:
    writing(workbench)
    workbench.press(key)
    workbench.until_ghost("")
    workbench.script()
    time.sleep(REST_SECONDS)
    assert workbench.ghost() == ""
