"""The rows of a training example: a causal front, and branches that read it.

    front    context tokens                                                      causal, shared by all branches
    branch   head | answer (causal) | canvas A | canvas B                        one per question about the front

A head ends with the middle mark. The canvases have complementary masks and never see the clean answer; the front never
sees a branch.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from calomel.prompts.own import NEAR_TOKENS
from calomel.prompts.tokenizer import SPECIAL_TOKENS, Tokenizer
from calomel.training.config import BatchShape, TrainConfig

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

# Tokens between the last pre-token boundary and the hole; a hole deeper in a pre-token is moved to the boundary.
REST: Final = 4

CONTEXT, CAUSAL, CANVAS, FILL, KEPT = range(5)
GROUPS: Final = ("context", "causal", "canvas", "fill", "kept")
# Share of holes whose canvas A is entirely masked, as at the first step of inference, and whose canvas B has wrong
# tokens instead of masks, as after a wrong step.
_EXTREMES: Final = 0.3


@dataclass(frozen=True, slots=True)
class Example:
    """The rows of one document: `shape.front` of the front, then `rows(shape)` for each hole.

    Attributes:
        ids, positions: [T].
        valid: [T]; False for padding, which nothing may attend to.
        limit: [T] how many rows of the front a row sees.
        targets, weights, groups: [T] the id to predict, the weight of its loss (0: none), and the part of the loss.
    """

    ids: Ints
    positions: Ints
    valid: Bools
    limit: Ints
    targets: Ints
    weights: Floats
    groups: Ints


# Kernels read rows of a mask faster that begin at multiples of as many.
_ALIGNED: Final = 8


def head_rows(shape: BatchShape) -> int:
    """Rows of a branch before its answer: rest of a pre-token, region with its two marks, near suffix, middle mark."""
    needed = REST + (shape.region + 2 if shape.region else 0) + 1 + NEAR_TOKENS + 1
    return -(-needed // _ALIGNED) * _ALIGNED


def rows(shape: BatchShape) -> int:
    """Rows of one branch: head, causal answer, two canvases."""
    return head_rows(shape) + 3 * shape.canvas


def empty_example(shape: BatchShape, tokenizer: Tokenizer) -> Example:
    """An example that is all padding."""
    total = shape.front + shape.holes * rows(shape)
    return Example(
        ids=np.full(total, tokenizer.pad),
        positions=np.zeros(total, dtype=np.int64),
        valid=np.zeros(total, dtype=np.bool_),
        limit=np.ones(total, dtype=np.int64),
        targets=np.zeros(total, dtype=np.int64),
        weights=np.zeros(total, dtype=np.float32),
        groups=np.zeros(total, dtype=np.int64),
    )


def draw_positions(count: int, config: TrainConfig, rng: random.Random) -> Ints:
    """Positions of a front of `count` rows; some have a gap, so that all positions of the model are trained."""
    positions = np.arange(count)
    if rng.random() < config.gap_share:
        # Leave room after the front for the branches.
        gap = int((config.model.max_position_embeddings - 1024 - count) ** rng.random())
        positions[rng.randrange(1, count) :] += gap
    return positions


@dataclass(frozen=True, slots=True)
class Question:
    """What a branch asks.

    Attributes:
        seen: rows of the front that it sees.
        base: position of its first row.
        head: its own context; the last id is the middle mark.
        answer: ids to predict.
        changed: which ids of the answer are not in the current region; None for a hole. If canvas A is entirely masked,
            canvas B then shows what stays and hides what changes, like a canvas seeded with the current text.
    """

    seen: int
    base: int
    head: list[int]
    answer: list[int]
    changed: list[bool] | None = None


class BranchWriter:
    """Writes fronts and branches into examples; all randomness comes from the generator that is passed in."""

    def __init__(self, tokenizer: Tokenizer, config: TrainConfig) -> None:
        self._tokenizer = tokenizer
        self._config = config

    def front(self, out: Example, ids: Sequence[int], positions: Ints, shape: BatchShape) -> None:
        """The shared context; every row predicts the next one."""
        count = len(ids)
        out.ids[:count] = ids
        out.positions[:count] = positions
        out.valid[:count] = True
        out.limit[: shape.front] = np.arange(1, shape.front + 1)
        out.targets[: count - 1] = ids[1:]
        out.weights[: count - 1] = 1.0

    def branch(
        self, out: Example, index: int, question: Question, shape: BatchShape, rate: float, rng: random.Random
    ) -> None:
        """The branch number `index`; a share `rate` of its answer is masked on canvas A."""
        head, answer = question.head, question.answer
        start = shape.front + index * rows(shape)
        begin = start + head_rows(shape)
        out.limit[start : start + rows(shape)] = question.seen
        # The head is right-aligned, so that its last row is always the middle mark.
        first = begin - len(head)
        out.ids[first:begin] = head
        out.positions[first:begin] = question.base + np.arange(len(head))
        out.valid[first:begin] = True
        middle = question.base + len(head) - 1
        self._causal(out, begin, middle, answer, shape)
        self._canvases(out, begin + shape.canvas, middle, question, shape, rate, rng)

    def _causal(self, out: Example, start: int, middle: int, answer: list[int], shape: BatchShape) -> None:
        kept = answer[: shape.canvas]
        count = len(kept)
        out.ids[start : start + count] = kept
        out.positions[start : start + count] = middle + 1 + np.arange(count)
        out.valid[start : start + count] = True
        targets = [*kept, self._tokenizer.end] if len(answer) < shape.canvas else kept
        first = start - 1  # the middle mark predicts the first token
        out.targets[first : first + len(targets)] = targets
        out.weights[first : first + len(targets)] = 1.0
        out.groups[first : first + len(targets)] = CAUSAL

    def _canvases(
        self,
        out: Example,
        start: int,
        middle: int,
        question: Question,
        shape: BatchShape,
        rate: float,
        rng: random.Random,
    ) -> None:
        size, answer = shape.canvas, question.answer
        ended = len(answer) < size
        length = size if not ended or rng.random() < 0.5 else rng.randrange(len(answer) + 1, size + 1)  # noqa: PLR2004
        wanted = [*answer[:size], *[self._tokenizer.end] * (length - len(answer))][:length]
        count = min(len(answer), length)
        rate = min(max(rate, 0.02), 0.98)
        extreme = rng.random() < _EXTREMES
        first = [extreme or rng.random() < rate for _ in range(count)]
        second = [not extreme and not hidden for hidden in first]
        if extreme and question.changed is not None:
            second = list(question.changed[:count])
        clip = self._config.losses.max_weight
        weights = (1.0, 1.0) if extreme else (min(clip, 1 / rate), min(clip, 1 / (1 - rate)))
        beginnings = self._config.beginnings if question.changed is None and not extreme else 0.0
        if beginnings and rng.random() < beginnings:
            shown = (rng.randrange(count + 1), rng.randrange(count + 1))
            first, second = ([place >= known for place in range(count)] for known in shown)
            weights = (_weight(count, shown[0], clip), _weight(count, shown[1], clip))
        for hidden, weight in zip((first, second), weights, strict=True):
            self._canvas(out, start, middle, wanted, hidden, weight, rng)
            start += size

    def _canvas(
        self,
        out: Example,
        start: int,
        middle: int,
        wanted: list[int],
        hidden: list[bool],
        weight: float,
        rng: random.Random,
    ) -> None:
        losses, tokenizer = self._config.losses, self._tokenizer
        shown, weights, groups = [], [], []
        count = len(hidden)
        corruption = losses.corruption if any(hidden) else 2 * losses.corruption
        for place, token in enumerate(wanted):
            if place >= count:
                shown.append(tokenizer.mask)
                weights.append(1.0)
                groups.append(CANVAS if place == count else FILL)
            elif hidden[place]:
                shown.append(tokenizer.mask)
                weights.append(weight)
                groups.append(CANVAS)
            else:
                wrong = rng.random() < corruption
                shown.append(self._wrong(wanted[:count], rng) if wrong else token)
                weights.append(losses.corrupted if wrong else losses.kept)
                groups.append(CANVAS if wrong else KEPT)
        shift = 1 if self._config.model.logit_shift else 0
        if shift:
            shown = [tokenizer.middle, *shown[:-1]]
        span = slice(start, start + len(wanted))
        out.ids[span] = shown
        out.positions[span] = middle + 1 - shift + np.arange(len(wanted))
        out.valid[span] = True
        out.targets[span] = wanted
        out.weights[span] = weights
        out.groups[span] = groups

    def _wrong(self, answer: list[int], rng: random.Random) -> int:
        """A wrong token: half of the time one of the answer's own, as in misplaced drafts."""
        if rng.random() < 0.5:  # noqa: PLR2004
            return rng.choice(answer)
        return rng.randrange(len(SPECIAL_TOKENS), self._tokenizer.vocab_size)


def _weight(count: int, shown: int, clip: float) -> float:
    """The weight of each hidden token, if the first `shown` of `count` are shown."""
    return min(clip, count / max(1, count - shown))
