from __future__ import annotations

import io
from collections import Counter

import pytest
from rich.console import Console

from calomel.cli.demo import picture, suggested_lines, told
from calomel.cli.tour import Scene, Tally
from calomel.replay.events import Edit
from calomel.suggest.completer import CanvasText

TEXT = "".join(f"line {number}\n" for number in range(60))


def drawn(scene: Scene, width: int, height: int) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, record=True)
    console.print(picture(scene, Tally(Counter(accepted=2, rejected=1), Counter(empty=4)), width, height))
    return console.export_text()


@pytest.mark.parametrize(("width", "height"), [(120, 40), (80, 24), (60, 30), (200, 60)])
def test_picture_fits_the_terminal_and_has_caret_and_suggestion(width: int, height: int) -> None:
    at = TEXT.index("line 40") + len("line 40")
    found = drawn(
        Scene("a.py", TEXT, at, (Edit(at, at, " and more"),), said="suggested", maker="canvas"), width, height
    )
    lines = found.rstrip("\n").split("\n")
    assert len(lines) < height
    assert all(len(line.rstrip()) <= width for line in lines)
    assert "line 40  and more" in found  # with the caret between them
    assert "shown 3" in found


def test_what_a_model_writes_cannot_control_the_terminal() -> None:
    canvas = CanvasText(1, "\x1b", ("\x1b[31m",), (True,))
    scene = Scene("a.py", "x\n", 1, (Edit(1, 1, "\x1b[2J\x07"),), canvases=(canvas,))
    assert "\x1b" not in "".join([*told(scene), drawn(scene, 120, 40)])


def test_a_long_file_is_shown_around_a_suggestion_far_from_the_caret() -> None:
    at = TEXT.index("line 55")
    assert "new 55" in drawn(Scene("a.py", TEXT, 0, (Edit(at, at + 4, "new"),)), 120, 30)


def test_canvas_likelihood_maker_and_place_stand_beside_it() -> None:
    canvas = CanvasText(2, "return ░", ("return", " ░"), (True, False))
    scene = Scene("a.py", "x\n", 1, (Edit(1, 1, "y"),), (canvas,), 5, likely=0.25, maker="canvas", milliseconds=41.6)
    found = drawn(scene, 120, 30)
    for said in ("canvas, step 2 of 5", "return ░", "25% likely", "by canvas, 42 ms, at a.py:1"):
        assert said in found


def test_plain_lines_have_the_steps_the_suggestion_and_the_outcome() -> None:
    canvases = tuple(CanvasText(step, text, (text,), (False,)) for step, text in ((1, "░░"), (2, "b\nc")))
    scene = Scene("a.py", "a\n", 1, (Edit(1, 1, "b"),), canvases, 2, 0.5, "canvas", 12, "accepted: so", "accepted")
    assert told(scene) == [
        "a.py:1  50% likely · by canvas in 12 ms",
        "    step 1  ░░",
        "    step 2  b⏎c",
        "    a⟦b⟧",
        "    accepted: so",
    ]


def test_plain_lines_are_only_those_that_a_suggestion_touches() -> None:
    scene = Scene("a.py", "one\ntwo\nthree\nfour\n", 0, (Edit(4, 7, "2a\n2b"), Edit(14, 18, "4")))
    assert suggested_lines(scene.pieces()) == ["⟨two⟩⟦2a", "2b⟧", "⟨four⟩⟦4⟧"]
