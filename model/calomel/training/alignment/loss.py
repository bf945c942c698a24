"""What a model says of answers, and the loss of preference alignment.

A question's prompt stands once, and each answer to it once for the causal mode and once for each canvas:

    context   the prompt, as inference renders it                                    causal, shared by all answers
    causal    an answer without its end; every row predicts the next token, from the prompt's last row on
    canvas    part of an answer, some tokens hidden; behind its end masks, as at inference

An answer that is longer than a canvas is a sequence of canvases, each of which sees the finished part before it in its
causal form, as the engine appends it to its cache. No canvas sees the clean copy of what it hides. The end and what is
behind it are always shown as masks, as in training: the model whose bound this is does not read its own end.

An answer of L tokens, its end among them, has the bound

    B = E over l ~ U{1..L}, sets of l tokens:  L / l * sum of log p(hidden token | the others)

estimated without replacement (fixed-l; ELBO-KTO, arXiv 2510.23658). The sizes of one pass' draws are spread evenly over
1..L, which leaves each of them uniform, so the mean unbiased, and takes away most of its variance. Policy and reference
score the same rows.

The loss is Kahneman-Tversky optimisation of rewards (arXiv 2402.01306, 2510.23658):

    reward  r = score under the policy - score under the reference, of one answer
    origin  z = mean reward of the minibatch, without gradient
    value   v = sigmoid(beta (r - z)) for a desirable answer, sigmoid(beta (z - r)) for an undesirable one
    loss      = weighted mean of 1 - v
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.config import ModelConfig
from calomel.engine.memory import REACH
from calomel.engine.transformer import Transformer

# The scores of an answer, in this order.
MODES: Final = ("canvas", "causal")


def hidden_places(length: int, rng: random.Random, stratum: int = 0, strata: int = 1) -> tuple[int, ...]:
    """Which of `length` places one draw hides, in order.

    Args:
        length: L, at least 1.
        rng: draws them.
        stratum: the draw's number within its pass.
        strata: draws of the pass.
    """
    size = min(length, 1 + int(length * (stratum + rng.random()) / strata))
    return tuple(sorted(rng.sample(range(length), size)))


Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt in tokens, and answers to it.

    Attributes:
        context: ends with the middle mark.
        answers: A of them, without their ends.
        canvas: how long a canvas is.
    """

    context: tuple[int, ...]
    answers: tuple[tuple[int, ...], ...]
    canvas: int


def _windows(run: Sequence[int]) -> Ints:
    """What each row of a run of text reads of it: [rows, REACH + 1]."""
    return np.lib.stride_tricks.sliding_window_view(np.array(run), REACH + 1)


@dataclass(frozen=True, slots=True)
class Layout:
    """T rows, C of them the prompt's, and N scores to read from them.

    Attributes:
        context: C.
        ids, positions: [T]; text: [T, REACH + 1], see `calomel.engine.memory`.
        visible: [T - C, T] which rows a row of an answer sees, were there no sliding window.
        causal: [T] whether a row belongs to an answer's causal form.
        scored: [N] rows to read; targets [N] what they should say; weights [N]; slots [N] the score each belongs to:
            `answer` for canvases, `answers + answer` for the causal mode.
        answers: A.
    """

    context: int
    ids: Ints
    positions: Ints
    text: Ints
    visible: Bools
    causal: Bools
    scored: Ints
    targets: Ints
    weights: Floats
    slots: Ints
    answers: int


def lay_out(question: Question, config: ModelConfig, *, draws: int, seed: str) -> Layout:
    """The rows of `question` for a model, with `draws` draws an answer, which follow from the answer and the seed."""
    rows = _Rows(question, config)
    for at, answer in enumerate(question.answers):
        rng = random.Random(f"{seed} {answer}")
        first = rows.causal(at, answer)
        # Of the end alone there is only one mask.
        count = draws if answer else 1
        for draw in range(count):
            rows.canvases(at, answer, first, rng, draw, count)
    return rows.layout()


class _Rows:
    """Rows while they are written."""

    def __init__(self, question: Question, config: ModelConfig) -> None:
        self._question = question
        self._mask, self._end = config.diffusion.mask_token_id, config.diffusion.end_token_id
        # 1 where a canvas row predicts the token behind it, so that a canvas begins with the last known token.
        self._shift = int(config.diffusion.logit_shift)
        self._memory = config.memory
        self._context = len(question.context)
        self._ids = list(question.context)
        self._positions = list(range(self._context))
        self._texts: list[Ints] = []
        # Of each row of an answer, the ranges of rows that it sees.
        self._sees: list[tuple[tuple[int, int], ...]] = []
        self._causal: list[int] = []
        self._scores: list[tuple[int, int, float, int]] = []
        self._read(question.context, 0)

    def causal(self, at: int, answer: tuple[int, ...]) -> int:
        """Write the answer number `at` for the causal mode; returns its first row."""
        first, row = len(self._ids), self._context - 1
        slot = len(self._question.answers) + at
        for index, token in enumerate(answer):
            self._scores.append((row, token, 1.0, slot))
            row = len(self._ids)
            self._causal.append(row)
            self._add(token, self._context + index, ((0, self._context), (first, row + 1)))
        self._scores.append((row, self._end, 1.0, slot))
        self._read((*self._question.context, *answer), self._context)
        return first

    def canvases(
        self, at: int, answer: tuple[int, ...], causal: int, rng: random.Random, draw: int, draws: int
    ) -> None:
        """Write one draw of an answer whose causal form begins in row `causal`."""
        shift, size = self._shift, self._question.canvas
        wanted = (*answer, self._end)
        for first in range(0, len(wanted), size):
            part = wanted[first : first + size]
            hidden = hidden_places(len(part), rng, draw, draws)
            open_ = {place for place in range(len(part)) if place not in hidden and first + place < len(answer)}
            shown = [part[place] if place in open_ else self._mask for place in range(size)]
            final = (*self._question.context, *answer[:first])
            if shift:
                shown = [final[-1], *shown[:-1]]
            begin = len(self._ids)
            # With shifted logits a canvas holds the last known token as its own first row.
            known = (0, self._context - (0 if first else shift))
            done = (causal, causal + max(0, first - shift))
            for place, token in enumerate(shown):
                self._add(token, len(final) - shift + place, (known, done, (begin, begin + size)))
            if self._memory is not None:
                self._texts.append(_windows([*self._memory.before(final, len(final), REACH + shift), *shown[shift:]]))
            for place in hidden:
                self._scores.append((begin + place, part[place], len(part) / len(hidden) / draws, at))

    def _read(self, tokens: Sequence[int], known: int) -> None:
        """Write what the rows behind the first `known` of a prompt and its answer read as text."""
        if self._memory is not None:
            self._texts += map(_windows, self._memory.text(tokens, known, len(tokens)))

    def _add(self, token: int, position: int, sees: tuple[tuple[int, int], ...]) -> None:
        self._ids.append(token)
        self._positions.append(position)
        self._sees.append(sees)

    def layout(self) -> Layout:
        total = len(self._ids)
        visible = np.zeros((len(self._sees), total), dtype=np.bool_)
        for row, ranges in enumerate(self._sees):
            for start, end in ranges:
                visible[row, start:end] = True
        causal = np.zeros(total, dtype=np.bool_)
        causal[self._causal] = True
        scored, targets, weights, slots = zip(*self._scores, strict=True)
        return Layout(
            context=self._context,
            ids=np.array(self._ids),
            positions=np.array(self._positions),
            text=np.concatenate(self._texts) if self._texts else np.zeros((total, REACH + 1), dtype=np.int64),
            visible=visible,
            causal=causal,
            scored=np.array(scored),
            targets=np.array(targets),
            weights=np.array(weights, dtype=np.float32),
            slots=np.array(slots),
            answers=len(self._question.answers),
        )


class QuestionAttention:
    """The `Attend` of one layout: two products a layer, as the prompt never sees an answer."""

    def __init__(self, config: ModelConfig, layout: Layout, device: torch.device) -> None:
        self._config = config
        self._context = layout.context
        visible = torch.from_numpy(layout.visible).to(device)
        positions = torch.from_numpy(layout.positions).to(device)
        distance = positions[:, None] - positions
        self._masks: dict[int | None, tuple[Tensor | None, Tensor]] = {None: (None, visible)}
        if (window := config.sliding_window) is not None:
            near, count = distance < window, layout.context
            inner = (near & (distance >= 0))[:count, :count] if count > window else None
            self._masks[window] = inner, visible & near[count:]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [T, Hq, D], k and v [T, Hkv, D] to [T, Hq, D]."""
        inner, outer = self._masks[self._config.window(layer)]
        q, k, v = (each.transpose(0, 1)[None] for each in (q, k, v))
        count = self._context
        prompt = _attend(q[:, :, :count], k[:, :, :count], v[:, :, :count], inner)
        answers = _attend(q[:, :, count:], k, v, outer)
        return torch.cat((prompt, answers), dim=2)[0].transpose(0, 1)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None, enable_gqa=True)


def score(model: Transformer, layout: Layout) -> Tensor:
    """The scores [2, A] of `layout`'s answers in nats, by `MODES`; with gradients where torch records them.

    Each is a sum over an answer's tokens, its end included: the bound, a mean over the answer's draws, and the exact
    log-probability from left to right.
    """
    device = model.embed_tokens.weight.device
    ids, positions, text, scored, targets, weights, slots = (
        torch.from_numpy(getattr(layout, name)).to(device)
        for name in ("ids", "positions", "text", "scored", "targets", "weights", "slots")
    )
    hidden = model(ids, positions, QuestionAttention(model.config, layout, device), text)
    said = -F.cross_entropy(model.logits(hidden[scored]), targets, reduction="none")
    sums = torch.zeros(2 * layout.answers, device=device).index_add(0, slots, said * weights)
    return sums.view(2, layout.answers)


def losses(rewards: Tensor, desirable: Tensor, weights: Tensor, origin: Tensor, beta: float) -> Tensor:
    """[..., N] the loss of each answer, times its weight.

    Args:
        rewards: [..., N].
        desirable: [N] bool.
        weights: [N].
        origin: [..., 1].
        beta: how soon a reward is large enough.
    """
    sign = torch.where(desirable, 1.0, -1.0)
    return weights * (1 - torch.sigmoid(beta * sign * (rewards - origin)))


def figures(rewards: Tensor, desirable: Tensor, beta: float) -> dict[str, float]:
    """What a minibatch's rewards [N] look like, for the log; NaN for a side that is empty.

    `accuracy` is the share of answers whose reward lies on their side of the `origin`; `over_6` and `over_8` are those
    so many units from it, where the sigmoid is flat: such an answer teaches nothing more.
    """
    origin = rewards.mean()
    above = beta * (rewards - origin)
    good, bad = rewards[desirable].mean(), rewards[~desirable].mean()
    found = {
        "origin": origin,
        "desirable": good,
        "undesirable": bad,
        "margin": good - bad,
        "accuracy": ((above > 0) == desirable).float().mean(),
        "over_6": (above.abs() > 6).float().mean(),  # noqa: PLR2004
        "over_8": (above.abs() > 8).float().mean(),  # noqa: PLR2004
    }
    return {name: float(value) for name, value in found.items()}
