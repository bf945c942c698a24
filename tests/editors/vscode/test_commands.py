"""The commands that are neither keys nor switches."""

from __future__ import annotations

import json

import pytest
from tests.editors.vscode.workbench import Workbench

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FILL = {"x = ": "value_of(x)"}


def chosen(workbench: Workbench, title: str, row: str) -> None:
    """Run a command that asks, and choose a row."""
    workbench.command(title)
    workbench.until(lambda: any(row in each for each in workbench.see("quickRows")), f"the choice {row!r}")
    workbench.ask("insert", text=row)
    workbench.until(lambda: row in workbench.see("focusedRow"), f"{row!r} is chosen")
    workbench.press("Enter")
    workbench.until(lambda: workbench.see("quickInput") is None, "it was taken")


def test_the_guide_opens_at_its_first_step(workbench: Workbench) -> None:
    workbench.command("Calomel: Open the Guide")
    workbench.until(lambda: "Install the program" in workbench.see("guide"), "the guide")
    guide = workbench.see("guide")
    assert "~/.local/share/calomel/venv/bin/pip install ./calomel" in guide
    for step in ("Type", "Change something", "When it is silent"):
        assert step in guide


def test_snoozed_it_is_quiet_until_it_is_woken(workbench: Workbench) -> None:
    workbench.script(fill=FILL)
    workbench.open("\n")
    chosen(workbench, "Calomel: Snooze", "10 minutes")
    workbench.until(lambda: workbench.status()[0] == "Calomel: off", "off")
    assert "snoozed" in workbench.status()[1]
    before = len(workbench.asked())
    workbench.type("x = ")
    workbench.until_saved("x = \n")
    assert (len(workbench.asked()), workbench.ghost()) == (before, "")
    chosen(workbench, "Calomel: Snooze", "Wake up")
    workbench.until(lambda: workbench.status()[0] == "Calomel", "on")
    workbench.press("Backspace")
    workbench.type(" ")
    workbench.until_ghost("value_of(x)")
    workbench.press("Escape")


def test_what_is_wrong_with_a_suggestion_is_kept_with_its_outcome(workbench: Workbench) -> None:
    workbench.script(edit={"print(old)": "print(new)"})
    workbench.open("old = 1\n" + "\n" * 8 + "print(old)\n")
    workbench.press("Control+Shift+ArrowRight")
    workbench.type("new")
    workbench.until(workbench.decorations, "a next edit is shown")
    before = workbench.outcomes().count("rejected")
    chosen(workbench, "Calomel: Tell What Is Wrong With This Suggestion", "Not what I wanted")
    workbench.until(lambda: workbench.outcomes().count("rejected") == before + 1, "the server knows of it")
    workbench.until(lambda: not workbench.decorations(), "nothing is shown any more")
    log = workbench.folder / "xdg_state_home" / "calomel" / "outcomes.jsonl"
    last = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()][-1]
    assert "unwanted" in json.dumps(last)
    workbench.type(" ")
    workbench.until(lambda: "rejected before" in workbench.status()[1], "it does not come back")


def test_without_a_suggestion_there_is_nothing_to_tell_of(workbench: Workbench) -> None:
    workbench.open("\n")
    workbench.command("Calomel: Tell What Is Wrong With This Suggestion")
    sentence = "Calomel: Nothing is shown of which you could tell."
    workbench.until(lambda: sentence in workbench.toasts(), "the sentence")
    workbench.command("Notifications: Clear All Notifications")
    workbench.until(lambda: not workbench.toasts(), "it is gone")


def test_what_became_of_suggestions_opens_as_a_page(workbench: Workbench) -> None:
    workbench.script(fill=FILL)
    workbench.open("\n")
    workbench.type("x = ")
    workbench.until_ghost("value_of(x)")
    workbench.press("Tab")
    workbench.until_saved("x = value_of(x)\n")
    workbench.until(lambda: "accepted" in workbench.outcomes(), "the server knows of it")
    workbench.command("Calomel: Show What Became of Suggestions")
    workbench.until(lambda: any("What became of suggestions" in tab for tab in workbench.see("tabs")), "a page")
    workbench.until(lambda: any("accepted" in text for text in workbench.see("texts")), "its numbers")


def test_the_menu_of_the_status_bar_says_how_it_is(workbench: Workbench) -> None:
    workbench.open("\n")
    workbench.command("Calomel: Menu")
    workbench.until(lambda: any("Snooze" in row for row in workbench.see("quickRows")), "the menu")
    assert len(workbench.see("quickRows")) > 6
    workbench.press("Escape")
