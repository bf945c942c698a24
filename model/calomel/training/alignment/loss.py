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
1..L, which leaves each of them uniform, so the mean unbiased, and takes away most of its variance. Draws come from a
64-bit seed of their own each (splitmix64): who knows the answer knows its masks, so nothing of them is stored, and
policy and reference see the same.

The loss is Kahneman-Tversky optimisation of rewards (arXiv 2402.01306, 2510.23658):

    reward  r = score under the policy - score under the reference, of one answer
    origin  z = mean reward of the minibatch, without gradient
    value   v = sigmoid(beta (r - z)) for a desirable answer, sigmoid(beta (z - r)) for an undesirable one
    loss      = weighted mean of 1 - v
"""

from __future__ import annotations

import hashlib
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
from calomel.engine.memory import REACH, MemoryConfig
from calomel.engine.transformer import Transformer

_WORD: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15


def splitmix64(state: int) -> int:
    """One output of splitmix64 (Steele et al. 2014) at `state`: seeds that differ in one bit give unrelated streams."""
    mixed = (state + _GOLDEN) & _WORD
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
    return mixed ^ (mixed >> 31)


def key_of(context: Sequence[int], answer: Sequence[int]) -> str:
    """Names an answer to a prompt, 16 hexadecimal digits; the same in every run."""
    said = ",".join(map(str, context)) + "|" + ",".join(map(str, answer))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def draw_seed(key: str, seed: int, number: int) -> int:
    """The seed of draw `number` of the answer `key` in a run with `seed`."""
    return splitmix64(splitmix64(int(key, 16) ^ splitmix64(seed & _WORD)) ^ number)


def draw_count(length: int, draws: int) -> int:
    """How many draws an answer of `length` tokens needs: of one token there is only one mask."""
    return 1 if length == 1 else draws


def hidden_places(length: int, seed: int, stratum: int = 0, strata: int = 1) -> tuple[int, ...]:
    """Which of `length` places one draw hides, in order.

    Args:
        length: L, at least 1.
        seed: of this draw.
        stratum: the draw's number within its pass.
        strata: draws of the pass.
    """
    rng = random.Random(seed)
    size = min(length, 1 + int(length * (stratum + rng.random()) / strata))
    return tuple(sorted(rng.sample(range(length), size)))


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
            _draw_canvases(rows, at, answer, marks, own, size=question.canvas, slot=at * draws + draw)
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


def _draw_canvases(rows: _Rows, at: int, answer: Answer, marks: Marks, draw: _Draw, *, size: int, slot: int) -> None:
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


class QuestionAttention:
    """The `Attend` of one layout: two products a layer, as the prompt never sees an answer."""

    def __init__(self, config: ModelConfig, layout: Layout, device: torch.device) -> None:
        self._config = config
        self._context = layout.context
        windows = {config.window(layer) for layer in range(config.num_hidden_layers)}
        self._masks = {window: _masks(layout, window, device) for window in windows}

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


def _masks(layout: Layout, window: int | None, device: torch.device) -> tuple[Tensor | None, Tensor]:
    """What a row of the prompt sees of the prompt (None: all before it), and any other row of all rows: [T - C, T]."""
    columns = {
        name: torch.from_numpy(getattr(layout, name)).to(device)
        for name in ("positions", "canvas", "owner", "sees", "causal", "order")
    }
    count = layout.context
    key = torch.arange(len(layout.ids), device=device)
    row = {name: column[count:, None] for name, column in columns.items()}
    prompt = (key < count) & (key < row["sees"])
    same = row["owner"] == columns["owner"]
    before = same & (columns["order"] >= 0) & (columns["order"] < row["causal"])
    beside = (row["canvas"] > 0) & (row["canvas"] == columns["canvas"])
    visible = prompt | before
    inner = None
    if window is not None:
        visible &= row["positions"] - columns["positions"] < window
        if count > window:
            index = torch.arange(count, device=device)
            distance = index[:, None] - index
            inner = (distance >= 0) & (distance < window)
    return inner, visible | beside


@dataclass(frozen=True, slots=True)
class Scores:
    """Of A answers, in nats; each is a sum over an answer's tokens, its end included.

    Attributes:
        canvas: [A] the bound, a mean over the answer's draws.
        causal: [A] log-probability, left to right.
    """

    canvas: Tensor
    causal: Tensor


def score(model: Transformer, layout: Layout) -> Scores:
    """The scores of `layout`'s answers; with gradients where torch records them."""
    device = model.embed_tokens.weight.device
    ids, positions, text, scored, targets, weights, slots, scale = (
        torch.from_numpy(each).to(device)
        for each in (
            layout.ids,
            layout.positions,
            layout.text,
            layout.scored,
            layout.targets,
            layout.weights,
            layout.slots,
            layout.scale,
        )
    )
    hidden = model(ids, positions, QuestionAttention(model.config, layout, device), text)
    said = -F.cross_entropy(model.logits(hidden[scored]), targets, reduction="none")
    canvases = layout.answers * layout.draws
    sums = torch.zeros(canvases + layout.answers, device=device).index_add(0, slots, said * weights)
    canvas = (sums[:canvases] * scale).view(layout.answers, layout.draws).sum(1)
    return Scores(canvas, sums[canvases:])


# Beyond so many units the sigmoid is flat: such an answer teaches nothing more.
SATURATED: Final = (6.0, 8.0)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one minibatch, for the log.

    Attributes:
        origin: z, in nats.
        desirable, undesirable: mean rewards.
        accuracy: share of answers whose reward lies on their side of the origin.
        reach: mean of |beta r|.
        over_6, over_8: share of answers with |beta (r - z)| above that.
    """

    origin: float
    desirable: float
    undesirable: float
    accuracy: float
    reach: float
    over_6: float
    over_8: float

    @property
    def margin(self) -> float:
        """How much better the desirable ones are rewarded."""
        return self.desirable - self.undesirable


def losses(rewards: Tensor, desirable: Tensor, weights: Tensor, origin: float, beta: float) -> Tensor:
    """[N] the loss of each answer, times its weight; rewards and weights [N], desirable [N] bool."""
    sign = torch.where(desirable, 1.0, -1.0)
    return weights * (1 - torch.sigmoid(beta * sign * (rewards - origin)))


def figures(rewards: Tensor, desirable: Tensor, beta: float) -> Figures:
    """What a minibatch's rewards [N] look like; NaN for a side that is empty."""
    origin = float(rewards.mean())
    above = beta * (rewards - origin)
    low, high = SATURATED
    return Figures(
        origin=origin,
        desirable=float(rewards[desirable].mean()),
        undesirable=float(rewards[~desirable].mean()),
        accuracy=float(((above > 0) == desirable).float().mean()),
        reach=float((beta * rewards).abs().mean()),
        over_6=float((above.abs() > low).float().mean()),
        over_8=float((above.abs() > high).float().mean()),
    )
