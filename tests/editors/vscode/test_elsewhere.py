from __future__ import annotations

import pytest
from tests.editors.shared import HELPER, SHOP
from tests.editors.vscode.workbench import Workbench

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


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


def test_rejected_it_is_gone(workbench: Workbench) -> None:
    announced(workbench, "largest")
    with workbench.learns("rejected"):
        workbench.press("Escape")
        workbench.until(lambda: not workbench.decorations(), "it is gone")
