"""One step of a canvas of uniform noise, from logits to the next canvas: as DiffusionGemma's code does it.

The order of the random draws is that of the published code too (a token for every position, then noise for every
position), so that the same seed gives the same tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from calomel.engine.renoise.rules import RenoiseRules
from calomel.engine.request import SamplingParams
from calomel.engine.reveal import EntropyBound, RevealPolicy
from calomel.engine.sampling import narrow


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step made of a canvas of L positions.

    Attributes:
        canvas: [L] int64, accepted tokens and fresh noise: what the next step reads.
        best: [L] int64, the likeliest tokens: what the canvas says if it is done.
        accepted: [L] bool.
        condition: [L, V], what the next step is told of this one: the logits at this step's temperature.
        entropy: [L] float32, at this step's temperature, in nats.
    """

    canvas: Tensor
    best: Tensor
    accepted: Tensor
    condition: Tensor
    entropy: Tensor


def noise(length: int, vocab: int, generator: torch.Generator) -> Tensor:
    """Uniformly random tokens: [length] int64."""
    return torch.randint(low=0, high=vocab, size=(length,), generator=generator, device=generator.device)


def temperature(rules: RenoiseRules, left: int, steps: int) -> Tensor:
    """The temperature with `left` of `steps` to go, this one counted: a scalar, float32."""
    return rules.coldest + (rules.hottest - rules.coldest) * (torch.tensor(left, dtype=torch.int32) / steps)


def entropies(logits: Tensor) -> Tensor:
    """The entropy of every row's distribution in nats: [..., V] to [...]; a logit of -inf is no token."""
    normal = logits - logits.logsumexp(dim=-1, keepdim=True)
    return -(normal.clamp(min=torch.finfo(normal.dtype).min) * normal.softmax(dim=-1)).sum(dim=-1)


def within_bound(entropy: Tensor, nats: float) -> Tensor:
    """Positions in order of rising entropy, while the entropies of those before sum to `nats`: [..., L] to [..., L].

    Of so few dependent decisions the joint distribution is near the product of its parts (arXiv 2505.24857).
    """
    ordered, order = entropy.sort(dim=-1)
    chosen = ordered.cumsum(dim=-1) - ordered <= nats
    return torch.zeros_like(chosen).scatter(-1, order, chosen)


def step(
    current: Tensor,
    logits: Tensor,
    warmth: Tensor,
    sampling: SamplingParams,
    reveal: RevealPolicy,
    generator: torch.Generator,
) -> Stepped:
    """Take a canvas one step on.

    Args:
        current: [L] int64, the canvas that was read.
        logits: [L, V] float32, what the model said of it.
        warmth: the step's temperature, that of the request included.
        sampling: a temperature of 0 takes the best token instead of a drawn one.
        reveal: which positions are accepted.
        generator: of the canvas' random numbers.
    """
    told = logits / warmth.to(logits.device)
    best = told.argmax(dim=-1)
    if sampling.temperature > 0:
        chances = narrow(told, sampling).softmax(dim=-1)
        drawn = torch.multinomial(chances, num_samples=1, generator=generator).squeeze(-1)
    else:
        chances, drawn = None, best
    entropy = entropies(told)
    if isinstance(reveal, EntropyBound):
        accepted = within_bound(entropy, reveal.nats)
    else:
        chances = told.softmax(dim=-1) if chances is None else chances
        confidence = chances.gather(-1, drawn[:, None])[:, 0]
        accepted = reveal(confidence[None], entropy[None], torch.ones_like(current, dtype=torch.bool)[None])[0]
    fresh = noise(current.shape[-1], logits.shape[-1], generator)
    return Stepped(torch.where(accepted, drawn, fresh), best, accepted, told, entropy)
