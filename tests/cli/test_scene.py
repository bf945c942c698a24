from __future__ import annotations

import pytest

from calomel.cli.tour import Piece, Scene
from calomel.replay.events import Edit

TEXT = "one two\nthree\n"


def marked(scene: Scene) -> str:
    """The caret as |, what is new in ⟦⟧, what is old in ⟨⟩."""
    shapes = {"": "{}", "new": "⟦{}⟧", "old": "⟨{}⟩", "caret": "|{}"}
    return "".join(shapes[piece.mark].format(piece.text) for piece in scene.pieces())


@pytest.mark.parametrize(
    ("caret", "edits", "expected"),
    [
        (3, (), "one| two\nthree\n"),
        (7, (), "one two|\nthree\n"),
        (14, (), "one two\nthree\n|"),
        (3, (Edit(3, 3, " half"),), "one|⟦ half⟧ two\nthree\n"),
        (0, (Edit(8, 13, "four"),), "|one two\n⟨three⟩⟦four⟧\n"),
        (10, (Edit(8, 13, ""),), "one two\n|⟨three⟩\n"),
        (13, (Edit(4, 7, "2"), Edit(8, 13, "3")), "one ⟨two⟩⟦2⟧\n⟨three⟩⟦3⟧|\n"),
    ],
)
def test_caret_is_seen_once_and_the_suggestion_is_marked(caret: int, edits: tuple[Edit, ...], expected: str) -> None:
    assert marked(Scene("a.py", TEXT, caret, edits)) == expected


def test_a_suggestion_elsewhere_is_in_sight_too() -> None:
    scene = Scene("a.py", TEXT, 0, (Edit(8, 13, "four"),))
    assert (scene.focus(), scene.place()) == ((0, 1), "a.py:2")


def test_text_without_a_suggestion_is_what_it_was() -> None:
    pieces = Scene("a.py", "", 0).pieces()
    assert pieces == [Piece("", "caret")]
