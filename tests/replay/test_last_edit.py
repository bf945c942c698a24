from __future__ import annotations

from calomel.replay.editor import LastEdits
from calomel.replay.events import Changed, Edit
from calomel.replay.samples import consequences


def typed(time: float, at: int, text: str, removed: int = 0) -> Changed:
    return Changed(0, time, "a.py", (Edit(at, at + removed, text),), "typed")


def test_keystrokes_without_a_pause_are_one_edit() -> None:
    edits = LastEdits()
    edits.changing(typed(0.0, 0, "a"), "")
    edits.changing(typed(0.9, 1, "b"), "a")
    assert edits.before("a.py") == ""
    edits.changing(typed(2.0, 2, "c"), "ab")
    assert edits.before("a.py") == "ab"


def test_another_place_is_another_edit() -> None:
    edits = LastEdits()
    text = "\n" * 20
    edits.changing(typed(0.0, 0, "a"), text)
    edits.changing(typed(0.1, 15, "b"), "a" + text)
    assert edits.before("a.py") == "a" + text
    assert edits.before("b.py") is None


def test_a_suggestion_that_brings_back_what_went_is_all_reversal() -> None:
    found = consequences("x = \n", [Edit(4, 4, "old")], "x = old\n", "python")
    assert found["reversal_ratio"] == 1.0
    assert found["parse_error_delta"] < 0
    assert "reversal_ratio" not in consequences("x = \n", [Edit(4, 4, "old")], None, "python")
    assert "parse_error_delta" not in consequences("x = \n", [Edit(4, 4, "old")], None, "no-such-language")
