"""A model's own answers as what its canvases learn: several tokens of a step are right together only if they agree.

A canvas predicts each position by itself, the causal mode one token after the other. Where they differ, revealing more
than one token in a step costs quality. So some canvases learn what the causal mode itself writes in place of what the
corpus has: the greedy continuation of what they show (on-policy distillation, arXiv 2306.13649, within one model).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import torch
from torch import Tensor

from calomel.training.batch import Batch
from calomel.training.branch import head_rows, rows

# In the place of a target: nothing is learnt there, since the own answer has ended.
_ENDED: Final = -2

Predict = Callable[[Batch, Tensor], Tensor]
"""The likeliest tokens [N] that rows [N] of a flattened batch predict."""


def with_own_answers(batch: Batch, predict: Predict, count: int, *, mask: int, end: int, shift: bool) -> Batch:
    """The same batch, in which the first canvas of a hole learns `count` tokens of the model's own answer.

    Canvases that show a beginning of the answer, or nothing, and masks after it learn how the causal mode continues
    it; others stay. After the end of an own answer nothing is learnt.

    Args:
        batch: of text, without regions.
        predict: see `Predict`; called `count` times.
        count: how many tokens.
        mask: the mask token.
        end: the token that ends an answer.
        shift: whether a row of a canvas predicts the token after its own.
    """
    shape, size = batch.shape, batch.shape.canvas
    documents, total = batch.ids.shape
    begin = shape.front + torch.arange(shape.holes) * rows(shape) + head_rows(shape)  # [K], rows of causal answers
    begin = begin.to(batch.ids.device)
    within = torch.arange(size, device=begin.device)
    canvas = begin[:, None] + size + within  # [K, L]
    hidden = (batch.ids[:, canvas] == mask) | ~batch.valid[:, canvas]  # [B, K, L]
    if shift:  # the first row is the mark before the answer, the last position has no row of its own
        hidden = torch.cat((hidden[..., 1:], torch.ones_like(hidden[..., :1])), dim=-1)
    shown = (~hidden).long().cumprod(dim=-1).sum(dim=-1)  # [B, K]
    asked = (shown == (~hidden).sum(dim=-1)) & batch.valid[:, begin - 1] & (shown < size)

    # The causal answer, with room for what the model writes.
    ids, positions, valid = batch.ids.clone(), batch.positions.clone(), batch.valid.clone()
    answer = begin[:, None] + within  # [K, L]
    positions[:, answer] = positions[:, begin - 1, None] + 1 + within
    valid[:, answer] = valid[:, begin - 1, None].expand(-1, -1, size)
    draft = replace(batch, ids=ids, positions=positions, valid=valid)

    document = torch.arange(documents, device=begin.device)[:, None] * total
    learnt = torch.full((documents, total), -1, device=begin.device)
    going = asked.clone()
    for step in range(count):
        place = shown + step
        going &= place < size
        at = place.clamp(max=size - 1)
        found = predict(draft, (document + begin + at - 1).flatten()).view_as(shown)
        target = document + begin + size + at
        told = torch.where(going, found, _ENDED)
        learnt.view(-1)[target[asked]] = told[asked]
        ids.view(-1)[(document + begin + at)[going]] = found[going]
        going &= found != end
    own = learnt.view(-1)[batch.scored]
    targets = torch.where(own >= 0, own, batch.targets)
    weights = batch.weights.masked_fill(own == _ENDED, 0.0)
    return replace(batch, targets=targets, weights=weights, groups=batch.groups.masked_fill(own == _ENDED, -1))
