from __future__ import annotations

from dataclasses import dataclass

import pytest

from calomel.suggest.edit import Planned
from calomel.suggest.session import Rejections


@dataclass(frozen=True, slots=True)
class Typed:
    start: int
    end: int
    inserted: str
    removed: str


class Text:
    def __init__(self, text: str) -> None:
        self.text = text
        self.known = Rejections()

    def reject(self, at: int, answer: str) -> None:
        self.known.add("u", self.text, [Planned(at, at, answer, "")])

    def change(self, start: int, end: int, inserted: str) -> None:
        self.known.changed("u", Typed(start, end, inserted, self.text[start:end]))
        self.text = self.text[:start] + inserted + self.text[end:]

    def has(self, at: int, answer: str) -> bool:
        return self.known.has("u", self.text, [Planned(at, at, answer, "")])


def test_the_same_suggestion_at_the_same_place_is_known() -> None:
    text = Text("x = \n")
    text.reject(4, "compute()")
    assert text.has(4, "compute()")
    assert not text.has(4, "other()")
    assert not text.known.has("another document", text.text, [Planned(4, 4, "compute()", "")])


def test_the_rest_of_a_rejected_suggestion_is_known_too() -> None:
    text = Text("x = \n")
    text.reject(4, "f(\n  a\n)")
    for at, character in enumerate("f(\n  "):
        text.change(4 + at, 4 + at, character)
        assert text.has(5 + at, "f(\n  a\n)"[at + 1 :])


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_changes_far_away_make_no_difference(line_end: str) -> None:
    text = Text(line_end.join(["a", "b", "c", "x = ", "d", "e", "f", ""]))
    at = text.text.index("x = ") + 4
    text.reject(at, "compute()")
    text.change(len(text.text), len(text.text), "more")
    assert text.has(at, "compute()")
    text.change(0, 0, f"first{line_end}")
    assert text.has(at + len(f"first{line_end}"), "compute()")


def test_a_change_on_its_line_or_the_one_beside_it_lets_it_come_again() -> None:
    for start, end, inserted in ((0, 1, "result"), (5, 6, "other"), (6, 6, "!")):
        text = Text("x = \ny\n")
        text.reject(4, "compute()")
        text.change(start, end, inserted)
        at = 4 + (len(inserted) - (end - start) if start < 4 else 0)
        assert not text.has(at, "compute()")


def test_typing_something_else_and_deleting_it_again_changes_nothing() -> None:
    text = Text("x = \n")
    text.reject(4, "compute()")
    text.change(4, 4, "z")
    text.change(4, 5, "")
    assert text.has(4, "compute()")


def test_the_same_text_elsewhere_is_another_suggestion() -> None:
    text = Text("x = \n\n\n\n\nx = \n")
    text.reject(4, "compute()")
    assert not text.has(13, "compute()")


def test_twenty_are_remembered() -> None:
    text = Text("x = \n")
    for number in range(21):
        text.reject(4, f"f{number}")
    assert [text.has(4, f"f{number}") for number in (0, 1, 20)] == [False, True, True]


def test_a_closed_document_is_forgotten() -> None:
    text = Text("x = \n")
    text.reject(4, "compute()")
    text.known.closed("u")
    assert not text.has(4, "compute()")
