"""The published ways to denoise block by block, written out without a cache: what the engine's steps are compared with.

`logits` is a model's whole forward: ids [T] to [T, V] under the block-causal mask. The mask token is never predicted;
the published loops let it be and would mask the position again. Every function returns the tokens behind the context up
to an end of a block, and the sequence behind each of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

Logits = Callable[[list[int]], Tensor]
Draw = Callable[[Tensor], list[int]]
"""Rows of logits to the token of each."""
Order = Callable[[Tensor, Tensor, list[int], int, int], list[int]]
"""Confidences and entropies of a block's positions, the masked ones, the step, and how many were masked at first."""


@dataclass
class Trace:
    """What happened: `tokens` behind the context, and them behind every step."""

    tokens: list[int]
    steps: list[list[int]] = field(default_factory=list)


def best(logits: Tensor) -> list[int]:
    """The token of the highest logit of every row."""
    found: list[int] = logits.argmax(dim=-1).tolist()
    return found


def shares(positions: int, steps: int) -> list[int]:
    """How many positions each of `steps` steps reveals: `get_num_transfer_tokens`."""
    return [positions // steps + (step < positions % steps) for step in range(steps)]


def paced(steps: int, block: int | None = None) -> Order:
    """The surest of each step's share of a block's positions, or of those that were masked at first.

    The latter is Stable-DiffCoder's low confidence, without a threshold; steps that reveal nothing are left out.
    """

    def order(confidence: Tensor, entropy: Tensor, masked: list[int], step: int, first: int) -> list[int]:
        del entropy
        ranked = sorted(masked, key=lambda place: (-float(confidence[place]), place))
        return ranked[: shares(block or first, steps)[step]]

    return order


def dynamic(block: int, steps: int, threshold: float) -> Order:
    """SDAR's low_confidence_dynamic."""

    def order(confidence: Tensor, entropy: Tensor, masked: list[int], step: int, first: int) -> list[int]:
        high = [place for place in masked if confidence[place] > threshold]
        enough = len(high) >= shares(block, steps)[step]
        return high if enough else paced(steps, block)(confidence, entropy, masked, step, first)

    return order


def above(threshold: float) -> Order:
    """The best position, and all that reach `threshold`."""

    def order(confidence: Tensor, entropy: Tensor, masked: list[int], step: int, first: int) -> list[int]:
        del entropy, step, first
        top = max(masked, key=lambda place: (float(confidence[place]), -place))
        return [place for place in masked if place == top or confidence[place] >= threshold]

    return order


def denoise(
    logits: Logits,
    context: Sequence[int],
    room: int,
    order: Order,
    *,
    block: int,
    mask: int,
    end: int,
    draw: Draw = best,
) -> Trace:
    """SDAR and Stable-DiffCoder: the first block begins with the context's tail; a row predicts its own position."""
    ids, trace = list(context), Trace([])
    while len(ids) - len(context) < room and end not in ids[len(context) :]:
        start = len(ids) // block * block
        ids += [mask] * (start + block - len(ids))
        first, step = ids.count(mask), 0
        while mask in ids:
            rows = logits(ids)[start:].clone()
            rows[:, mask] = -torch.inf
            masked = [place for place in range(block) if ids[start + place] == mask]
            proposed = dict(zip(masked, draw(rows[masked]), strict=True))
            for place in order(*_sure(rows, proposed), masked, step, first):
                ids[start + place] = proposed[place]
            step += 1
            trace.steps.append(ids[len(context) :])
    trace.tokens = ids[len(context) :]
    return trace


def answer(tokens: Sequence[int], room: int, end: int) -> list[int]:
    """What is left of `tokens` before an end, within `room`."""
    cut = list(tokens)[: tokens.index(end)] if end in tokens else list(tokens)
    return cut[:room]


def _sure(rows: Tensor, proposed: dict[int, int]) -> tuple[Tensor, Tensor]:
    probabilities = rows.double().softmax(dim=-1)
    confidence = torch.zeros(len(rows), dtype=torch.float64)
    for place, token in proposed.items():
        confidence[place] = probabilities[place, token]
    return confidence, torch.special.entr(probabilities).sum(dim=-1)
