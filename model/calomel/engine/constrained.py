"""Where a constraint meets what the model proposes.

A canvas is decided in parallel, a constraint reads from left to right. So the canvas has a front: what stands before it
is settled, and what is revealed behind it is a proposal. Behind every step the front moves over what the constraint
allows. At the first refused position the constraint masks the logits and a token is drawn, and what was proposed
beside the refused one is masked again. The front moves by one token a step at least, and over all that is forced.

Causal decisions come one behind the other anyway: each is made within the constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from calomel.engine.canvas import Snapshot
from calomel.engine.config import DiffusionConfig
from calomel.engine.constraint import Walk
from calomel.engine.errors import ConstraintFailedError
from calomel.engine.job import Job
from calomel.engine.request import Request
from calomel.engine.sampling import Choice, margins, sample
from calomel.engine.verify import Prediction


class Steered(Protocol):
    """A request whose canvas a constraint settles; `Job` is one. Positions are those of the canvas."""

    front: int

    @property
    def request(self) -> Request:
        """What was asked."""

    @property
    def diffusion(self) -> DiffusionConfig:
        """How the checkpoint denoises."""

    @property
    def generator(self) -> torch.Generator | None:
        """The request's random numbers."""

    @property
    def slot(self) -> int:
        """Where its canvas is on the board."""

    @property
    def length(self) -> int:
        """Positions of the canvas."""

    def frozen_at(self, column: int) -> int | None:
        """The token that stands at `column` from the start."""

    def frozen_behind(self, column: int) -> bool:
        """Whether one stands behind `column`."""

    def bans_end(self, column: int) -> bool:
        """Whether the answer can not end at `column`."""


class Settling(Protocol):
    """What is known of canvases; `Board` is one."""

    @property
    def mask_token_id(self) -> int:
        """Stands where nothing is known."""

    def settle(self, slot: int, column: int, found: Prediction) -> None:
        """Make one position known by a decision that is made outside."""

    def hide(self, slot: int, start: int, stop: int) -> None:
        """Mask the positions from `start` to `stop` again, but for the frozen ones."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one forward: `logits` [R, V] behind the penalties, and what was drawn from them unconstrained."""

    logits: Tensor
    choice: Choice

    def proposed(self, row: int) -> Prediction:
        """What was drawn without a constraint."""
        choice = self.choice
        return Prediction(int(choice.token[row]), float(choice.log_prob[row]), float(choice.entropy[row]), 1.0)

    def told(self, row: int, token: int) -> Prediction:
        """A token that is decided elsewhere."""
        own = self.choice.token[row]
        log_prob = self.choice.log_prob[row] + self.logits[row, token] - self.logits[row, own]
        return Prediction(token, float(log_prob), float(self.choice.entropy[row]), 1.0)

    def draw(self, row: int, job: Steered, walk: Walk, column: int) -> Prediction:
        """A token for `column` behind the final ones, out of those that `walk` allows.

        Probability and entropy are those of the model's own distribution, whatever the constraint has left of it.

        Raises:
            ConstraintFailedError: the constraint has no way on, or refuses a frozen token.
        """
        if job.frozen_at(column) is not None:
            raise ConstraintFailedError("the constraint does not allow a frozen token")
        ids = torch.from_numpy(_candidates(job, walk, column, self.logits.shape[-1])).to(self.logits.device)
        left, margin = self.logits[row, ids][None], 1.0
        if ids.numel() == 1:
            index = 0
        else:
            margin = float(margins(left))
            sampling = job.request.sampling
            drawn = sampling.temperature > 0 and job.generator is not None
            index = int(sample(left, sampling, job.generator) if drawn and job.generator else left.argmax(dim=-1))
        return replace(self.told(row, int(ids[index])), margin=margin)


def decide(job: Job, walk: Walk, predictions: Sequence[Prediction], first: int, rows: Rows) -> list[Prediction]:
    """The causal `predictions` of a job, made from row `first` on, within its constraint.

    They end at the first that the draft does not foretell: those behind it were predicted from another text.
    """
    end, draft = job.diffusion.end_token_id, job.draft or []
    decided: list[Prediction] = []
    for column, found in enumerate(predictions, 0 if job.known is None else 1):
        row = first + len(decided)
        taken = found if _accepts(walk, found.token, end) else rows.draw(row, job, walk, column)
        if taken is not found and taken.token != end:
            walk.advance((taken.token,))
        decided.append(taken)
        if taken.token == end or column >= len(draft) or draft[column] != taken.token:
            break
    return decided


def settle(
    job: Steered, walk: Walk, snapshot: Snapshot, first: int, rows: Rows, board: Settling, *, last: bool
) -> None:
    """Move the front of a canvas behind a step: `first` is the row of the front; the `last` step settles the canvas.

    Board and `snapshot` are changed: what is settled is revealed, what was proposed beside a refused token is not.
    """
    end, start = job.diffusion.end_token_id, job.front
    ids, revealed = snapshot.ids, snapshot.revealed
    for column in range(start, job.length):
        row = first + column - start
        found = None if revealed[column] else _masked(job, walk, column, row, rows, moved=column > start)
        if found is None and not revealed[column]:
            return
        token = ids[column] if found is None else found.token
        accepted = _accepts(walk, token, end)
        if not accepted:
            found = rows.draw(row, job, walk, column)
            token = found.token
            if token != end:
                walk.advance((token,))
        if found is not None:
            board.settle(job.slot, column, found)
            ids[column], revealed[column] = token, True
        job.front = column + 1
        if token == end:
            return
        if not accepted and not last:
            _hide(job, snapshot, board)


def _hide(job: Steered, snapshot: Snapshot, board: Settling) -> None:
    """Mask what is proposed behind the front again."""
    board.hide(job.slot, job.front, job.length)
    for behind in range(job.front, job.length):
        if job.frozen_at(behind) is None:
            snapshot.ids[behind], snapshot.revealed[behind] = board.mask_token_id, False


def _masked(job: Steered, walk: Walk, column: int, row: int, rows: Rows, *, moved: bool) -> Prediction | None:
    """What stands at a masked position: the likeliest if the front has not moved in this step, else what is forced."""
    if not moved:
        return rows.proposed(row)
    only = _forced(job, walk, column, rows.logits.shape[-1])
    return None if only is None else rows.told(row, only)


def _forced(job: Steered, walk: Walk, column: int, vocab: int) -> int | None:
    """The one token that can stand at `column`, if that is known without much ado."""
    forced = walk.forced()
    if forced:
        return forced[0]
    if not walk.may_end():
        return None
    ids = _candidates(job, walk, column, vocab)
    return int(ids[0]) if ids.size == 1 else None


def _accepts(walk: Walk, token: int, end: int) -> bool:
    return walk.may_end() if token == end else walk.advance((token,)) == 1


def _candidates(job: Steered, walk: Walk, column: int, vocab: int) -> np.ndarray:
    """The ids [N] int64, in rising order, that may stand at `column`; not empty."""
    end, mask = job.diffusion.end_token_id, job.diffusion.mask_token_id
    bits = np.unpackbits(np.frombuffer(walk.allowed(), dtype=np.uint8), bitorder="little")[:vocab]
    left = np.zeros(vocab, dtype=bool)
    left[: len(bits)] = bits
    left[[end, mask]] = False
    # An answer that can only end does so whatever its length; but not before tokens that were promised.
    if walk.may_end() and (not job.bans_end(column) or not (left.any() or job.frozen_behind(column))):
        left[end] = True
    ids = np.flatnonzero(left)
    if not ids.size:
        raise ConstraintFailedError("the constraint leaves no token, and the answer may not end")
    return ids
