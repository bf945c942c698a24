"""From logits to tokens: penalties, temperature, top-k, top-p, and the numbers that say how sure the model was.

Confidence, log-probability and entropy are those of the model's own distribution at temperature 1 (mask token
excluded, penalties included): they do not depend on how the token was drawn from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from calomel.engine.request import SamplingParams

# Instead of -inf: its probability is 0 too, and 0 * LOWEST is 0 where 0 * -inf is NaN.
LOWEST = torch.finfo(torch.float32).min
_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Counts:
    """What the penalties count, for the rows of one request.

    Attributes:
        answer: [R, V] float, how often the answer has each token.
        seen: [R, V] bool, whether context or answer have it.
    """

    answer: Tensor
    seen: Tensor


@dataclass(frozen=True, slots=True)
class Draw:
    """How the tokens of consecutive rows of one request are drawn.

    Attributes:
        start: the first row; `stop` is after the last.
        params: the request's sampling parameters.
        generator: the request's random numbers; needed when the temperature is above 0.
        counts: needed when a penalty is set.
        without_end: rows (counted from `start`) that must not predict the end token.
        forced: row (counted from `start`) to the token that it must take.
    """

    start: int
    stop: int
    params: SamplingParams
    generator: torch.Generator | None = None
    counts: Counts | None = None
    without_end: Sequence[int] = ()
    forced: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of one position: a token, its log-probability, and the entropy of its distribution."""

    token: int
    log_prob: float
    entropy: float


def precise(values: Tensor) -> Tensor:
    """The same numbers in float64, or in float32 on Apple's GPUs, which have no wider type."""
    return values.float() if values.device.type == "mps" else values.double()


@dataclass(frozen=True)
class Choice:
    """The rows of one forward: `logits` [R, V] after the penalties, and what was drawn from them.

    `token` [R] int64; `log_prob`, `entropy` [R] float32.
    """

    logits: Tensor
    token: Tensor
    log_prob: Tensor
    entropy: Tensor

    @cached_property
    def predictions(self) -> list[Prediction]:
        """All rows, on the host."""
        told = torch.stack([precise(values) for values in (self.token, self.log_prob, self.entropy)])
        return [Prediction(int(token), *rest) for token, *rest in told.T.tolist()]

    def told(self, row: int, token: int | None = None) -> Prediction:
        """The prediction of a row: the drawn token, or a given one.

        Probability and entropy are those of the model's own distribution, whatever a constraint excludes.
        """
        own, log_prob = self.token[row], self.log_prob[row]
        if token is None:
            token = int(own)
        else:
            log_prob = log_prob + self.logits[row, token] - self.logits[row, own]
        return Prediction(token, float(log_prob), float(self.entropy[row]))


def choose(logits: Tensor, draws: Sequence[Draw], *, mask_token_id: int, end_token_ids: Sequence[int]) -> Choice:
    """Draw one token per row of `logits` [R, V] float32 (overwritten); rows that no draw names take the best token.

    The mask token is never drawn; -1 if there is none.
    """
    if mask_token_id >= 0:
        logits[:, mask_token_id] = LOWEST
    for draw in draws:
        if draw.without_end:
            logits[[[draw.start + row] for row in draw.without_end], list(end_token_ids)] = LOWEST
        if draw.params.penalised and draw.counts is not None:
            logits[draw.start : draw.stop] = penalise(logits[draw.start : draw.stop], draw.params, draw.counts)
    best = best_tokens(logits)
    token = best
    for draw in draws:
        if draw.params.temperature > 0 and draw.generator is not None:
            token = token.clone() if token is best else token
            token[draw.start : draw.stop] = sample(logits[draw.start : draw.stop], draw.params, draw.generator)
        for row, forced in draw.forced.items():
            token = token.clone() if token is best else token
            token[draw.start + row] = forced
    # The softmax is the only exponential over the vocabulary: on a CPU it costs as much as a layer.
    probabilities = logits.softmax(dim=-1)
    highest = best[:, None]
    normalizer = logits.gather(-1, highest) - probabilities.gather(-1, highest).log()  # [R, 1]
    log_prob = (logits.gather(-1, token[:, None]) - normalizer)[:, 0]
    entropy = normalizer[:, 0] - probabilities.mul_(logits).sum(dim=-1)
    return Choice(logits, token, log_prob, entropy)


def best_tokens(logits: Tensor) -> Tensor:
    """The token of the highest logit of every row, of equal ones the one with the lower id: [R, V] to [R].

    Looks for the highest block first: a maximum is ten times as fast as its index on a CPU.
    """
    rows, vocab = logits.shape
    if vocab % _BLOCK:
        return logits.argmax(dim=-1)
    blocks = logits.view(rows, vocab // _BLOCK, _BLOCK)
    block = blocks.amax(dim=-1).argmax(dim=-1)
    return block * _BLOCK + blocks[torch.arange(rows, device=logits.device), block].argmax(dim=-1)


def penalise(logits: Tensor, params: SamplingParams, counts: Counts) -> Tensor:
    """Apply the penalties of `params` to logits [R, V]."""
    if params.repetition_penalty != 1.0:
        factor = params.repetition_penalty
        turned = torch.where(logits > 0, logits / factor, (logits * factor).clamp(min=LOWEST))
        logits = torch.where(counts.seen, turned, logits)
    logits = logits - params.frequency_penalty * counts.answer - params.presence_penalty * (counts.answer > 0)
    return logits.clamp(min=LOWEST)


def sample(logits: Tensor, params: SamplingParams, generator: torch.Generator | None) -> Tensor:
    """One token per row of logits [R, V]: [R]. At temperature 0 the best, of equal ones the one with the lower id.

    Else drawn by an exponential race, which needs no host synchronisation.
    """
    if params.temperature == 0:
        return logits.argmax(dim=-1)
    shaped = keep_top_p(keep_top_k(logits / params.temperature, params.top_k), params.top_p)
    noise = torch.empty_like(shaped).exponential_(generator=generator)
    return (shaped.softmax(dim=-1) / noise).argmax(dim=-1)


def keep_top_k(logits: Tensor, count: int) -> Tensor:
    """Keep the `count` highest of each row of logits [R, V]; all of them if `count` is out of range."""
    if not 0 < count < logits.shape[-1]:
        return logits
    return logits.masked_fill(logits < logits.topk(count, dim=-1).values[:, -1:], -torch.inf)


def keep_top_p(logits: Tensor, share: float) -> Tensor:
    """Keep the fewest of each row of logits [R, V] that together have the probability `share`."""
    if share >= 1.0:
        return logits
    ordered, order = logits.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    beyond = (ordered.cumsum(dim=-1) >= share).roll(1, dims=-1)
    beyond[..., 0] = False
    return logits.masked_fill(torch.zeros_like(beyond).scatter(-1, order, beyond), -torch.inf)


def count_tokens(context: Tensor, answer: Sequence[int], following: Sequence[int], rows: int) -> Counts:
    """Counts for `rows` rows, of which row i comes after `answer` and the first i tokens of `following`.

    `context` [V] bool says which tokens the context has.
    """
    vocab, device = len(context), context.device
    steps = torch.zeros(rows, vocab, device=device)
    steps[0] = torch.bincount(torch.tensor(answer, dtype=torch.int64, device=device), minlength=vocab)
    added = min(len(following), rows - 1)
    steps[torch.arange(1, added + 1), torch.tensor(following[:added], dtype=torch.int64)] += 1
    counts = steps.cumsum(dim=0)
    return Counts(counts, (counts > 0) | context)
