from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workspace.editing import URI, Editor

from calomel.prompts.parts import Hunk, text_hunks
from calomel.workspace import history as history_module
from calomel.workspace.documents import Position, ResyncNeeded
from calomel.workspace.history import History, Origin

TEXT = "".join(f"line {number}\n" for number in range(60))


class Desk(Editor):
    """An editor that counts by lines."""

    @property
    def history(self) -> History:
        return self.workspace.history

    def edit(
        self, line: int, start: int, end: int, text: str, *, wait: float = 0.1, end_line: int | None = None
    ) -> None:
        self.now += wait
        self.change(Position(line, start), Position(line if end_line is None else end_line, end), text)

    def type(self, line: int, column: int, text: str) -> None:
        for index, character in enumerate(text):
            self.edit(line, column + index, column + index, character)


@pytest.fixture
def desk() -> Desk:
    return Desk(TEXT)


def test_typing_becomes_one_hunk_once_an_edit_begins_elsewhere(desk: Desk) -> None:
    desk.type(3, 6, " more")
    assert desk.history.settled() == ()
    named = (Hunk("a.py", 3, "line 3\n", "line 3 more\n"),)
    assert desk.history.open_edit() == named
    desk.edit(40, 0, 0, "x")
    assert desk.history.settled() == named


def test_edits_within_eight_lines_are_one_edit_and_show_each_changed_place(desk: Desk) -> None:
    desk.edit(3, 0, 0, "a")
    desk.edit(11, 0, 0, "b")
    desk.edit(30, 0, 0, "c")
    assert desk.history.settled() == (
        Hunk("a.py", 3, "line 3\n", "aline 3\n"),
        Hunk("a.py", 11, "line 11\n", "bline 11\n"),
    )


def test_a_pause_splits_an_edit_when_it_is_read(desk: Desk) -> None:
    desk.edit(3, 0, 4, "path")
    desk.edit(3, 4, 4, "s", wait=1.5)
    desk.edit(30, 0, 0, "c")
    assert desk.history.settled() == (
        Hunk("a.py", 3, "line 3\n", "path 3\n"),
        Hunk("a.py", 3, "path 3\n", "paths 3\n"),
    )


def test_an_accepted_prediction_is_a_hunk_of_its_own_and_marked(desk: Desk) -> None:
    desk.edit(3, 0, 4, "row")
    desk.workspace.expect_prediction(URI, desk.document.text.replace("line 4\n", "row 4\n"))
    # An editor sends the smallest change that gives the accepted text.
    desk.edit(4, 0, 4, "row")
    desk.edit(5, 0, 4, "row")
    desk.history.settle()
    assert [(hunk.after, hunk.predicted) for hunk in desk.history.settled()] == [
        ("row 3\n", False),
        ("row 4\n", True),
        ("row 5\n", False),
    ]
    desk.workspace.expect_prediction(URI, desk.document.text.replace("line 9\n", "row 9\n"))
    desk.edit(9, 0, 4, "row", wait=10.0)
    desk.history.settle()
    assert not desk.history.settled()[-1].predicted


def test_an_edit_that_was_undone_leaves_no_hunk(desk: Desk) -> None:
    desk.edit(3, 0, 6, "other")
    desk.edit(3, 0, 5, "line 3")
    assert desk.history.latest(URI) is Origin.UNDO
    desk.history.settle()
    assert desk.history.settled() == ()


def test_undoing_a_typed_run_at_once_is_an_undo_and_bringing_it_back_a_redo(desk: Desk) -> None:
    desk.type(3, 0, "word")
    desk.edit(3, 0, 4, "")
    assert desk.history.latest(URI) is Origin.UNDO
    desk.edit(3, 0, 0, "word")
    assert desk.history.latest(URI) is Origin.REDO
    desk.type(20, 0, "wx")
    desk.edit(20, 1, 2, "")
    assert desk.history.latest(URI) is Origin.TYPED


def test_deletions_are_kept_and_a_change_in_blanks_alone_is_not(desk: Desk) -> None:
    desk.edit(3, 0, 0, "", end_line=5)
    desk.edit(30, 0, 0, "    ")
    desk.history.settle()
    assert desk.history.settled() == (Hunk("a.py", 3, "line 3\nline 4\n", ""),)


def test_a_huge_change_is_not_stored(desk: Desk) -> None:
    desk.edit(3, 0, 4, "row")
    desk.edit(10, 0, 0, "pasted\n" * 2000)
    assert desk.history.settled() == (Hunk("a.py", 3, "line 3\n", "row 3\n"),)
    assert desk.history.latest(URI) is Origin.EXTERNAL
    assert desk.history.open_edit() == ()


def test_the_stream_lets_go_of_its_older_half_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MAX_HUNKS", 8)
    sizes = []
    for step in range(12):
        desk.edit(50 if step % 2 else 10, 0, 0, "x")
        sizes.append(len(desk.history.settled()))
    assert sizes == [0, 1, 2, 3, 4, 5, 6, 7, 8, 4, 5, 6]
    assert desk.history.hops == 1


EDITS = st.lists(
    st.tuples(
        st.integers(0, 30), st.integers(0, 4), st.integers(0, 3), st.sampled_from(["x", "new\n", "", "a\r\nb", "😀"])
    ),
    max_size=40,
)


@given(EDITS)
def test_the_hunks_of_an_edit_lead_from_the_old_text_to_the_new(edits: list[tuple[int, int, int, str]]) -> None:
    desk = Desk("".join(f"line {number}\n" for number in range(30)))
    old = desk.document.text
    for line, start, length, text in edits:
        # A range that ends within a character is not guessed.
        with suppress(ResyncNeeded):
            desk.edit(line, start, start + length, text)
    lines, shift = old.splitlines(keepends=True), 0
    for hunk in text_hunks("a.py", old, desk.document.text):
        at = hunk.start_line + shift
        assert "".join(lines[at : at + _lines(hunk.before)]) == hunk.before
        lines[at : at + _lines(hunk.before)] = hunk.after.splitlines(keepends=True)
        shift += _lines(hunk.after) - _lines(hunk.before)
    strip: Callable[[str], str] = lambda text: "".join(text.split())  # noqa: E731
    assert strip("".join(lines)) == strip(desk.document.text)


def _lines(text: str) -> int:
    return len(text.splitlines())
