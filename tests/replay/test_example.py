from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.recordings import texts

from calomel.replay.events import Accepted, Changed, Expected, LogError, Opened, apply_edits
from calomel.replay.example import read_example
from calomel.replay.logs import read_log
from calomel.replay.unified import DiffHunk, edit_of, hunks_of

EXAMPLE = Path(__file__).parent / "fixtures" / "rename.md"
NOW = "import math\ndef cost(n):\n    return 2 * n\n\nprint(price(3))\n"


def test_an_example_replays_its_history_then_asks() -> None:
    log = read_log(EXAMPLE)
    assert (log.name, log.kind) == ("rename", "example")
    assert log.metadata == {"repository_url": "https://example.org/shop", "revision": "0123456"}
    opened = log.events[0]
    assert isinstance(opened, Opened)
    assert opened.text == "import math\ndef price(n):\n    return 2 * n\nprint(price(3))\n"
    assert texts(log.events) == {"shop/price.py": NOW, "shop/cart.py": "x = 2\n"}


def test_several_patches_are_alternatives_and_an_empty_one_is_silence() -> None:
    asked = read_log(EXAMPLE).events[-1]
    assert isinstance(asked, Expected)
    assert asked.alternatives == (NOW.replace("price(3)", "cost(3)"), NOW.replace("price(3)", "cost(n=3)"), None)
    assert asked.offset == NOW.index("price(3)")


def test_a_prediction_that_was_taken_is_accepted() -> None:
    log = read_log(EXAMPLE)
    assert log.checks.accepts == 1
    accepted = next(event for event in log.events if isinstance(event, Accepted))
    assert [event.cause for event in log.events if isinstance(event, Changed)] == ["other", "accept", "other"]
    assert accepted.entry == 1


def test_what_does_not_fit_is_said_with_its_line() -> None:
    lines = EXAMPLE.read_text().splitlines()
    problems = read_log(EXAMPLE).problems
    assert [lines[problem.entry] for problem in problems] == ["```diff", "## Weather"]
    assert "not in the excerpt" in problems[0].message


def test_the_cursor_may_stand_behind_a_line() -> None:
    log = read_example("## Cursor Position\n\n```a.py\nab\n# <[CURSOR_POSITION]\n```\n## Expected Patch\n")
    asked = log.events[-1]
    assert isinstance(asked, Expected)
    assert (asked.offset, asked.alternatives) == (2, (None,))


@pytest.mark.parametrize("text", ["+++\n", "## Expected Patch\n", "## Cursor Position\n```a.py\nnever closed\n"])
def test_without_a_cursor_position_there_is_no_example(text: str) -> None:
    with pytest.raises(LogError, match="no cursor position"):
        read_example(text)


def test_an_unreadable_front_matter_is_said() -> None:
    log = read_example("+++\nnot toml\n+++\n## Cursor Position\n```a.py\nx\n```\n")
    assert "no TOML" in log.problems[0].message
    assert "cursor is at its start" in log.problems[1].message


_LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d"]), min_size=1, max_size=8)


@settings(deadline=None)
@given(_LINES, _LINES, st.sampled_from(["", "\n"]), st.sampled_from(["", "\n"]))
def test_a_diff_of_whole_texts_gives_the_other_text(old: list[str], new: list[str], end: str, other: str) -> None:
    del other
    text, after = "\n".join(old) + end, "\n".join(new) + end
    lines = [("-", line) for line in text.split("\n")] + [("+", line) for line in after.split("\n")]
    hunk = DiffHunk("a", 1, lines)
    edit = edit_of(text, hunk)
    assert edit is not None
    assert apply_edits(text, (edit,)) == after
    back = edit_of(after, hunk, backwards=True)
    assert back is not None
    assert apply_edits(after, (back,)) == text


@settings(deadline=None)
@given(st.text(alphabet="+- @ab\n1,", max_size=60))
def test_any_text_is_read_as_a_diff_without_an_error(text: str) -> None:
    for hunk in hunks_of(f"@@ -1,1 +1,1 @@\n{text}"):
        edit = edit_of("a\nb\n", hunk)
        if edit is not None:
            apply_edits("a\nb\n", (edit,))


@settings(deadline=None)
@given(st.text(alphabet="#+`\n Cursor Position[CURSOR_POSITION]^", max_size=80))
def test_any_text_is_read_as_an_example_without_an_error(text: str) -> None:
    log = read_example(f"## Cursor Position\n```a.py\nx\n```\n{text}")
    texts(log.events)
