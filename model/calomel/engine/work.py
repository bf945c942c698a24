"""What an engine has done so far, counted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """Counts since an engine began; the difference of two of them is what was done in between.

    Attributes:
        forwards: of the model.
        steps: of them, those that did more than encode context: denoised, verified or judged.
        rows: of all forwards.
        context_rows: of them, those of context encoded ahead of the first step.
    """

    forwards: int = 0
    steps: int = 0
    rows: int = 0
    context_rows: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.forwards + other.forwards,
            self.steps + other.steps,
            self.rows + other.rows,
            self.context_rows + other.context_rows,
        )

    def __sub__(self, other: Work) -> Work:
        return Work(
            self.forwards - other.forwards,
            self.steps - other.steps,
            self.rows - other.rows,
            self.context_rows - other.context_rows,
        )
