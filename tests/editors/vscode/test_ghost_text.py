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
