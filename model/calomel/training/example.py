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

from calomel.prompts.fim import NEAR_TOKENS, assemble_front, assemble_tail, split_suffix
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.branch import REST, BranchWriter, Example, Ints, Question, draw_positions, empty_example
from calomel.training.config import BatchShape, TrainConfig
from calomel.training.documents import Document
from calomel.training.holes import Hole, cut


class ExampleMaker:
    """Makes examples; all randomness comes from the generator that is passed in."""

    def __init__(self, tokenizer: Tokenizer, config: TrainConfig) -> None:
        self._tokenizer = tokenizer
        self._config = config
        self._writer = BranchWriter(tokenizer, config)

    def make(self, document: Document, shape: BatchShape, phase: float, rng: random.Random) -> Example:
        """The example of one window of `document`; `phase` in [0, 1) shifts the low-discrepancy masking rates."""
        front = self._front(document, shape, rng)
        out = empty_example(shape, self._tokenizer)
        positions = draw_positions(len(front.ids), self._config, rng)
        self._writer.front(out, front.ids, positions, shape)
        for index in range(shape.holes):
            rate = (phase + index / shape.holes) % 1.0
            self._branch(out, index, front, positions, shape, rate, rng)
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

    def _branch(
        self,
        out: Example,
        index: int,
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
        self._writer.branch(out, index, Question(seen, base, head, answer), shape, rate, rng)

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


@dataclass(frozen=True, slots=True)
class _Front:
    text: str
    begin: int
    stop: int
    ids: list[int]
    head: int  # ids before the window's own text
    starts: list[int]  # for each id of the window, the character at which its pre-token starts
    ends: list[int]  # and ends
