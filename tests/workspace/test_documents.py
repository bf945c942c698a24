from __future__ import annotations

from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.workspace.naive import offset_of, position_of

from calomel.prompts.parts import Hunk
from calomel.workspace.documents import FullChange, Position, RangeChange
from calomel.workspace.workspace import Workspace

URI = "file:///w/a.py"
TYPED = st.text(st.sampled_from(list("ab x\t\r\n\u2028é😀")), max_size=12)
PLACES = st.tuples(st.integers(0, 6), st.integers(0, 12))


class Editor(RuleBasedStateMachine):
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
    run_state_machine_as_test(Editor, settings=settings(max_examples=30, stateful_step_count=30, deadline=None))
