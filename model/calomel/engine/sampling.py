"""From logits to tokens: penalties, temperature, top-k, top-p, and the numbers that say how sure the model was.

Confidence, log-probability and entropy are those of the model's own distribution at temperature 1 (mask token
excluded, penalties included): they do not depend on how the token was drawn from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
import torch
from torch import Tensor

from calomel.engine.request import SamplingParams

# Instead of -inf: its probability is 0 too, and 0 * LOWEST is 0 where 0 * -inf is NaN.
LOWEST: Final = torch.finfo(torch.float32).min
_BLOCK: Final = 64


@dataclass(frozen=True, slots=True)
class Counts:
    """What the penalties count, for the rows of one request.

    Attributes:
        columns: [K] int64, ascending, the tokens of context and answer; no other is penalised.
        answer: [1, K] or [R, K] float, how often the answer has each of them.
        seen: likewise, whether context or answer have it.
    """

    columns: np.ndarray
    answer: np.ndarray
    seen: np.ndarray


@dataclass(slots=True)
class Draw:
    """How the tokens of consecutive rows of one request are drawn.

    Attributes:
        params: the request's sampling parameters.
        generator: the request's random numbers; needed when the temperature is above 0.
        counts: needed when a penalty is set.
        without_end: rows that must not predict the end token.
        forced: row to the token that it must take.
        logits: whether somebody needs all of them; `host` if not on the device.
    """

    params: SamplingParams
    generator: torch.Generator | None = None
    counts: Counts | None = None
    without_end: Sequence[int] = ()
    forced: Sequence[int] = ()
    logits: bool = False
    host: bool = False

    @property
    def plain(self) -> bool:
        """Whether the best token of each row is all that is needed."""
        return not (self.logits or self.counts is not None or self.generator is not None)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of one position: a token, its log-probability, and the entropy of its distribution."""

    token: int
    log_prob: float
    entropy: float


def precise(values: Tensor) -> Tensor:
    """The same numbers in float64, or in float32 on Apple's GPUs, which have no wider type."""
    return values.float() if values.device.type == "mps" else values.double()


@dataclass(slots=True)
class Told:
    """What rows predict, on the host: item i of every list is row i.

    Attributes:
        tokens: that were drawn.
        log_probs: of these tokens; `confidences` are the probabilities.
        entropies: of the distributions.
        logits: [R, V] float32 after the penalties, if somebody needs them.
    """

    tokens: list[int]
    log_probs: list[float]
    confidences: list[float]
    entropies: list[float]
    logits: Tensor | None = None

    @classmethod
    def of(cls, found: Tensor) -> Told:
        """The result [3, R] of `tell`; waits for the device."""
        token, log_prob, entropy = found.cpu().numpy()
        with np.errstate(invalid="ignore"):
            return cls(token.astype(np.int64).tolist(), log_prob.tolist(), np.exp(log_prob).tolist(), entropy.tolist())

    def __len__(self) -> int:
        return len(self.tokens)

    def part(self, start: int, stop: int) -> Told:
        """The rows from `start` to `stop`."""
        own = slice(start, stop)
        return Told(self.tokens[own], self.log_probs[own], self.confidences[own], self.entropies[own])

    @property
    def finite(self) -> bool:
        """Whether all of it are numbers."""
        return math.isfinite(sum(self.log_probs) + sum(self.entropies))

    def row(self, row: int, token: int | None = None) -> Prediction:
        """The prediction of a row: the drawn token, or, where logits are known, a given one.

        Probability and entropy are those of the model's own distribution, whatever a constraint excludes.
        """
        own, log_prob = self.tokens[row], self.log_probs[row]
        if token is None or token == own or self.logits is None:
            return Prediction(own, log_prob, self.entropies[row])
        return Prediction(token, log_prob + float(self.logits[row, token] - self.logits[row, own]), self.entropies[row])


def tell(logits: Tensor, forced: Tensor) -> Tensor:
    """The tokens of logits [R, V] float32, their log-probabilities, and the entropies: [3, R] float32.

    `forced` [R] has the token that a row must take; where it is negative, the row takes its best one.
    """
    best = best_tokens(logits)[:, None]
    token = torch.where(forced >= 0, forced, best[:, 0])[:, None]
    # The softmax is the only exponential over the vocabulary: on a CPU it costs as much as a layer.
    probabilities = logits.softmax(dim=-1)
    normalizer = logits.gather(-1, best) - probabilities.gather(-1, best).log()
    log_prob = logits.gather(-1, token) - normalizer
    entropy = normalizer - probabilities.mul_(logits).sum(dim=-1, keepdim=True)
    return torch.cat((token.float(), log_prob, entropy), dim=-1).t()


def redraw(logits: Tensor, draws: Sequence[Draw], told: Sequence[Told]) -> list[Told]:
    """What rows tell if they are drawn as `draws` say, one for each request.

    Args:
        logits: [R, V] float32, of all their rows, one request after the other; the penalties change them.
        draws: see above.
        told: what the best tokens of each request's rows told.
    """
    parts = logits.split([len(each) for each in told])
    forced = torch.full((len(logits),), -1, dtype=torch.int64, device=logits.device)
    for part, draw, own in zip(parts, draws, forced.split([len(each) for each in told]), strict=True):
        if draw.counts is not None:
            penalise(part, draw.params, draw.counts)
        if draw.generator is not None:
            own.copy_(sample(part, draw.params, draw.generator))
    found = list(told)
    if any(draw.counts is not None or draw.generator is not None for draw in draws):
        everything, starts = Told.of(tell(logits, forced)), accumulate((len(each) for each in told), initial=0)
        found = [everything.part(start, start + len(each)) for start, each in zip(starts, told, strict=False)]
    for mine, part, draw in zip(found, parts, draws, strict=True):
        if draw.logits:
            mine.logits = part.cpu() if draw.host else part
    return found


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
    """Apply the penalties of `params` to logits [R, V], which are overwritten."""
    columns, answer, seen = (
        torch.from_numpy(part).to(logits.device) for part in (counts.columns, counts.answer, counts.seen)
    )
    part = logits.index_select(1, columns)
    factor = params.repetition_penalty
    turned = torch.where(part > 0, part / factor, part * factor)
    part = torch.where(seen, turned, part)
    part = part - params.frequency_penalty * answer - params.presence_penalty * (answer > 0)
    return logits.index_copy_(1, columns, part.clamp_(min=LOWEST))


def sample(logits: Tensor, params: SamplingParams, generator: torch.Generator | None) -> Tensor:
    """One token per row of logits [R, V]: [R]. At temperature 0 the best, of equal ones the one with the lower id.

    Else drawn by an exponential race, which needs no host synchronisation.
    """
    if params.temperature == 0:
        return logits.argmax(dim=-1)
    shaped = keep_top_p(keep_top_k(logits / params.temperature, params.top_k), params.top_p)
    where = shaped.device if generator is None else generator.device
    noise = torch.empty(shaped.shape, device=where).exponential_(generator=generator).to(shaped.device)
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


def count_tokens(context: np.ndarray, answer: Sequence[int], following: Sequence[int], rows: int) -> Counts:
    """Counts for `rows` rows, of which row i comes after `answer` and the first i tokens of `following`.

    `context` has the tokens of the context, ascending, each once.
    """
    following = following[: rows - 1]
    columns = np.union1d(context, np.array([*answer, *following], dtype=np.int64))
    counts = np.zeros((1 + len(following), len(columns)), dtype=np.float32)
    np.add.at(counts[0], np.searchsorted(columns, answer), 1)
    counts[np.arange(1, len(counts)), np.searchsorted(columns, following)] = 1
    counts = counts.cumsum(axis=0)
    if following and rows > len(counts):
        counts = np.concatenate((counts, np.repeat(counts[-1:], rows - len(counts), axis=0)))
    return Counts(columns, counts, (counts > 0) | np.isin(columns, context))
