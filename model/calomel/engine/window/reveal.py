"""What a step does to one canvas: reveal, revise, settle within a constraint, grow and shrink."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from calomel.engine.canvas import Snapshot
from calomel.engine.constrained import Rows, settle
from calomel.engine.window.algorithms import Move, draw
from calomel.engine.window.elastic import ban, resize
from calomel.engine.window.job import WindowJob


def without_end(job: WindowJob, count: int) -> list[int]:
    """Which of the `count` rows of a forward must not predict the end token: more of the answer has to come."""
    if job.options.elastic:
        return []
    columns = job.rows if len(job.candidates) == 1 else job.canvas.masked(0, len(job.canvas))
    return [row for row, column in enumerate(columns[:count]) if job.bans_end(column)]


def reveal(job: WindowJob, rows: Rows, first: int) -> None:
    """Take the canvas of `job` one step on; its rows begin at row `first` of the forward."""
    columns, canvas, moment = job.rows, job.canvas, job.moment
    stop = first + len(columns)
    logits, best = rows.logits[first:stop], rows.choice.best[first:stop]
    if job.options.elastic:
        ban(job, logits, last=moment.last)
    masked = torch.tensor([canvas.ids[column] == canvas.mask_token_id for column in columns], device=logits.device)
    asked = torch.ones_like(masked) if job.rereads else masked
    if job.caches and job.diffusion.logit_shift and not (job.step or moment.last):
        # The forwards behind have no row for the block's first position (Fast-dLLM on Dream): it is revealed alone.
        asked = masked & torch.tensor([column == job.start for column in columns], device=logits.device)
        move = Move(draw(logits[asked], job.request.sampling, job.generator)[0], masked[asked])
    else:
        move = job.algorithm(logits[asked], masked[asked], moment)
    token, shown = best.clone(), torch.zeros_like(masked)
    token[asked], shown[asked] = move.token, move.shown
    rows.choice.log_prob[first:stop] += (_at(logits, token) - _at(logits, best)).clamp(max=0.0)
    rows.choice.token[first:stop] = token
    job.revised = _take(job, columns, rows, first, shown.tolist())
    job.step += 1
    if job.walk is not None:
        snapshot = Snapshot(list(canvas.ids), canvas.revealed, revised=False)
        settle(job, job.walk, snapshot, first, rows, canvas, last=moment.last)
    if job.options.elastic:
        resize(job, [column for column, was in zip(columns, masked.tolist(), strict=True) if was])


def _take(job: WindowJob, columns: Sequence[int], rows: Rows, first: int, shown: Sequence[bool]) -> bool:
    """Put what is shown on the canvas; returns whether that changed what had stood there."""
    canvas, choice, stop = job.canvas, rows.choice, first + len(columns)
    tokens: list[int] = choice.token[first:stop].tolist()
    best: list[int] = choice.best[first:stop].tolist()
    log_probs: list[float] = choice.log_prob[first:stop].tolist()
    entropies: list[float] = choice.entropy[first:stop].tolist()
    revised = False
    for row, column in enumerate(columns):
        canvas.read(column, best[row])
        known = canvas.ids[column] != canvas.mask_token_id
        if known and job.algorithm.rereads:
            # What is taken back is drawn anew; what stays keeps its token, however sure the step was of another.
            if not shown[row]:
                canvas.ids[column] = canvas.mask_token_id
        elif shown[row] if not known else job.request.revise and tokens[row] != canvas.ids[column]:
            revised = revised or known
            canvas.take(column, tokens[row], log_probs[row], entropies[row])
    return revised


def _at(logits: Tensor, token: Tensor) -> Tensor:
    """Logits [N, V] at token [N]: [N]."""
    return logits.gather(-1, token[:, None])[:, 0]
