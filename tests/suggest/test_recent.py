from __future__ import annotations

from dataclasses import dataclass

from calomel.selectivity.proposal import Recent
from calomel.suggest.edit import utf16_length, with_line_ends_of
from calomel.suggest.recent import RecentEdits
from calomel.suggest.session import Cursors


@dataclass(frozen=True, slots=True)
class Typed:
    start: int
    end: int
    inserted: str
    removed: str


class Document:
    def __init__(self, text: str) -> None:
        self.now = 0.0
        self.text = text
        self.edits = RecentEdits(lambda: self.now)

    def change(self, start: int, end: int, inserted: str) -> None:
        self.edits.changed(Typed(start, end, inserted, self.text[start:end]))
        self.text = self.text[:start] + inserted + self.text[end:]


def test_keystrokes_in_a_row_are_one_edit() -> None:
    document = Document("x = \n")
    for at, character in enumerate("abc"):
        document.change(4 + at, 4 + at, character)
    document.change(6, 7, "")
    assert document.edits.recent() == (Recent(4, 6, "", "ab"),)


def test_backspaces_in_a_row_are_one_deletion() -> None:
    document = Document("x = foo\n")
    for end in (7, 6, 5):
        document.change(end - 1, end, "")
    assert document.edits.recent() == (Recent(4, 4, "foo", ""),)


def test_an_older_edit_moves_with_the_text() -> None:
    document = Document("x = foo\nlast\n")
    document.change(4, 7, "")
    document.change(0, 0, "import a\n")
    assert document.edits.recent() == (Recent(13, 13, "foo", ""), Recent(0, 9, "", "import a\n"))
    document.change(12, 14, "!")
    assert document.edits.recent()[0].removed != "foo"


def test_after_a_minute_nothing_is_recent() -> None:
    document = Document("x = foo\n")
    document.change(4, 7, "")
    document.now = 61.0
    assert document.edits.recent() == ()
    assert document.edits.age == 61.0


def test_a_paste_is_no_wish_of_a_moment() -> None:
    document = Document("")
    document.change(0, 0, "x" * 5000)
    assert document.edits.recent() == ()
    assert document.edits.age == 0.0


def test_cursors_are_counted_by_message() -> None:
    def several(*messages: list[Typed]) -> bool:
        cursors = Cursors()
        for version, changes in enumerate(messages):
            for change in changes:
                cursors.changed(version, change)
        return cursors.several

    assert not several([Typed(0, 0, "x", "")])
    assert several([Typed(0, 0, "x", "")], [Typed(1, 1, "y", ""), Typed(5, 5, "y", "")])
    assert not several([Typed(1, 1, "y", ""), Typed(5, 5, "y", "")], [Typed(2, 2, "z", "")])
    # A formatter's changes are not alike.
    assert not several([Typed(2, 2, "z", ""), Typed(5, 7, "", "ab")])
    # One key held down, forwards and backwards, and a completion that is put in anew.
    assert not several([Typed(2, 2, "l", ""), Typed(3, 3, "l", "")])
    assert not several([Typed(4, 5, "", "a"), Typed(3, 4, "", "b")])
    assert not several([Typed(1, 3, "va", "va"), Typed(1, 3, "va", "va")])


def test_lengths_are_counted_as_editors_do() -> None:
    assert utf16_length("a😀é") == 4


def test_line_ends_become_those_of_the_document() -> None:
    assert with_line_ends_of("a\nb\r\nc", "x\r\ny") == "a\r\nb\r\nc"
    assert with_line_ends_of("a\r\nb", "x") == "a\nb"
    assert with_line_ends_of("a\nb", "x\ry") == "a\rb"
