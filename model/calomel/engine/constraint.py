"""Applies a constraint to what the model proposes.

A canvas is decided in parallel, a constraint reads from left to right. So the canvas has a front: what is before it is
settled, and what is revealed after it is a proposal. After every step the front moves over what the constraint allows.
At the first refused position the constraint masks the logits and a token is drawn, and what was proposed together with
the refused one is masked again. The front moves by at least one token a step, and over all that is forced.

Causal decisions come one after the other anyway: each is made within the constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from calomel.engine.errors import ConstraintFailedError
from calomel.engine.job import Canvas, Job
from calomel.engine.request import Walk
from calomel.engine.sampling import Prediction, Told, sample

K = TypeVar("K", bound=Canvas)


def decide(job: Job[Any, Any, Any], walk: Walk, told: Told, draft: Sequence[int]) -> list[Prediction]:
    """What the causal mode has `told`, with logits on the host, within the constraint.

    It ends at the first token that differs from the draft: later ones were predicted from another text.
    """
    decided: list[Prediction] = []
    for row, token in enumerate(told.tokens):
        taken = told.row(row)
        if not _accepts(job, walk, token):
            taken = told.row(row, _draw_allowed(job, walk, row, told, row))
        decided.append(taken)
        if taken.token in job.ends or row >= len(draft) or draft[row] != taken.token:
            break
    return decided


def settle(job: Job[Any, K, Any], walk: Walk, told: Told, *, last: bool) -> None:
    """Move the front of a canvas after a step that has `told`, with logits on the host, of it and what follows.

    What is settled is revealed; what was proposed together with a refused token is not. The `last` step settles all.
    """
    canvas, start = job.canvas, job.front
    vocab = 0 if told.logits is None else told.logits.shape[-1]
    for column in range(start, len(canvas)):
        row = column - start
        found = None
        if canvas.ids[column] == canvas.mask_token_id:
            # The likeliest token if the front has not moved in this step, else a forced one.
            only = None if column == start else _only_token(job, walk, column, vocab)
            if only is None and column > start:
                return
            found = told.row(row, only)
        token = canvas.ids[column] if found is None else found.token
        accepted = _accepts(job, walk, token)
        if not accepted:
            token = _draw_allowed(job, walk, column, told, row)
            found = told.row(row, token)
        if found is not None:
            canvas.take(column, found)
        job.front = column + 1
        if token in job.ends:
            return
        if not accepted and not last:
            canvas.hide(job.front)


def _accepts(job: Job[Any, Any, Any], walk: Walk, token: int) -> bool:
    """Whether `walk` has accepted `token`, or lets the answer end with it."""
    return walk.may_end() if token in job.ends else walk.advance((token,)) == 1


def _only_token(job: Job[Any, Any, Any], walk: Walk, column: int, vocab: int) -> int | None:
    """The only token that can stand at `column`, if that is known cheaply."""
    forced = walk.forced()
    if forced:
        return forced[0]
    if not walk.may_end():
        return None
    ids = _allowed(job, walk, column, vocab)
    return int(ids[0]) if ids.size == 1 else None


def _draw_allowed(job: Job[Any, Any, Any], walk: Walk, column: int, told: Told, row: int) -> int:
    """Draw a token for `column` among those that `walk` allows, and advance `walk` by it.

    Args:
        job: whose canvas it is.
        walk: is right before `column`.
        column: of the canvas.
        told: has the logits of that position in `row`.
        row: see `told`.

    Raises:
        ConstraintFailedError: the constraint allows no continuation.
    """
    if told.logits is None:
        raise RuntimeError("a constraint needs logits")
    ids = _allowed(job, walk, column, told.logits.shape[-1])
    left, sampling, index = told.logits[row, ids][None], job.request.sampling, 0
    if ids.size > 1:
        finite = bool(left.isfinite().all())
        index = int(sample(left, sampling, job.generator) if finite else left.argmax(dim=-1))
    token = int(ids[index])
    if token not in job.ends:
        walk.advance((token,))
    return token


def _allowed(job: Job[Any, Any, Any], walk: Walk, column: int, vocab: int) -> np.ndarray:
    """The ids [N] int64, in ascending order, that may stand at `column`; not empty."""
    bits = np.unpackbits(np.frombuffer(walk.allowed(), dtype=np.uint8), bitorder="little")[:vocab]
    left = np.zeros(vocab, dtype=bool)
    left[: len(bits)] = bits
    mask = job.diffusion.mask_token_id
    left[[*job.ends, *((mask,) if mask >= 0 else ())]] = False
    # An answer that can only end does so whatever its length.
    if walk.may_end() and not (job.bans_end(column) and left.any()):
        left[job.ends[0]] = True
    ids = np.flatnonzero(left)
    if not ids.size:
        raise ConstraintFailedError("the constraint allows no token, and the answer may not end yet")
    return ids
