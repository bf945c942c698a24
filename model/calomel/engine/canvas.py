"""The canvases of all active requests: what is known of every position, and how sure the model was.

One row of the board is one canvas. Everything is a tensor over [slots, longest canvas], so that a step updates all
canvases at once and the host reads one small tensor behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from calomel.engine.foresight import Foresight
from calomel.engine.reveal import RevealPolicy, revise
from calomel.engine.sampling import Choice
from calomel.engine.verify import Prediction


@dataclass(frozen=True, slots=True)
class Reading:
    """Where the rows of a step's `Choice` belong, and how its canvases are revealed; B canvases, M rows.

    Attributes:
        slots: [B] the canvases' rows on the board.
        rows: [M] rows of the choice.
        canvas: [M] which of the B canvases each row belongs to.
        column: [M] which position of it.
        policies: reveal policy of each canvas.
        last: whether a canvas has its last step, which reveals everything.
        revise: whether revealed positions may change.
        stops: of each canvas, the position from which on nothing is revealed yet; None where everything may be.
        early: of each canvas, so many positions are decided for themselves; None where there are no such.
        edits: of each canvas, the probability above which a revealed position changes; None where any will do.
    """

    slots: Sequence[int]
    rows: Sequence[int]
    canvas: Sequence[int]
    column: Sequence[int]
    policies: Sequence[RevealPolicy]
    last: Sequence[bool]
    revise: Sequence[bool]
    stops: Sequence[int] | None = None
    early: Sequence[int] | None = None
    edits: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A canvas behind a step, on the host: ids and revealed by position, and whether the step revised any."""

    ids: list[int]
    revealed: list[bool]
    revised: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What a step read of B canvases, by position: `read` tells of which, the others are those of its `Choice`."""

    read: Tensor
    token: Tensor
    best: Tensor
    log_prob: Tensor
    entropy: Tensor


class Board:
    """The state of up to `slots` canvases of up to `longest` positions.

    Attributes:
        foresight: what they look like behind their first step.
    """

    def __init__(self, slots: int, longest: int, *, mask_token_id: int, device: torch.device) -> None:
        shape = (slots, longest)
        self.mask_token_id = mask_token_id
        self.device = device
        self.foresight = Foresight()
        self.ids = torch.full(shape, mask_token_id, dtype=torch.int64, device=device)
        self.revealed = torch.zeros(shape, dtype=torch.bool, device=device)
        self.frozen = torch.zeros(shape, dtype=torch.bool, device=device)
        self.best = torch.full(shape, -1, dtype=torch.int64, device=device)
        self.flips = torch.zeros(shape, dtype=torch.int64, device=device)
        self.log_probs = torch.zeros(shape, device=device)
        self.entropies = torch.zeros(shape, device=device)

    def clear(self, slot: int, frozen: Mapping[int, int]) -> None:
        """Begin a new canvas in `slot` where only `frozen`, position to token id, is known, and stays."""
        self.ids[slot] = self.mask_token_id
        self.best[slot] = -1
        for state in (self.revealed, self.frozen, self.flips, self.log_probs, self.entropies):
            state[slot] = 0
        if frozen:
            columns = torch.tensor(list(frozen), device=self.device)
            self.ids[slot, columns] = torch.tensor(list(frozen.values()), device=self.device)
            self.revealed[slot, columns] = True
            self.frozen[slot, columns] = True

    def fix(self, slot: int, column: int, token: int) -> None:
        """Make one position known from outside."""
        self.ids[slot, column] = token
        self.revealed[slot, column] = True
        self.frozen[slot, column] = True

    def settle(self, slot: int, column: int, found: Prediction) -> None:
        """Make one position known by a decision that is made outside."""
        self.fix(slot, column, found.token)
        self.log_probs[slot, column] = found.log_prob
        self.entropies[slot, column] = found.entropy

    def hide(self, slot: int, start: int, stop: int) -> None:
        """Mask the positions from `start` to `stop` again, but for the frozen ones."""
        hidden = ~self.frozen[slot, start:stop]
        self.ids[slot, start:stop].masked_fill_(hidden, self.mask_token_id)
        self.revealed[slot, start:stop].masked_fill_(hidden, value=False)

    def shift(self, slot: int, count: int) -> None:
        """Drop the first `count` positions of a canvas; as many masked ones come behind it."""
        for state, empty in (
            (self.ids, self.mask_token_id),
            (self.revealed, False),
            (self.frozen, False),
            (self.best, -1),
            (self.flips, 0),
            (self.log_probs, 0),
            (self.entropies, 0),
        ):
            state[slot] = state[slot].roll(-count)
            state[slot, -count:] = empty

    def advance(self, choice: Choice, reading: Reading) -> list[Snapshot]:
        """Reveal and revise, by one step, the canvases of `reading`; one host synchronisation."""
        width = self.ids.shape[1]
        index = torch.tensor([reading.rows, reading.canvas, reading.column], device=self.device)
        rows, where = index[0], (index[1], index[2])
        shape = (len(reading.slots), width)
        slots = torch.tensor(reading.slots, device=self.device)

        def place(values: Tensor) -> Tensor:
            return torch.zeros(shape, dtype=values.dtype, device=self.device).index_put_(where, values[rows])

        read = torch.zeros(shape, dtype=torch.bool, device=self.device).index_put_(where, torch.ones_like(rows).bool())
        found = Found(read, *(place(values) for values in (choice.token, choice.best, choice.log_prob, choice.entropy)))
        candidates = read & ~self.revealed[slots]
        if reading.stops is not None:
            columns = torch.arange(width, device=self.device)
            candidates &= columns < torch.tensor(reading.stops, device=self.device)[:, None]
        confidence = found.log_prob.exp()
        if reading.early is None:
            chosen = _select(reading, confidence, found.entropy, candidates)
        else:
            first = torch.arange(width, device=self.device) < torch.tensor(reading.early, device=self.device)[:, None]
            parts = (candidates & first, candidates & ~first)
            one, other = (_select(reading, confidence, found.entropy, part) & part for part in parts)
            chosen = one | other
        changeable = read
        if not all(reading.revise):
            changeable = changeable & torch.tensor(reading.revise, device=self.device)[:, None]
        if reading.edits is not None:
            changeable = changeable & (found.log_prob.exp() > torch.tensor(reading.edits, device=self.device)[:, None])
        ids, revealed, changed = self.take(slots, found, chosen, changeable)
        report = torch.cat((ids, revealed, changed.any(dim=-1, keepdim=True)), dim=-1).tolist()
        return [Snapshot(row[:width], [bool(flag) for flag in row[width : 2 * width]], bool(row[-1])) for row in report]

    def take(self, slots: Tensor, found: Found, chosen: Tensor, changeable: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Write down what a step decided; the host learns nothing.

        Args:
            slots: [B] the canvases' rows on the board, each another one.
            found: what the step read.
            chosen: [B, L] the positions that are revealed.
            changeable: [B, L] where a revealed position takes the token that was found, if it is another.

        Returns:
            Ids, whether they are revealed, and whether they were changed: [B, L] each.
        """
        ids, revealed, last_best = self.ids[slots], self.revealed[slots], self.best[slots]
        changed = changeable & revise(ids, found.token, revealed, self.frozen[slots])
        update = chosen | changed
        ids = torch.where(update, found.token, ids)
        revealed = revealed | chosen
        self.ids[slots] = ids
        self.revealed[slots] = revealed
        self.flips[slots] += found.read & (last_best >= 0) & (found.best != last_best)
        self.best[slots] = torch.where(found.read, found.best, last_best)
        self.log_probs[slots] = torch.where(update, found.log_prob, self.log_probs[slots])
        self.entropies[slots] = torch.where(update, found.entropy, self.entropies[slots])
        return ids, revealed, changed

    def confidences(self, slot: int, length: int) -> tuple[list[float], list[float], list[int]]:
        """Log-probabilities, entropies and flips of the first `length` positions of a canvas."""
        log_probs: list[float] = self.log_probs[slot, :length].tolist()
        entropies: list[float] = self.entropies[slot, :length].tolist()
        flips: list[int] = self.flips[slot, :length].tolist()
        return log_probs, entropies, flips


def _select(reading: Reading, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:
    """Apply each canvas' policy; canvases of one policy are decided together."""
    distinct = list(dict.fromkeys(reading.policies))
    if len(distinct) == 1:
        chosen = distinct[0](confidence, entropy, candidates)
    else:
        chosen = torch.zeros_like(candidates)
        for policy in distinct:
            group = [index for index, other in enumerate(reading.policies) if other == policy]
            chosen[group] = policy(confidence[group], entropy[group], candidates[group])
    if any(reading.last):
        chosen = chosen | (candidates & torch.tensor(reading.last, device=candidates.device)[:, None])
    return chosen
