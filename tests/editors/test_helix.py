"""Helix: what is suggested comes as a completion, next edits as a code action."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.editors.helix import ESCAPE, Helix
from tests.editors.programs import find_helix, wanted
from tests.editors.shared import FAR, HEAD, RENAME, REST

pytestmark = pytest.mark.e2e


def test_a_completion_is_shown_and_taken_and_the_server_learns_it(tmp_path: Path) -> None:
    with Helix(wanted(find_helix()), tmp_path, HEAD) as helix:
        helix.script(fill={"def add(a, b):\n    re": REST})
        helix.press("jAre")
        # The menu: its label, and the kind of completion.
        helix.until_shown("return a + b text")
        with helix.learns("accepted"):
            helix.press("\t")
            helix.until_shown("Calomel")
            helix.press("\r")
            assert helix.saved() == HEAD[:-1] + "re" + REST + "\n"
        assert {each["language"] for each in helix.records()} == {"python"}


def test_a_next_edit_is_the_code_action(tmp_path: Path) -> None:
    with Helix(wanted(find_helix()), tmp_path, FAR) as helix:
        helix.script(edit=RENAME)
        helix.press(f"ecnew{ESCAPE}")
        helix.until_shown("new = 1")
        helix.until_shown("NOR")
        helix.press(" a")
        helix.until_shown("Apply next edit")
        with helix.learns("accepted"):
            # The first of the menu has to be chosen first.
            helix.press("\t\r")
            helix.until_shown("print(new)")
            assert helix.saved() == FAR.replace("old", "new")
