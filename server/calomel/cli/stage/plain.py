"""Writes a demonstration down, line by line: for pipes, logs and terminals that cannot do more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from calomel.cli.excerpt import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from calomel.cli.stage.scene import Piece, Scene, Tally

_BRACKETS: Final = {"new": "⟦{}⟧", "old": "⟨{}⟩"}


class PlainView:
    """Each suggestion with its lines, its canvases and what became of it.

    What is suggested stands in ⟦⟧, what it replaces in ⟨⟩.

    Args:
        write: takes lines.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._canvases: list[str] = []

    def show(self, scene: Scene, tally: Tally) -> None:  # noqa: ARG002 (what a terminal shows besides)
        """Keep the canvases until it is known what became of them."""
        if scene.canvas is None:
            self._canvases = []
        elif not scene.edits:
            self._canvases.append(scene.canvas.text)

    def tell(self, scene: Scene) -> None:
        """Write it down."""
        likely = "" if scene.likely is None else f"{scene.likely:.0%} likely · "
        self._write(f"{scene.place()}  {likely}by {scene.maker or 'the model'} in {scene.milliseconds:.0f} ms")
        for step, canvas in enumerate(self._canvases, 1):
            self._write(f"    step {step}  {_one_line(canvas)}")
        for line in suggested_lines(scene.pieces()):
            self._write(f"    {line}")
        self._write(f"    {scene.said}")
        self._canvases = []


def suggested_lines(pieces: Sequence[Piece]) -> Sequence[str]:
    """The lines that a suggestion touches, with its marks."""
    text = "".join(_BRACKETS.get(piece.mark, "{}").format(visible(piece.text)) for piece in pieces)
    lines = text.split("\n")
    touched: list[str] = []
    inside = False
    for line in lines:
        if inside or any(mark in line for mark in "⟦⟨"):
            touched.append(line.rstrip())
        opened, closed = max(line.rfind(mark) for mark in "⟦⟨"), max(line.rfind(mark) for mark in "⟧⟩")
        inside = opened > closed or (inside and closed < 0)
    return touched


def _one_line(canvas: str) -> str:
    return visible(canvas).replace("\n", "⏎")
