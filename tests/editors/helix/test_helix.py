"""Helix: what is suggested comes as a completion, next edits as a code action."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.editors.helix.helix import ESCAPE, Helix
from tests.editors.setup import last_outcomes, outcomes

pytestmark = pytest.mark.e2e

HEAD = "def add(a, b):\n    \n"
REST = "turn a + b\n\n\ndef sub(a, b):\n    return a - b"


def test_a_completion_is_shown_and_taken_and_the_server_learns_it(helix_program: Path, tmp_path: Path) -> None:
    with Helix(helix_program, tmp_path, HEAD) as helix:
        helix.script(fill={"def add(a, b):\n    re": REST})
        helix.press("jAre")
        # The menu: its label, and the kind of completion.
        helix.until_shown("return a + b text")
        helix.press("\t")
        helix.until_shown("Calomel")
        helix.press("\r")

        assert helix.saved() == HEAD[:-1] + "re" + REST + "\n"
        helix.until(lambda: list(last_outcomes(tmp_path).values()) == ["accepted"], "the outcome is kept")
        assert {each["language"] for each in outcomes(tmp_path)} == {"python"}


def test_a_next_edit_is_the_code_action(helix_program: Path, tmp_path: Path) -> None:
    text = "old = 1\n" + "\n" * 8 + "print(old)\n"
    with Helix(helix_program, tmp_path, text) as helix:
        helix.script(edit={"print(old)": "print(new)"})
        helix.press(f"ecnew{ESCAPE}")
        helix.until_shown("new = 1")
        helix.until_shown("NOR")
        helix.press(" a")
        helix.until_shown("Apply predicted edit")
        # The first of the menu has to be chosen first.
        helix.press("\t\r")
        helix.until_shown("print(new)")

        assert helix.saved() == text.replace("old", "new")
        helix.until(lambda: "accepted" in last_outcomes(tmp_path).values(), "the outcome is kept")
