from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.workspace.editing import URI, Editor, offset_of, position_of

from calomel.prompts.parts import Hunk, text_hunks
from calomel.workspace import history as history_module
from calomel.workspace.documents import FullChange, Origin, Position, RangeChange, ResyncNeeded
from calomel.workspace.history import History
from calomel.workspace.workspace import Workspace

TYPED = st.text(st.sampled_from(list("ab x\t\r\n\u2028é😀")), max_size=12)
PLACES = st.tuples(st.integers(0, 6), st.integers(0, 12))


class TypingEditor(RuleBasedStateMachine):
    """A user with several cursors, and an undo stack."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.version = 0.0, 1
        self.text = ""
        self.undo: list[str] = []
        self.stream: tuple[Hunk, ...] = ()

    @initialize(text=TYPED)
    def open(self, text: str) -> None:
        self.workspace = Workspace((Path("/w"),), lambda: self.now)
        self.workspace.open(URI, "python", 1, text)
        self.text = text

    def send(self, changes: list[RangeChange | FullChange]) -> None:
        self.undo.append(self.text)
        for change in changes:
            if isinstance(change, FullChange):
                self.text = change.text
            else:
                start, end = (offset_of(self.text, *place) for place in (change.start, change.end))
                self.text = self.text[:start] + change.text + self.text[end:]
        self.version += 1
        self.workspace.change(URI, self.version, changes)

    @rule(place=PLACES, text=TYPED)
    def insert(self, place: tuple[int, int], text: str) -> None:
        self.replace(place, place, text)

    @rule(one=PLACES, other=PLACES, text=TYPED)
    def replace(self, one: tuple[int, int], other: tuple[int, int], text: str) -> None:
        start, end = sorted((self.inside(one), self.inside(other)))
        self.send([RangeChange(start, end, text)])

    @rule(one=PLACES, other=PLACES)
    def delete(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        self.replace(one, other, "")

    @rule(places=st.lists(PLACES, min_size=2, max_size=4, unique=True), text=TYPED)
    def type_at_several_cursors(self, places: list[tuple[int, int]], text: str) -> None:
        # Editors send them from the last to the first, so that no change moves the next one.
        inside = sorted({self.inside(place) for place in places}, reverse=True)
        self.send([RangeChange(place, place, text) for place in inside])

    def inside(self, place: tuple[int, int]) -> Position:
        """The place in the text that is nearest to this one."""
        return Position(*position_of(self.text, offset_of(self.text, *place)))

    @rule()
    def take_back(self) -> None:
        if self.undo:
            self.send([FullChange(self.undo.pop())])
            self.undo.pop()

    @rule(text=TYPED)
    def accept(self, text: str) -> None:
        self.workspace.expect_prediction(URI, self.text + text)
        end = Position(*position_of(self.text, len(self.text)))
        self.send([RangeChange(end, end, text)])

    @rule(seconds=st.sampled_from([0.1, 2.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def look_elsewhere(self) -> None:
        self.workspace.focus(URI)
        self.workspace.focus("file:///w/other.py")

    @rule(offset=st.integers(0, 60))
    def ask_for_a_position(self, offset: int) -> None:
        document = self.workspace.documents.get(URI)
        assert document is not None
        offset = min(offset, len(self.text))
        assert document.position_at(offset) == position_of(self.text, offset)

    @invariant()
    def the_text_is_the_editors(self) -> None:
        document = self.workspace.documents.get(URI) if hasattr(self, "workspace") else None
        if document is not None:
            assert document.text == self.text
            assert len(document) == len(self.text)

    @invariant()
    def the_stream_only_grows(self) -> None:
        if hasattr(self, "workspace"):
            now, hops = self.workspace.history.settled(), self.workspace.history.hops
            assert hops or now[: len(self.stream)] == self.stream
            self.stream = now


def test_a_session_of_edits_equals_the_naive_model() -> None:
    run_state_machine_as_test(TypingEditor, settings=settings(max_examples=30, stateful_step_count=30, deadline=None))


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
    assert desk.history.settled() == (Hunk("a.py", 3, "line 3\n", "path 3\n"), Hunk("a.py", 3, "path 3\n", "paths 3\n"))


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


def test_of_a_whole_text_that_is_sent_with_a_range_only_the_difference_counts() -> None:
    desk = Desk(TEXT * 20)
    for index in range(1, 4):
        desk.change(Position(0, 0), Position(10**6, 0), f"{'new'[:index]}{TEXT * 20}")
    (hunk,) = desk.history.open_edit()
    assert (hunk.before, hunk.after) == ("line 0\n", "newline 0\n")


def test_a_place_in_a_long_line_of_any_alphabet_is_found_at_once() -> None:
    line = "é😀" * 500_000
    document = Desk(line).document
    began = time.process_time()
    for offset in range(0, len(line), len(line) // 20):
        assert document.offset_at(*document.position_at(offset)) == offset
    assert time.process_time() - began <= 1.0


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
