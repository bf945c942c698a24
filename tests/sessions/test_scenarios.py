from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.scenario import EDITORS, FOLDER, read, scenarios

# What a person does that people were hurt by; a scenario's name begins with it, or holds it.
KINDS = ("rename", "type", "signature", "undo", "redo", "reload", "checkout", "crlf", "mixed", "tabs", "emoji", "cjk")
MORE_KINDS = ("string", "comment", "paste", "cursors", "complete", "secrets", "tab-", "jump", "import")


@pytest.mark.parametrize("editor", EDITORS)
def test_there_are_enough_of_them_and_of_every_kind(editor: str) -> None:
    names = [each.name for each in scenarios(editor)]
    assert len(names) >= 40
    if editor == "neovim":
        assert [kind for kind in KINDS + MORE_KINDS if not any(kind in name for name in names)] == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txtar")), ids=lambda path: path.stem)
def test_each_says_what_it_is_about_and_looks_for_something(path: Path) -> None:
    scenario = read(path)
    assert scenario.steps
    looks = {"follow", "silent"} & {step.name for step in scenario.steps}
    assert looks or scenario.must or scenario.must_not or scenario.after is not None
