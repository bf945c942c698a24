"""Where a constraint meets a canvas of noise.

A canvas is denoised in parallel, a constraint reads from left to right: the canvas has a front. What stands before it
is settled and held there in the steps to come. Behind every step the front moves over what is accepted and allowed, and
over what is forced. Where the likeliest token is refused, one of those that are allowed takes its place, and what
stands behind it is denoised anew.
"""

from __future__ import annotations

import numpy as np
import torch

from calomel.engine.constraint import Walk
from calomel.engine.errors import ConstraintFailedError
from calomel.engine.renoise.backbone import E
from calomel.engine.renoise.job import RenoiseJob
from calomel.engine.sampling import sample


def hold(job: RenoiseJob[E], walk: Walk, *, done: bool, last: bool) -> bool:
    """Move the front of a canvas behind a step.

    Args:
        job: its `last.best` and its canvas get the settled tokens.
        walk: stands behind the front.
        done: the canvas is stable and sure, as far as the model is concerned.
        last: there is no further step: the canvas is settled whatever it says.

    Returns:
        Whether the canvas is settled.

    Raises:
        ConstraintFailedError: the constraint has no way on, or refuses a frozen token.
    """
    if job.last is None or job.canvas is None:
        return False
    best, sure, ends = job.last.best.tolist(), job.last.accepted.tolist(), job.rules.end_token_ids
    while job.front < len(best):
        column = job.front
        frozen = job.frozen_here().get(column)
        token = _only(job, walk, column) if frozen is None else frozen
        if token is None:
            if not (sure[column] or done or last):
                return False
            token = best[column]
        ended = token in ends and _may_end(job, walk, column)
        taken = ended or (token not in ends and walk.advance((token,)) == 1)
        if not taken:
            token = _drawn(job, walk, column)
            ended = token in ends
        job.settled[column] = token
        job.last.best[column] = job.canvas[column] = token
        if ended:
            return True
        if not taken and not last:
            done = False
            sure[column + 1 :] = [False] * (len(sure) - column - 1)
    return True


def _only(job: RenoiseJob[E], walk: Walk, column: int) -> int | None:
    """The one token that can stand at `column`, if that is known without much ado."""
    forced = walk.forced()
    if forced:
        return forced[0]
    if not walk.may_end():
        return None
    ids = _candidates(job, walk, column)
    return int(ids[0]) if ids.size == 1 else None


def _drawn(job: RenoiseJob[E], walk: Walk, column: int) -> int:
    """A token for `column` out of those that `walk` allows, which takes it in."""
    if column in job.frozen_here() or job.raw is None:
        raise ConstraintFailedError("the constraint does not allow a frozen token")
    ids = torch.from_numpy(_candidates(job, walk, column)).to(job.raw.device)
    left, sampling = job.raw[column, ids][None], job.request.sampling
    if sampling.temperature > 0 and job.generator is not None and left.isfinite().all():
        index = int(sample(left, sampling, job.generator))
    else:
        index = int(left.argmax(dim=-1))
    token = int(ids[index])
    if token not in job.rules.end_token_ids:
        walk.advance((token,))
    return token


def _may_end(job: RenoiseJob[E], walk: Walk, column: int) -> bool:
    return walk.may_end() and column >= job.endless()


def _candidates(job: RenoiseJob[E], walk: Walk, column: int) -> np.ndarray:
    """The ids [N] int64, in rising order, that may stand at `column`; not empty."""
    size = 0 if job.raw is None else job.raw.shape[-1]
    bits = np.unpackbits(np.frombuffer(walk.allowed(), dtype=np.uint8), bitorder="little")[:size]
    left = np.zeros(size, dtype=bool)
    left[: len(bits)] = bits
    left[list(job.rules.end_token_ids)] = False
    # An answer that can only end does so whatever its length; but not before tokens that were promised.
    promised = any(at > column for at in job.frozen_here())
    if _may_end(job, walk, column) or (walk.may_end() and not promised and not left.any()):
        left[job.rules.end_token_ids[0]] = True
    ids = np.flatnonzero(left)
    if not ids.size:
        raise ConstraintFailedError("the constraint leaves no token, and the answer may not end")
    return ids
