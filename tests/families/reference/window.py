"""The published ways to denoise in a window, as plainly as they can be written: one sequence, one position at a time.

Written from the papers and from how the authors' code behaves, for comparison alone. Three things differ from the
published loops on purpose: the mask token is never drawn, random numbers are drawn for the masked positions of the
canvas only, in their order, and a step that changes nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from calomel.engine.transformer import Transformer

LOWEST = torch.finfo(torch.float32).min
Logits = Callable[[list[int]], Tensor]
"""Token ids of a whole sequence to logits [T, V]."""


@dataclass(slots=True)
class Draws:
    """How tokens are drawn."""

    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    generator: torch.Generator = field(default_factory=torch.Generator)


@dataclass(slots=True)
class Full:
    """A network read in both directions, attention written out; `stale` holds each layer's keys and values.

    The tokens of `never` are not predicted: what a request forbids.
    """

    model: Transformer
    mask: int
    stale: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    never: frozenset[int] = frozenset()

    def __call__(self, ids: Sequence[int], start: int = 0) -> Tensor:
        """Logits [T, V] of `ids`: a whole sequence, or a part of one from position `start` on, the rest being stale."""

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            if start:
                keys, values = (kept.clone() for kept in self.stale[layer])
                keys[start : start + len(ids)], values[start : start + len(ids)] = k, v
            else:
                keys, values = k, v
            self.stale[layer] = keys, values
            groups = q.shape[1] // k.shape[1]
            keys, values = keys.repeat_interleave(groups, dim=1), values.repeat_interleave(groups, dim=1)
            scores = torch.einsum("qhd,khd->hqk", q, keys) / q.shape[-1] ** 0.5
            return torch.einsum("hqk,khd->qhd", scores.softmax(-1), values)

        place = torch.arange(start, start + len(ids))
        logits = self.model.logits(self.model(torch.tensor(list(ids)), place, attend))
        logits[:, [self.mask, *self.never]] = LOWEST
        return logits

    def shifted(self, ids: Sequence[int], start: int = 0) -> Tensor:
        """The row before each position predicts it; the first has its own."""
        logits = self(ids, start)
        return torch.cat([logits[:1], logits[:-1]])


def cached(full: Full, before: int, behind: int) -> Logits:
    """Shifted logits of a canvas with `before` tokens before and `behind` behind it, by Fast-dLLM's dual cache.

    A sequence of a new length is forwarded whole; else the canvas is, and the token before it.
    """
    length = 0

    def logits(ids: list[int]) -> Tensor:
        nonlocal length
        if len(ids) != length:
            length = len(ids)
            return full.shifted(ids)
        rows = full(ids[before - 1 : length - behind], before - 1)
        return torch.cat([rows.new_zeros(before, rows.shape[1]), rows])

    return logits


def drawn(row: Tensor, how: Draws) -> Tensor:
    """The probabilities [V] that a token is drawn from: temperature, then top-p, then top-k."""
    if how.temperature > 0:
        row = row / how.temperature
    if how.top_p is not None and how.top_p < 1:
        total, kept = 0.0, []
        probabilities = row.softmax(-1)
        for token in row.argsort(descending=True).tolist():
            if total > how.top_p:
                break
            kept.append(token)
            total += float(probabilities[token])
        row = torch.full_like(row, LOWEST).index_copy(0, torch.tensor(kept), row[kept])
    if how.top_k is not None:
        row = row.masked_fill(row < row.topk(how.top_k).values[-1], LOWEST)
    return row.softmax(-1)


def tokens(rows: Tensor, how: Draws) -> tuple[list[int], Tensor]:
    """A token for each of the rows [M, V], and the probabilities [M, V] that it was drawn from."""
    probabilities = torch.stack([drawn(row, how) for row in rows])
    if how.temperature > 0:
        return torch.multinomial(probabilities, 1, generator=how.generator)[:, 0].tolist(), probabilities
    return [int(row.argmax()) for row in probabilities], probabilities


def sure(alg: str, chosen: Sequence[int], probabilities: Tensor) -> Tensor:
    """How sure the model is of each chosen token [M]."""
    found = []
    for token, row in zip(chosen, probabilities, strict=True):
        ordered = row.sort(descending=True).values
        entropy = (row * (row + 1e-10).log()).sum()
        found.append({"maskgit_plus": row[token], "topk_margin": ordered[0] - ordered[1], "entropy": entropy}[alg])
    return torch.stack(found)


def dream(
    logits: Logits,
    ids: list[int],
    mask: int,
    *,
    steps: int,
    alg: str,
    how: Draws,
    alg_temp: float = 0.0,
    eps: float = 1e-3,
) -> Iterator[list[int]]:
    """The sequence behind every step of Dream's `diffusion_generate` on shifted logits."""
    ids, times = list(ids), torch.linspace(1, eps, steps + 1)
    for step in range(steps):
        before = list(ids)
        masked = [place for place, token in enumerate(ids) if token == mask]
        rows, share, last = logits(ids)[masked], 1 - times[step + 1] / times[step], step == steps - 1
        if alg == "origin":
            chance = torch.rand(len(masked), generator=how.generator)
            going = [index for index in range(len(masked)) if last or chance[index] < share]
            for index, token in zip(going, tokens(rows[going], how)[0] if going else [], strict=True):
                ids[masked[index]] = token
        else:
            count = len(masked) if last else int(torch.tensor(float(len(masked))) * share)
            if not count:
                continue
            chosen, probabilities = tokens(rows, how)
            confidence = sure(alg, chosen, probabilities)
            if alg_temp:
                going = torch.multinomial((confidence / alg_temp).softmax(-1), count, generator=how.generator).tolist()
            else:
                going = confidence.argsort(descending=True).tolist()[:count]
            for index in going:
                ids[masked[index]] = chosen[index]
        if ids != before:
            yield list(ids)
        if mask not in ids:
            return


def path_planning(logits: Logits, ids: list[int], mask: int, *, steps: int, how: Draws) -> Iterator[list[int]]:
    """The sequence behind every step of Open-dLLM's `p2` on shifted logits."""
    ids, free = list(ids), [place for place, token in enumerate(ids) if token == mask]
    for step in range(steps):
        if mask not in ids:
            return
        before = list(ids)
        masked = [ids[place] == mask for place in free]
        chosen, probabilities = tokens(logits(ids)[free], how)
        confidence = sure("maskgit_plus", chosen, probabilities)
        hidden = confidence.argsort().tolist()[: int(len(free) * (1 - (step + 1) / steps))]
        for index, place in enumerate(free):
            if index in hidden:
                ids[place] = mask
            elif masked[index]:
                ids[place] = chosen[index]
        if ids != before:
            yield list(ids)


def low_confidence_counts(masked: int, steps: int) -> list[int]:
    """How many tokens each step of a block reveals."""
    return [masked // steps + (step < masked % steps) for step in range(steps)]


def low_confidence_tokens(rows: Tensor, how: Draws) -> tuple[list[int], Tensor]:
    """LLaDA's tokens: Gumbel noise in float64; and the probability of each, without it."""
    precise = rows.double()
    scores = precise
    if how.temperature:
        noise = torch.rand(rows.shape, dtype=torch.float64, generator=how.generator)
        scores = (precise - precise.max()).exp() / (-noise.log()) ** how.temperature
    chosen = [int(row.argmax()) for row in scores]
    return chosen, torch.stack([row.softmax(-1)[token] for token, row in zip(chosen, precise, strict=True)])


def low_confidence(
    logits: Logits, ids: list[int], mask: int, canvas: range, *, steps: int, block: int, how: Draws
) -> Iterator[list[int]]:
    """The sequence behind every step of LLaDA's `generate`, by low confidence, block by block."""
    ids = list(ids)
    each = steps // -(-len(canvas) // block)
    for start in range(canvas.start, canvas.stop, block):
        places = range(start, min(start + block, canvas.stop))
        for count in low_confidence_counts(sum(ids[place] == mask for place in places), each):
            masked = [place for place in places if ids[place] == mask]
            if not masked:
                break
            chosen, confidence = low_confidence_tokens(logits(ids)[masked], how)
            for index in confidence.argsort(descending=True).tolist()[:count]:
                ids[masked[index]] = chosen[index]
            yield list(ids)


def low_confidence_dual(
    full: Full, ids: list[int], mask: int, canvas: range, *, steps: int, block: int, how: Draws
) -> Iterator[list[int]]:
    """Fast-dLLM's dual cache on LLaDA: the first step of a block forwards everything, the others the block alone."""
    ids = list(ids)
    each = steps // -(-len(canvas) // block)
    for start in range(canvas.start, canvas.stop, block):
        places = range(start, min(start + block, canvas.stop))
        for step, count in enumerate(low_confidence_counts(sum(ids[place] == mask for place in places), each)):
            masked = [place for place in places if ids[place] == mask]
            if not masked:
                break
            if step:
                rows = full(ids[places.start : places.stop], places.start)[[place - start for place in masked]]
            else:
                rows = full(ids)[masked]
            chosen, confidence = low_confidence_tokens(rows, how)
            for index in confidence.argsort(descending=True).tolist()[:count]:
                ids[masked[index]] = chosen[index]
            yield list(ids)


def dreamon(
    logits: Logits,
    prefix: list[int],
    canvas: list[int],
    suffix: list[int],
    mask: int,
    *,
    expand: int,
    delete: int,
    longest: int,
    how: Draws,
    budget: int | None = None,
) -> Iterator[list[int]]:
    """The canvas behind every step of DreamOn's `diffusion_generate`, one token a step, by entropy."""
    canvas = list(canvas)
    # Its max_gen_len is counted from the first mask to the end of the sequence.
    longest_tail = longest + len(suffix)
    budget = 2 * longest_tail if budget is None else budget
    for _ in range(2 * longest_tail + 2 * budget):
        masked = [place for place, token in enumerate(canvas) if token == mask]
        if not masked:
            return
        rows = logits([*prefix, *canvas, *suffix])[[len(prefix) + place for place in masked]]
        if len(canvas) == longest or budget == 0:
            rows[:, expand] = LOWEST
        chosen, probabilities = tokens(rows, how)
        index = int(sure("entropy", chosen, probabilities).argmax())
        place, token = masked[index], chosen[index]
        if token == delete:
            del canvas[place]
        elif token == expand:
            canvas[place : place + 1] = [mask, mask]
            budget -= 1
        else:
            canvas[place] = token
        yield list(canvas)
