"""Where the clients of the load bench type: places in held-out files, each with its context and the text to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.bench.cells import Cell, cell_holes
from calomel.bench.heldout import HeldoutFile
from calomel.bench.holes import Hole, TokenMeasure

# Of the tokens of a context: room is left for what is typed, so that no keystroke makes the door cut a line off.
_BEFORE, _BEHIND = 0.73, 0.23
# The model is told to give this many: an answer of no fixed length would make each run another measurement.
ANSWER_TOKENS: Final = 32


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor in a file.

    Attributes:
        prefix: the text before it.
        suffix: the text behind it.
        typed: what its user types there, a character a request.
    """

    prefix: str
    suffix: str
    typed: str

    def request(self, keys: int) -> dict[str, object]:
        """The body of a fill after so many keystrokes; begins anew behind the last."""
        at = keys % (len(self.typed) + 1)
        return {
            "model": "nano",
            "prompt": self.prefix + self.typed[:at],
            "suffix": self.suffix,
            "max_tokens": ANSWER_TOKENS,
            "min_tokens": ANSWER_TOKENS,
            "stop": [],
        }


def make_places(
    count: int, context: int, files: Sequence[HeldoutFile], measure: TokenMeasure, *, seed: int
) -> tuple[Place, ...]:
    """So many different places with `context` tokens around each, a tenth less at most.

    Raises:
        BenchDataError: the held-out files are too short.
    """
    holes = cell_holes(Cell(context, ANSWER_TOKENS), files, measure, seed=seed)
    return tuple(_place(next(holes), context, measure) for _ in range(count))


def _place(hole: Hole, context: int, measure: TokenMeasure) -> Place:
    before = _last(hole.prefix, int(context * _BEFORE), measure)
    behind = _first(hole.suffix, int(context * _BEHIND), measure)
    return Place(before, behind, hole.answer)


def _last(text: str, tokens: int, measure: TokenMeasure) -> str:
    """The end of `text`, of whole lines, with at most so many tokens."""
    lines = text.splitlines(keepends=True)
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high) // 2
        if measure.count("".join(lines[middle:])) > tokens:
            low = middle + 1
        else:
            high = middle
    return "".join(lines[low:])


def _first(text: str, tokens: int, measure: TokenMeasure) -> str:
    """The beginning of `text`, of whole lines, with at most so many tokens."""
    lines = text.splitlines(keepends=True)
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if measure.count("".join(lines[:middle])) > tokens:
            high = middle - 1
        else:
            low = middle
    return "".join(lines[:low])
