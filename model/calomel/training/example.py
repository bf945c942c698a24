"""One training document: a causal front, and holes that branch off it.

    front    [file] path [suffix] far suffix [prefix] text of the window                       causal, shared
    branch   rest [near] near suffix [middle] | answer (causal) | canvas A | canvas B          one for each hole

A branch starts where the pre-token under its hole starts: it sees the front before that place and itself, and the front
never sees it. The ids along front and branch are exactly those that `calomel.prompts.fim.render` gives for the same
text: the model meets in training what it meets at the cursor. One encoding of the front serves all of its holes.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from calomel.prompts import special
from calomel.prompts.fim import NEAR_TOKENS, assemble_front, assemble_tail, split_suffix
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.config import BatchShape, TrainConfig
from calomel.training.documents import Document
from calomel.training.holes import Hole, cut

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

# Tokens between the last pre-token boundary and the hole; a hole deeper inside a pre-token is moved to the boundary.
REST: Final = 4
HEAD: Final = REST + 1 + NEAR_TOKENS + 1

CONTEXT, CAUSAL, CANVAS, FILL, KEPT = range(5)
GROUPS: Final = ("context", "causal", "canvas", "fill", "kept")
# Share of holes whose canvas A is wholly masked, as at the first step of inference, and whose canvas B has no mask but
# wrong tokens, as when a step has erred.
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


def rows(shape: BatchShape) -> int:
    """Rows of one branch: head, causal answer, two canvases."""
    return HEAD + 3 * shape.canvas


class ExampleMaker:
    """Makes examples; all randomness comes from the generator that is passed in."""

    def __init__(self, tokenizer: Tokenizer, config: TrainConfig) -> None:
        self._tokenizer = tokenizer
        self._config = config

    def make(self, document: Document, shape: BatchShape, phase: float, rng: random.Random) -> Example:
        """The example of one window of `document`; `phase` in [0, 1) shifts the low-discrepancy masking rates."""
        front = self._front(document, shape, rng)
        total = shape.front + shape.holes * rows(shape)
        out = Example(
            ids=np.full(total, self._tokenizer.pad),
            positions=np.zeros(total, dtype=np.int64),
            valid=np.zeros(total, dtype=np.bool_),
            limit=np.ones(total, dtype=np.int64),
            targets=np.zeros(total, dtype=np.int64),
            weights=np.zeros(total, dtype=np.float32),
            groups=np.zeros(total, dtype=np.int64),
        )
        count = len(front.ids)
        positions = self._positions(count, rng)
        out.ids[:count] = front.ids
        out.positions[:count] = positions
        out.valid[:count] = True
        out.limit[: shape.front] = np.arange(1, shape.front + 1)
        out.targets[: count - 1] = front.ids[1:]
        out.weights[: count - 1] = 1.0
        for index in range(shape.holes):
            rate = (phase + index / shape.holes) % 1.0
            start = shape.front + index * rows(shape)
            self._branch(out, start, front, positions, shape, rate, rng)
        return out

    def _front(self, document: Document, shape: BatchShape, rng: random.Random) -> _Front:
        config, tokenizer = self._config, self._tokenizer
        path = tokenizer.encode(document.path)[-NEAR_TOKENS:] if rng.random() < config.path_share else []
        far_room = rng.randrange(16, shape.front // 4) if rng.random() < config.far_suffix_share else 0
        room = shape.front - far_room - len(path) - 3
        text = document.text
        latest = max(0, len(text) - room * 2)
        begin = 0 if rng.random() < 0.25 else text.rfind("\n", 0, rng.randrange(latest + 1)) + 1  # noqa: PLR2004
        ids, starts, ends = tokenizer.encode_with_words(text[begin : begin + room * 6])
        ids, starts, ends = ids[:room], starts[:room], ends[:room]
        stop = begin + (ends[-1] if ends else 0)
        line = text.find("\n", stop) + 1
        far = tokenizer.encode(text[line : line + far_room * 6])[:far_room] if far_room and line else []
        head = assemble_front(path, far, (), tokenizer)
        return _Front(
            text, begin, stop, [*head, *ids], len(head), [begin + s for s in starts], [begin + e for e in ends]
        )

    def _positions(self, count: int, rng: random.Random) -> Ints:
        positions = np.arange(count)
        if rng.random() < self._config.gap_share:
            # Leave room behind the front for the branches.
            gap = int((self._config.model.max_position_embeddings - 1024 - count) ** rng.random())
            positions[rng.randrange(1, count) :] += gap
        return positions

    def _branch(
        self,
        out: Example,
        start: int,
        front: _Front,
        positions: Ints,
        shape: BatchShape,
        rate: float,
        rng: random.Random,
    ) -> None:
        tokenizer = self._tokenizer
        hole, rest, seen = self._hole(front, rng)
        near, _ = split_suffix(front.text[hole.end : hole.end + NEAR_TOKENS * 12], tokenizer)
        head = assemble_tail(rest, near, tokenizer)
        answer = tokenizer.encode(front.text[hole.start : hole.end])
        base = int(positions[seen - 1]) + 1
        branch = slice(start, start + rows(shape))
        out.limit[branch] = seen
        # The head is right-aligned, so that its last row is always the middle mark.
        first = start + HEAD - len(head)
        out.ids[first : start + HEAD] = head
        out.positions[first : start + HEAD] = base + np.arange(len(head))
        out.valid[first : start + HEAD] = True
        middle = base + len(head) - 1
        self._causal(out, start + HEAD, middle, answer, shape)
        self._canvases(out, start + HEAD + shape.canvas, middle, answer, shape, rate, rng)

    def _hole(self, front: _Front, rng: random.Random) -> tuple[Hole, list[int], int]:
        """The hole, the ids of the prefix behind the last pre-token boundary, and the rows of the front before it."""
        low = front.begin + min(160, (front.stop - front.begin) // 4)
        hole = cut(front.text, low, max(low + 1, front.stop), self._config.holes, rng)
        aligned = rng.random() < self._config.holes.aligned
        before = bisect_left(front.starts, hole.start)
        boundary = hole.start
        if before and front.ends[before - 1] > hole.start:  # the hole starts inside this pre-token
            boundary = front.starts[before - 1]
            before = bisect_left(front.starts, boundary)
        rest = self._tokenizer.encode(front.text[boundary : hole.start])
        if aligned or len(rest) > REST:
            hole, rest = Hole(boundary, max(boundary, hole.end), hole.kind), []
        return hole, rest, front.head + before

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
        answer: list[int],
        shape: BatchShape,
        rate: float,
        rng: random.Random,
    ) -> None:
        size = shape.canvas
        ended = len(answer) < size
        length = size if not ended or rng.random() < 0.5 else rng.randrange(len(answer) + 1, size + 1)  # noqa: PLR2004
        wanted = [*answer[:size], *[self._tokenizer.end] * (length - len(answer))][:length]
        count = min(len(answer), length)
        rate = min(max(rate, 0.02), 0.98)
        extreme = rng.random() < _EXTREMES
        first = [extreme or rng.random() < rate for _ in range(count)]
        second = [not extreme and not hidden for hidden in first]
        clip = self._config.losses.max_weight
        weights = (1.0, 1.0) if extreme else (min(clip, 1 / rate), min(clip, 1 / (1 - rate)))
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
        """A wrong token: half of the time one of the answer's own, as a misplaced draft has them."""
        if rng.random() < 0.5:  # noqa: PLR2004
            return rng.choice(answer)
        return rng.randrange(len(special.ALL), self._tokenizer.vocab_size)


@dataclass(frozen=True, slots=True)
class _Front:
    text: str
    begin: int
    stop: int
    ids: list[int]
    head: int  # ids before the window's own text
    starts: list[int]  # for each id of the window, the character at which its pre-token starts
    ends: list[int]  # and ends
