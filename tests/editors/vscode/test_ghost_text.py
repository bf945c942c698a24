from __future__ import annotations

import pytest
from tests.editors.vscode.workbench import Workbench

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HEAD = "def add(a, b):\n    \n"


def test_it_appears_while_typing_and_tab_takes_it(workbench: Workbench) -> None:
    workbench.script(fill={"    re": "turn a + b"})
    workbench.open(HEAD)
    before = workbench.outcomes().count("accepted")
    workbench.go(2, 5)
    workbench.type("re")
    workbench.until_ghost("turn a + b")
    workbench.press("Tab")
    workbench.until_saved("def add(a, b):\n    return a + b\n")
    workbench.until(lambda: workbench.outcomes().count("accepted") == before + 1, "the server knows of it")


def test_several_lines_stand_below_each_other(workbench: Workbench) -> None:
    workbench.script(fill={"def ": "add(a, b):\n    return a + b"})
    workbench.open("\nx = 1\n")
    workbench.type("def ")
    workbench.until_ghost("add(a, b):\n    return a + b")
    workbench.press("Tab")
    workbench.until_saved("def add(a, b):\n    return a + b\nx = 1\n")


def test_escape_rejects_it_and_it_does_not_come_back(workbench: Workbench) -> None:
    workbench.script(fill={"    re": "turn a + b"})
    workbench.open(HEAD)
    before = workbench.outcomes().count("rejected")
    workbench.go(2, 5)
    workbench.type("re")
    workbench.until_ghost("turn a + b")
    workbench.press("Escape")
    workbench.until_ghost("")
    workbench.until(lambda: workbench.outcomes().count("rejected") == before + 1, "the server knows of it")
    workbench.type("x")
    workbench.press("Backspace")
    workbench.until(lambda: "rejected before" in workbench.status()[1], "the status says why nothing comes")
    assert workbench.ghost() == ""


def test_words_and_lines_are_taken_one_by_one(workbench: Workbench) -> None:
    workbench.script(fill={"    re": "turn add(a,\n               b)"})
    workbench.open(HEAD)
    before = workbench.outcomes().count("partly_accepted")
    workbench.go(2, 5)
    workbench.type("re")
    workbench.until_ghost("turn add(a,\n               b)")
    workbench.press("Control+ArrowRight")
    workbench.until_ghost(" add(a,\n               b)")
    workbench.until(lambda: workbench.outcomes().count("partly_accepted") == before + 1, "the server knows of it")
    workbench.press("Control+l")
    workbench.until(lambda: workbench.saved().startswith("def add(a, b):\n    return add(a,\n"), "a line was taken")
    workbench.until(lambda: workbench.ghost().strip() == "b)", "the rest is shown")
    workbench.until(lambda: workbench.outcomes().count("partly_accepted") == before + 2, "the server knows of it")
