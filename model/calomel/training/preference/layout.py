"""The rows of one question: its prompt once, and each answer to it, once for the causal mode and once for each canvas.

    context   the prompt, as inference renders it                                    causal, shared by all answers
    causal    an answer without its end; every row predicts the next token, from the prompt's last row on
    canvas    part of an answer, some tokens hidden; behind its end masks, as at inference

An answer that is longer than a canvas is a sequence of canvases, each of which sees the finished part before it in its
causal form, as the engine appends it to its cache. No canvas sees the clean copy of what it hides. The end and what is
behind it are always shown as masks, as in training: the model whose bound this is does not read its own end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calomel.engine.memory import REACH, MemoryConfig
from calomel.training.preference.masks import draw_count, draw_seed, hidden_places, key_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in tokens.

    Attributes:
        ids: without the end.
        key: names the answer to its prompt.
    """

    ids: tuple[int, ...]
    key: str

    @property
    def length(self) -> int:
        """Tokens, the end included."""
        return len(self.ids) + 1


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt in tokens, and answers to it.

    Attributes:
        context: ends with the middle mark.
        answers: A of them.
        canvas: how long a canvas is.
    """

    context: tuple[int, ...]
    answers: tuple[Answer, ...]
    canvas: int

    @classmethod
    def of(cls, context: Sequence[int], answers: Sequence[Sequence[int]], canvas: int) -> Question:
        """With the answers' keys."""
        return cls(tuple(context), tuple(Answer(tuple(ids), key_of(context, ids)) for ids in answers), canvas)


@dataclass(frozen=True, slots=True)
class Marks:
    """What the rows are made with.

    Attributes:
        mask, end: token ids.
        shift: 1 where a canvas row predicts the token behind it, so that a canvas begins with the last known token.
        memory: of the model, if it has one.
    """

    mask: int
    end: int
    shift: int
    memory: MemoryConfig | None = None

    def text(self, tokens: Sequence[int], known: int) -> Ints:
        """What the rows behind the first `known` of a prompt and its answer read as text: [rows, REACH + 1]."""
        if self.memory is None:
            return np.zeros((len(tokens) - known, REACH + 1), dtype=np.int64)
        runs = [np.array(run) for run in self.memory.text(tokens, known, len(tokens))]
        windows = [np.lib.stride_tricks.sliding_window_view(run, REACH + 1) for run in runs]
        return np.concatenate([*windows, np.zeros((0, REACH + 1), dtype=np.int64)])


@dataclass(frozen=True, slots=True)
class Layout:
    """T rows, C of them the prompt's, and N scores to read from them.

    Attributes:
        context: C.
        ids, positions: [T]; text: [T, REACH + 1], see `calomel.engine.memory`.
        canvas: [T] names the canvas that a row belongs to; rows of one canvas see each other. 0 for none.
        owner: [T] which answer a row belongs to; -1 for the prompt.
        sees: [T] how many rows of the prompt a row sees; of rows of the prompt, those up to itself.
        causal: [T] how many causal rows of its own answer a row sees, from the first one on.
        order: [T] the number of a causal row within its answer; -1 for other rows.
        scored: [N] rows to read; targets [N] what they should say; weights [N]; slots [N] the sum each belongs to:
            `answer * draws + draw` for canvases, `answers * draws + answer` for the causal mode.
        answers, draws: A and K; the sums are A * K + A.
        scale: [A * K] how many times a sum counts in the mean over an answer's draws, 0 or 1 / its draws.
    """

    context: int
    ids: Ints
    positions: Ints
    text: Ints
    canvas: Ints
    owner: Ints
    sees: Ints
    causal: Ints
    order: Ints
    scored: Ints
    targets: Ints
    weights: Floats
    slots: Ints
    answers: int
    draws: int
    scale: Floats


def lay_out(question: Question, marks: Marks, *, draws: int, seed: int, number: int = 0) -> Layout:
    """The rows of `question` with `draws` draws an answer; pass `number` has draws of its own."""
    rows = _Rows(len(question.context))
    for index, token in enumerate(question.context):
        rows.add(token, index, sees=index + 1)
    rows.texts.append(marks.text(question.context, 0))
    count = len(question.answers)
    scale = np.zeros((count, draws), dtype=np.float32)
    for at, answer in enumerate(question.answers):
        _causal(rows, at, answer, marks, slot=count * draws + at)
        rows.texts.append(marks.text((*question.context, *answer.ids), rows.context))
        needed = draw_count(answer.length, draws)
        scale[at, :needed] = 1 / needed
        for draw in range(needed):
            own = _Draw(draw_seed(answer.key, seed, number * draws + draw), draw, needed)
            _canvases(rows, at, answer, marks, own, size=question.canvas, slot=at * draws + draw)
    return rows.layout(count, draws, scale.reshape(-1))


@dataclass(frozen=True, slots=True)
class _Draw:
    seed: int
    number: int
    of: int


def _causal(rows: _Rows, at: int, answer: Answer, marks: Marks, *, slot: int) -> None:
    before = rows.context - 1
    for index, token in enumerate(answer.ids):
        rows.score(before, token, 1.0, slot)
        before = rows.add(token, rows.context + index, owner=at, sees=rows.context, causal=index + 1, order=index)
    rows.score(before, marks.end, 1.0, slot)


def _canvases(rows: _Rows, at: int, answer: Answer, marks: Marks, draw: _Draw, *, size: int, slot: int) -> None:
    wanted = (*answer.ids, marks.end)
    for first in range(0, len(wanted), size):
        part = wanted[first : first + size]
        hidden = hidden_places(len(part), draw_seed(answer.key, draw.seed, first), draw.number, draw.of)
        known = (set(range(len(part))) - set(hidden)) - {len(wanted) - 1 - first}
        shown = [part[place] if place in known else marks.mask for place in range(size)]
        if marks.shift:
            shown = [answer.ids[first - 1] if first else rows.last_of_context, *shown[:-1]]
        canvas = rows.new_canvas()
        # With shifted logits a canvas holds the last known token as its own first row.
        sees = rows.context - (marks.shift if not first else 0)
        causal = max(0, first - marks.shift)
        start = rows.context + first - marks.shift
        begin = len(rows.ids)
        final = (*rows.ids[: rows.context], *answer.ids[:first])
        rows.texts.append(_canvas_text(final, shown, marks))
        for place, token in enumerate(shown):
            rows.add(token, start + place, owner=at, sees=sees, causal=causal, canvas=canvas)
        for place in hidden:
            rows.score(begin + place, part[place], len(part) / len(hidden), slot)


def _canvas_text(known: Sequence[int], shown: Sequence[int], marks: Marks) -> Ints:
    """What the rows of a canvas read as text behind the tokens `known`, the last of which heads a shifted one."""
    if marks.memory is None:
        return np.zeros((len(shown), REACH + 1), dtype=np.int64)
    before = marks.memory.before(known, len(known), REACH + marks.shift)
    return np.lib.stride_tricks.sliding_window_view(np.array([*before, *shown[marks.shift :]]), REACH + 1)


class _Rows:
    """Rows while they are written."""

    def __init__(self, context: int) -> None:
        self.context = context
        self.ids: list[int] = []
        self.texts: list[Ints] = []
        self._columns: list[tuple[int, int, int, int, int, int]] = []
        self._scores: list[tuple[int, int, float, int]] = []
        self._canvases = 0

    @property
    def last_of_context(self) -> int:
        return self.ids[self.context - 1]

    def new_canvas(self) -> int:
        self._canvases += 1
        return self._canvases

    def add(
        self,
        token: int,
        position: int,
        *,
        sees: int,
        owner: int = -1,
        causal: int = 0,
        canvas: int = 0,
        order: int = -1,
    ) -> int:
        self.ids.append(token)
        self._columns.append((position, canvas, owner, sees, causal, order))
        return len(self.ids) - 1

    def score(self, row: int, target: int, weight: float, slot: int) -> None:
        self._scores.append((row, target, weight, slot))

    def layout(self, answers: int, draws: int, scale: Floats) -> Layout:
        positions, canvas, owner, sees, causal, order = np.array(self._columns, dtype=np.int64).T
        scored, targets, weights, slots = zip(*self._scores, strict=True)
        return Layout(
            context=self.context,
            ids=np.array(self.ids, dtype=np.int64),
            positions=positions,
            text=np.concatenate(self.texts),
            canvas=canvas,
            owner=owner,
            sees=sees,
            causal=causal,
            order=order,
            scored=np.array(scored, dtype=np.int64),
            targets=np.array(targets, dtype=np.int64),
            weights=np.array(weights, dtype=np.float32),
            slots=np.array(slots, dtype=np.int64),
            answers=answers,
            draws=draws,
            scale=scale,
        )
