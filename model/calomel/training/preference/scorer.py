"""What a model says of answers: the evidence lower bound of its canvases, and the likelihood of its causal mode."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.transformer import Transformer
from calomel.training.preference.attention import QuestionAttention
from calomel.training.preference.layout import Layout


@dataclass(frozen=True, slots=True)
class Scores:
    """Of A answers, in nats; each is a sum over an answer's tokens, its end included.

    Attributes:
        canvas: [A] the bound, a mean over the answer's draws.
        causal: [A] log-probability, left to right.
    """

    canvas: Tensor
    causal: Tensor


def score(model: Transformer, layout: Layout) -> Scores:
    """The scores of `layout`'s answers; with gradients where torch records them."""
    device = model.embed_tokens.weight.device
    ids, positions, text, scored, targets, weights, slots, scale = (
        torch.from_numpy(each).to(device)
        for each in (
            layout.ids,
            layout.positions,
            layout.text,
            layout.scored,
            layout.targets,
            layout.weights,
            layout.slots,
            layout.scale,
        )
    )
    hidden = model(ids, positions, QuestionAttention(model.config, layout, device), text)
    said = -F.cross_entropy(model.logits(hidden[scored]), targets, reduction="none")
    canvases = layout.answers * layout.draws
    sums = torch.zeros(canvases + layout.answers, device=device).index_add(0, slots, said * weights)
    canvas = (sums[:canvases] * scale).view(layout.answers, layout.draws).sum(1)
    return Scores(canvas, sums[canvases:])
