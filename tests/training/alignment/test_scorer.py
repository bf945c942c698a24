"""What answers are scored with is what the engine would have said, and its mean is the bound."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from calomel.engine.attention import Piece, forward, text_of
from calomel.engine.cache import KeyValueBuffer
from calomel.engine.transformer import Transformer
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.alignment.loss import (
    Marks,
    Question,
    draw_count,
    draw_seed,
    hidden_places,
    key_of,
    lay_out,
    score,
    splitmix64,
)

PREFIX = "total = 1\nindex = value\nresult = self.items(3)\n" * 2


class Engine:
    """What the engine says, one forward at a time, without any of the code under test."""

    def __init__(self, model: Transformer, tokenizer: Tokenizer, context: list[int]) -> None:
        self.model, self.tokenizer, self.context = model, tokenizer, context
        self.shift = int(model.config.diffusion.logit_shift)

    def causal(self, answer: list[int]) -> float:
        wanted = [*answer, self.tokenizer.end]
        rows = range(len(self.context) - 1, len(self.context) + len(answer))
        said = self._forward([*self.context, *answer], 0, causal=True, read=rows)
        return sum(float(row[token]) for row, token in zip(said, wanted, strict=True))

    def canvas(self, before: list[int], part: list[int], hidden: tuple[int, ...], size: int) -> float:
        """The sum over `hidden` places of a canvas of `size` that begins behind the prompt and `before`."""
        mask = self.tokenizer.mask
        shown = [mask if at in hidden or token == self.tokenizer.end else token for at, token in enumerate(part)]
        shown += [mask] * (size - len(part))
        known = [*self.context, *before]
        ids = [*known[len(known) - self.shift :], *shown[: size - self.shift]]
        said = self._forward([*known[: len(known) - self.shift], *ids], len(known) - self.shift, read=range(size))
        return sum(float(said[at, part[at]]) for at in hidden)

    def bound(self, answer: list[int], size: int) -> float:
        wanted = [*answer, self.tokenizer.end]
        total = 0.0
        for first in range(0, len(wanted), size):
            part = wanted[first : first + size]
            for count in range(1, len(part) + 1):
                sets = list(itertools.combinations(range(len(part)), count))
                sums = [self.canvas(wanted[:first], part, hidden, size) for hidden in sets]
                total += sum(sums) / len(sums) / count
        return total

    def _forward(self, ids: list[int], known: int, *, read: range, causal: bool = False) -> torch.Tensor:
        buffer = KeyValueBuffer(self.model.config, len(ids), dtype=torch.float32, device=torch.device("cpu"))
        with torch.inference_mode():
            if known:
                forward(self.model, [self._read(Piece(ids[:known], buffer, 0, causal=True), ids)])
                buffer.length = known
            piece = Piece(ids[known:], buffer, known, causal=causal, read=list(read))
            logits = forward(self.model, [self._read(piece, ids)])
        return logits.log_softmax(-1)

    def _read(self, piece: Piece, tokens: list[int]) -> Piece:
        memory = self.model.config.memory
        return piece if memory is None else replace(piece, text=text_of(piece, tokens, memory, torch.device("cpu")))


def marks(model: Transformer) -> Marks:
    diffusion = model.config.diffusion
    return Marks(diffusion.mask_token_id, diffusion.end_token_id, int(diffusion.logit_shift), model.config.memory)


def context_of(tokenizer: Tokenizer) -> list[int]:
    return [tokenizer.prefix, *tokenizer.encode(PREFIX), tokenizer.near, tokenizer.middle]


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("shift", [False, True])
def test_answers_get_the_likelihood_that_the_engine_gives_them(
    model_maker: Callable[..., Transformer], tokenizer: Tokenizer, *, shift: bool, memory: bool
) -> None:
    model = model_maker(shift=shift, memory=memory)
    context = context_of(tokenizer)
    answers = [tokenizer.encode(text) for text in ("index = 3\n", "", "value")]
    engine = Engine(model, tokenizer, context)

    scores = score(model, lay_out(Question.of(context, answers, 8), marks(model), draws=3, seed=1))

    assert scores.causal.tolist() == pytest.approx([engine.causal(answer) for answer in answers], abs=1e-3)


@pytest.mark.parametrize("shift", [False, True])
@pytest.mark.parametrize("size", [8, 2])
def test_the_mean_over_masks_is_the_bound(
    model_maker: Callable[..., Transformer], tokenizer: Tokenizer, *, shift: bool, size: int
) -> None:
    """Also of an answer that needs more than one canvas."""
    model = model_maker(shift=shift)
    context = context_of(tokenizer)
    answer = tokenizer.encode("index = ")[:3]
    expected = Engine(model, tokenizer, context).bound(answer, size)

    question = Question.of(context, [answer], size)
    means = [float(score(model, lay_out(question, marks(model), draws=2, seed=seed)).canvas[0]) for seed in range(100)]

    mean = sum(means) / len(means)
    deviation = (sum((each - mean) ** 2 for each in means) / len(means)) ** 0.5
    assert mean == pytest.approx(expected, abs=4 * deviation / len(means) ** 0.5 + 1e-4)


def test_one_mask_is_scored_as_the_engine_reads_that_canvas(
    model_maker: Callable[..., Transformer], tokenizer: Tokenizer
) -> None:
    model = model_maker()
    context = context_of(tokenizer)
    answer = tokenizer.encode("result = value(1)\n")
    part = [*answer, tokenizer.end]
    hidden = hidden_places(len(part), draw_seed(key_of(context, answer), draw_seed(key_of(context, answer), 5, 0), 0))

    said = float(score(model, lay_out(Question.of(context, [answer], 24), marks(model), draws=1, seed=5)).canvas[0])

    expected = Engine(model, tokenizer, context).canvas([], part, hidden, 24) * len(part) / len(hidden)
    assert said == pytest.approx(expected, abs=1e-3)


def test_other_answers_to_a_question_change_nothing(
    model_maker: Callable[..., Transformer], tokenizer: Tokenizer
) -> None:
    model = model_maker()
    context = context_of(tokenizer)
    answer, other = tokenizer.encode("index"), tokenizer.encode("self.items = 5\n")

    alone, beside = (
        score(model, lay_out(Question.of(context, answers, 8), marks(model), draws=4, seed=9))
        for answers in ([answer], [other, answer])
    )

    assert float(alone.canvas[0]) == pytest.approx(float(beside.canvas[1]), abs=1e-4)
    assert float(alone.causal[0]) == pytest.approx(float(beside.causal[1]), abs=1e-4)


def test_a_canvas_never_sees_what_it_hides(model_maker: Callable[..., Transformer], tokenizer: Tokenizer) -> None:
    """The clean copy that the causal mode reads may say anything."""
    model = model_maker()
    question = Question.of(context_of(tokenizer), [tokenizer.encode("index = 3\n")], 16)
    layout = lay_out(question, marks(model), draws=4, seed=0)
    garbled = replace(layout, ids=np.where(layout.order >= 0, tokenizer.near, layout.ids))

    clean, other = score(model, layout), score(model, garbled)

    assert float(clean.canvas[0]) == float(other.canvas[0])
    assert float(clean.causal[0]) != float(other.causal[0])


def test_masks_depend_on_the_answer_the_run_and_the_draw_alone() -> None:
    key = key_of([1, 2], [3])
    assert hidden_places(9, draw_seed(key, 0, 4)) == hidden_places(9, draw_seed(key, 0, 4))
    others = {draw_seed(key, 0, 4), draw_seed(key, 1, 4), draw_seed(key, 0, 5), draw_seed(key_of([1], [2, 3]), 0, 4)}
    assert len(others) == 4


def test_every_number_of_hidden_tokens_is_as_likely() -> None:
    sizes = [len(hidden_places(4, splitmix64(seed * 3 + draw), draw, 3)) for seed in range(800) for draw in range(3)]
    assert all(sizes.count(size) / len(sizes) == pytest.approx(0.25, abs=0.03) for size in (1, 2, 3, 4))


def test_silence_at_a_hole_needs_one_draw() -> None:
    assert (draw_count(1, 8), draw_count(2, 8)) == (1, 8)


def test_the_generator_of_seeds_is_the_published_one() -> None:
    """The first outputs of splitmix64 for seed 1234567 (Vigna's reference implementation)."""
    golden = 0x9E3779B97F4A7C15
    assert [splitmix64(1234567 + at * golden & (1 << 64) - 1) for at in range(2)] == [
        6457827717110365317,
        3203168211198807973,
    ]
