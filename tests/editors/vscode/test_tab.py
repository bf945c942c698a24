"""What Tab does once there is nothing left to take, and while the editor's menu is open."""

from __future__ import annotations

import time

import pytest
from tests.editors.shared import APART, PAUSE, RENAME, Chain
from tests.editors.vscode.test_workbench import until_gone, until_hint
from tests.editors.vscode.workbench import Starter, Workbench

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# The editor has asked by then, and has no answer.
ASKED_SECONDS = 0.3


def taken(workbench: Workbench, chain: Chain) -> float:
    """Press Tab until every edit of a chain is accepted; when the last one was."""
    workbench.script(edit=chain.edits)
    workbench.open(chain.text)
    workbench.press("Control+Shift+ArrowRight")
    workbench.type(chain.name)
    last = 0.0

    def done() -> bool:
        return workbench.saved() == chain.done

    while not done():
        workbench.until(lambda: done() or set(workbench.shown("hint")) - {"done"}, "an edit is shown, or the end")
        if done():
            break
        before, last = workbench.decorations(), time.monotonic()
        workbench.press("Tab")
        workbench.until(lambda: done() or workbench.decorations() != before, "Tab did something")  # noqa: B023 (at once)
    return last


def press(workbench: Workbench, key: str, at: float) -> None:
    """Press a key at a moment, or now if that is over."""
    time.sleep(max(0.0, at - time.monotonic()))
    workbench.press(key)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_tab_too_many_changes_nothing(workbench: Workbench, seed: int) -> None:
    chain = Chain.drawn(seed)
    last = taken(workbench, chain)
    press(workbench, "Tab", last + APART)
    press(workbench, "Tab", last + 2 * APART)
    line, column = workbench.place() or (0, 0)
    name = chain.done.split("\n")[line - 1]
    assert column == name.index(chain.name) + len(chain.name) + 1, "the cursor stands behind the name"
    press(workbench, "z", last + PAUSE)
    lines = chain.done.split("\n")
    lines[line - 1] = f"{name[: column - 1]}z{name[column - 1 :]}"
    workbench.until_saved("\n".join(lines))


def test_a_cursor_that_moves_meanwhile_loses_no_edit(workbench: Workbench) -> None:
    workbench.script(edit=RENAME, seconds=0.8)
    workbench.open("old = 1\nprint(old)\n")
    workbench.press("Control+Shift+ArrowRight")
    workbench.type("new")
    time.sleep(ASKED_SECONDS)
    workbench.press("ArrowRight")
    until_hint(workbench, "Tab")


def test_an_indent_that_is_wanted_later_is_one(workbench: Workbench) -> None:
    chain = Chain.drawn(0)
    press(workbench, "Tab", taken(workbench, chain) + PAUSE)
    workbench.until(lambda: workbench.saved() != chain.done, "it indents")
    assert f"{chain.name} " in workbench.saved()


def test_behind_ghost_text_that_was_taken_it_is_the_same(workbench: Workbench) -> None:
    workbench.offered("def add(a, b):\n    \n", (2, 5), "re", "turn a + b")
    workbench.press("Tab")
    workbench.until(lambda: "return a + b" in workbench.saved(), "it is taken")
    workbench.press("Tab")
    workbench.type("z")
    workbench.until_saved("def add(a, b):\n    return a + bz\n")


MENU_HINT = "Alt+L: edit on line 2 ↓"
WIDE = "width = 1\nprint(width)\n\nwidening\n"


def change(workbench: Workbench) -> None:
    """Type a new name, which another name of the file begins with."""
    workbench.script(edit={"print(width)": "print(wide)"})
    workbench.open(WIDE)
    workbench.press("Control+Shift+ArrowRight")
    workbench.type("wide")


def menu(workbench: Workbench) -> None:
    """A name is changed, and the menu opens where the new one is typed."""
    change(workbench)
    until_hint(workbench, "Tab")
    workbench.press("Control+Space")
    workbench.until(lambda: workbench.see("menuIsOpen"), "the menu is open")


def test_beside_the_menu_the_hint_names_the_key_that_works_there(workbench: Workbench) -> None:
    menu(workbench)
    until_hint(workbench, MENU_HINT)
    workbench.press("Alt+l")
    workbench.until_saved(WIDE.replace("width", "wide"))
    assert not workbench.see("menuIsOpen")


def test_beside_the_menu_tab_is_the_menus_and_the_hint_is_back_behind_it(workbench: Workbench) -> None:
    menu(workbench)
    until_hint(workbench, MENU_HINT)
    workbench.press("Escape")
    workbench.until(lambda: not workbench.see("menuIsOpen"), "the menu is closed")
    until_hint(workbench, "Tab")
    workbench.press("Control+Space")
    workbench.until(lambda: workbench.see("menuIsOpen"), "the menu is open")
    workbench.press("Tab")
    workbench.until(lambda: workbench.saved().startswith("widening = 1\nprint(width)"), "Tab took its entry")


def test_asked_for_in_vain_the_reason_stands_at_the_cursor_for_a_moment(workbench: Workbench) -> None:
    workbench.open("x = 1\n")
    workbench.press("Alt+\\")
    workbench.until(lambda: workbench.shown("hint"), "the reason")
    (why,) = workbench.shown("hint")
    assert why.startswith(("No completion: ", "Nothing shown: "))
    workbench.type("y")
    until_gone(workbench)


def test_one_message_offers_that_the_editor_holds_its_menu_back(start: Starter) -> None:
    # Newer editors do so unless a setting says otherwise.
    workbench = start(settings={"editor.quickSuggestions": {"other": "on", "comments": "off", "strings": "off"}})
    workbench.warm_up()
    change(workbench)
    workbench.until_toast("keep its completion menu closed")
    until_hint(workbench, MENU_HINT)
    workbench.click("Hold It Back")
    path = workbench.data / "Machine" / "settings.json"
    workbench.until(lambda: "offWhenInlineCompletions" in path.read_text(encoding="utf-8"), "it is set")
