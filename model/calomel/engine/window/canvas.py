"""A canvas of window mode, on the host: what is known of every position, and how sure the model was.

Canvases here are short beside the window that every step forwards, and some grow and shrink: plain lists do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calomel.engine.verify import Prediction


@dataclass(slots=True)
class WindowCanvas:
    """What is known of a canvas; position i of every list is position i of the canvas.

    Attributes:
        mask_token_id: stands where nothing is known.
        ids: token ids.
        frozen: whether a token stands there from outside, to stay.
        best: the best token of the last step that read the position; -1 before the first.
        flips: how often it changed.
        log_probs: of the tokens when they were revealed; `entropies` likewise.
    """

    mask_token_id: int
    ids: list[int] = field(default_factory=list)
    frozen: list[bool] = field(default_factory=list)
    best: list[int] = field(default_factory=list)
    flips: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)

    @classmethod
    def begin(cls, length: int, frozen: Mapping[int, int], mask_token_id: int) -> WindowCanvas:
        """`length` positions of which only `frozen`, position to token id, are known."""
        canvas = cls(mask_token_id)
        canvas.insert(0, length)
        for position, token in frozen.items():
            canvas.ids[position], canvas.frozen[position] = token, True
        return canvas

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def revealed(self) -> list[bool]:
        """Per position, whether it is known."""
        return [token != self.mask_token_id for token in self.ids]

    def masked(self, start: int, stop: int) -> list[int]:
        """The positions from `start` to `stop` that are not known."""
        return [column for column in range(start, min(stop, len(self))) if self.ids[column] == self.mask_token_id]

    def read(self, column: int, best: int) -> None:
        """A step's best token for `column` is `best`."""
        self.flips[column] += self.best[column] not in (-1, best)
        self.best[column] = best

    def take(self, column: int, token: int, log_prob: float, entropy: float) -> None:
        """`token` stands at `column` now."""
        self.ids[column], self.log_probs[column], self.entropies[column] = token, log_prob, entropy

    def settle(self, slot: int, column: int, found: Prediction) -> None:
        """For a constraint: make one position known, to stay; `slot` has no meaning here."""
        del slot
        self.take(column, found.token, found.log_prob, found.entropy)
        self.frozen[column] = True

    def hide(self, slot: int, start: int, stop: int) -> None:
        """Mask the positions from `start` to `stop` again, but for the frozen ones; `slot` has no meaning here."""
        del slot
        for column in range(start, min(stop, len(self))):
            if not self.frozen[column]:
                self.ids[column] = self.mask_token_id

    def insert(self, column: int, count: int) -> None:
        """Put `count` masks before `column`."""
        self.ids[column:column] = [self.mask_token_id] * count
        self.frozen[column:column] = [False] * count
        self.best[column:column] = [-1] * count
        self.flips[column:column] = [0] * count
        self.log_probs[column:column] = [0.0] * count
        self.entropies[column:column] = [0.0] * count

    def drop(self, start: int, stop: int) -> None:
        """Take the positions from `start` to `stop` out."""
        for values in (self.ids, self.frozen, self.best, self.flips, self.log_probs, self.entropies):
            del values[start:stop]
