from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from calomel.suggest.cache import Cache, Entry
from calomel.suggest.completer import Candidate, Kind
from calomel.suggest.edit import Planned, apply, edits_of
from calomel.suggest.judging import Decision, Proposed
from calomel.suggest.offering import may_replace
from calomel.suggest.signals import OutcomeSignals
from calomel.suggest.silence import SilenceReason


@dataclass(frozen=True, slots=True)
class Typed:
    start: int
    end: int
    inserted: str
    removed: str


class Text:
    """A document and the cache beside it."""

    def __init__(self, text: str, limit: int = 50) -> None:
        self.text = text
        self.cache = Cache(limit)

    def keep(self, at: int, answer: str, kind: Kind = "fill", window: tuple[int, int] = (0, 0)) -> None:
        edits = (Planned(at, at, answer, ""),)
        decision = Decision(Proposed(Candidate(answer), edits), kind, OutcomeSignals(), 0.5)
        self.cache.put(self.text, Entry("u", kind, at, decision, window))

    def change(self, start: int, end: int, inserted: str) -> None:
        change = Typed(start, end, inserted, self.text[start:end])
        self.text = self.text[:start] + inserted + self.text[end:]
        self.cache.changed("u", change)

    def found(self, at: int, kind: Kind = "fill") -> str | None:
        entry = self.cache.find("u", kind, self.text, at)
        return None if entry is None or not entry.edits else apply(self.text, edits_of(entry.edits))


def test_the_same_state_finds_its_answer() -> None:
    text = Text("x = \n")
    text.keep(4, "compute")
    assert text.found(4) == "x = compute\n"
    assert text.found(3) is None
    assert text.found(4, "edit") is None


def test_typing_into_an_answer_and_back_finds_it_each_time() -> None:
    text = Text("x = \n")
    text.keep(4, "compute")
    text.change(4, 4, "co")
    assert text.found(6) == "x = compute\n"
    text.change(6, 6, "x")
    assert text.found(7) is None
    text.change(4, 7, "")
    assert text.found(4) == "x = compute\n"


def test_an_undone_change_elsewhere_finds_it_again() -> None:
    text = Text("a\nx = \n")
    text.keep(6, "compute")
    text.change(0, 1, "long")
    assert text.found(9) == "long\nx = compute\n"
    text.change(0, 4, "a")
    assert text.found(6) == "a\nx = compute\n"


def test_an_edit_is_found_while_the_cursor_is_near() -> None:
    text = Text("".join(f"{line}\n" for line in range(50)))
    text.keep(20, "x", kind="edit", window=(10, 30))
    assert text.found(12, "edit") is not None
    assert text.found(25, "edit") is not None
    assert text.found(90, "edit") is None


def test_silence_is_remembered_for_its_very_state() -> None:
    text = Text("x = \n")
    text.cache.put(text.text, Entry("u", "fill", 4, SilenceReason.EMPTY))
    entry = text.cache.find("u", "fill", text.text, 4)
    assert entry is not None
    assert entry.decision is SilenceReason.EMPTY
    text.change(4, 4, "y")
    assert text.cache.find("u", "fill", text.text, 5) is None


def test_the_least_recently_used_answer_goes_first() -> None:
    text = Text("abcdef\n", limit=2)
    text.keep(0, "x")
    text.keep(1, "y")
    assert text.found(0) is not None
    text.keep(2, "z")
    assert [text.found(at) is not None for at in (0, 1, 2)] == [True, False, True]
    assert len(text.cache) == 2


def test_a_closed_document_leaves_nothing() -> None:
    text = Text("x = \n")
    text.keep(4, "compute")
    text.cache.closed("u")
    assert (text.found(4), len(text.cache)) == (None, 0)


ALPHABET = "ab\n"


@given(
    st.text(ALPHABET, max_size=10),
    st.text(ALPHABET, min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2), st.text(ALPHABET, max_size=3)), max_size=5),
    st.data(),
)
def test_whatever_is_found_leads_where_the_answer_led_or_to_the_same_answer_in_a_changed_text(
    start: str, answer: str, changes: list[tuple[int, int, str]], data: st.DataObject
) -> None:
    text = Text(start)
    at = data.draw(st.integers(0, len(start)))
    text.keep(at, answer)
    for wanted, length, inserted in changes:
        begin = min(wanted, len(text.text))
        text.change(begin, min(begin + length, len(text.text)), inserted)
    for cursor in range(len(text.text) + 1):
        entry = text.cache.find("u", "fill", text.text, cursor)
        if entry is not None:
            (edit,) = entry.edits or ()
            assert (edit.start, edit.removed) == (cursor, "")
            assert edit.text in answer
            # What was typed of the answer stands directly before (or, for closing brackets, behind) the rest.
            if entry.agreed:
                assert apply(text.text, [edit.edit]) == apply(start, [Planned(at, at, answer, "").edit])


def test_a_visible_suggestion_gives_way_to_its_own_continuation_alone() -> None:
    shown = [Planned(4, 4, "com", "")]
    assert may_replace(None, shown)
    assert may_replace((), shown)
    assert may_replace(shown, [Planned(4, 4, "compute", "")])
    assert not may_replace(shown, [Planned(4, 4, "other", "")])
    assert not may_replace(shown, [Planned(5, 5, "compute", "")])
    assert not may_replace(shown, [Planned(4, 4, "com", ""), Planned(9, 9, "x", "")])
