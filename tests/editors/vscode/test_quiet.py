from __future__ import annotations

import pytest
from tests.editors.vscode.workbench import Workbench

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FILL = {"x = ": "value_of(x)"}


def test_the_status_says_that_it_is_off_in_this_file_and_why(workbench: Workbench) -> None:
    workbench.script(fill="secret")
    workbench.open("A=1\n", ".env")
    before = len(workbench.asked())
    workbench.press("End", "Enter")
    workbench.type("B=")
    workbench.until(lambda: workbench.status()[0] == "Calomel: off here", "off here")
    assert "excluded by an ignore rule" in workbench.status()[1]
    assert (len(workbench.asked()), workbench.ghost(), workbench.decorations()) == (before, "", [])


def test_turned_off_there_is_nothing_until_it_is_on_again(workbench: Workbench) -> None:
    workbench.script(fill=FILL)
    workbench.open("\n")
    workbench.command("Calomel: Turn Suggestions On or Off")
    workbench.until(lambda: workbench.status()[0] == "Calomel: off", "off")
    before = len(workbench.asked())
    workbench.type("x = ")
    workbench.until_saved("x = \n")
    assert (len(workbench.asked()), workbench.ghost()) == (before, "")
    workbench.command("Calomel: Turn Suggestions On or Off")
    workbench.until(lambda: workbench.status()[0] == "Calomel", "on")
    workbench.press("Backspace")
    workbench.type(" ")
    workbench.until_ghost("value_of(x)")
    workbench.press("Tab")
    workbench.until_saved("x = value_of(x)\n")


def test_a_menu_keeps_its_keys(workbench: Workbench) -> None:
    workbench.script(edit={"print(old)": "print(new)"})
    workbench.open("old = 1\nprint(old)\n")
    workbench.press("Control+Shift+ArrowRight")
    workbench.type("new")
    workbench.until(workbench.decorations, "a next edit is shown")
    workbench.press("Control+Space")
    workbench.until(lambda: workbench.see("menuIsOpen"), "the menu is open")
    workbench.press("Escape")
    workbench.until(lambda: not workbench.see("menuIsOpen"), "the menu is closed")
    assert workbench.shown("insertion") == ["new"]
    workbench.press("Tab")
    workbench.until_saved("new = 1\nprint(new)\n")


def test_a_suggestion_goes_when_the_user_goes_to_another_file(workbench: Workbench) -> None:
    workbench.script(edit={"print(old)": "print(new)"})
    workbench.open("old = 1\nprint(old)\n")
    workbench.press("Control+Shift+ArrowRight")
    workbench.type("new")
    workbench.until(workbench.decorations, "a next edit is shown")
    workbench.script()
    workbench.open("x\n", "other.py")
    assert workbench.decorations() == []


def test_a_setting_reaches_the_server(workbench: Workbench) -> None:
    workbench.set({"calomel.suggest.languages": {"python": False}})
    try:
        workbench.script(fill=FILL)
        workbench.open("\n")

        def off() -> bool:
            workbench.type("x")
            return workbench.status()[0] == "Calomel: off here"

        workbench.until(off, "off here")
        assert "turned off for this language" in workbench.status()[1]
    finally:
        workbench.set({"calomel.suggest.languages": None})


def test_what_the_model_sees_opens_as_a_page(workbench: Workbench) -> None:
    workbench.open("def add(a, b):\n    return a + b\n")
    workbench.command("Calomel: Show What the Model Sees Here")
    workbench.until(lambda: any("What the model sees" in tab for tab in workbench.see("tabs")), "a page")
