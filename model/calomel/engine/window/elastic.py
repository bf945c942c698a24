"""Canvases that grow and shrink while they are denoised: one token becomes two masks, another drops its position.

As DreamOn has it (arXiv 2602.01326): a canvas begins short, each step reveals one token, and what it reveals may be the
wish for more room or for less. There are no more positions than the request allows, and no more growth than a budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from calomel.engine.sampling import LOWEST
from calomel.engine.window.job import WindowJob


def ban(job: WindowJob, logits: Tensor, *, last: bool) -> None:
    """Leave out of logits [N, V] what the canvas can no longer do; in the `last` step it does not grow."""
    options, size = job.options, len(job.canvas)
    if options.expand_token_id is not None and (last or size >= job.request.max_new_tokens or job.budget < 1):
        logits[:, options.expand_token_id] = LOWEST
    going = len(job.canvas.masked(0, size)) if last else options.transfer
    if options.delete_token_id is not None and size - going < job.request.min_new_tokens:
        logits[:, options.delete_token_id] = LOWEST


def resize(job: WindowJob, columns: Sequence[int]) -> None:
    """Of `columns`, which were masked before the step, drop those that ask for it, and double those that ask for that.

    From right to left, so that no position moves before its turn.
    """
    options, canvas = job.options, job.canvas
    asked = [(column, canvas.ids[column]) for column in reversed(columns)]
    for column, token in asked:
        if token == options.delete_token_id:
            canvas.drop(column, column + 1)
        elif token == options.expand_token_id:
            canvas.hide(0, column, column + 1)
            if len(canvas) < job.request.max_new_tokens and job.budget > 0:
                canvas.insert(column, 1)
                job.budget -= 1
    job.stop = len(canvas)
