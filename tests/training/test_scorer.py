"""What answers are scored with is what the engine would have said, and its mean is the bound."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.training.test_alignment import random_model
from torch import Tensor

from calomel.engine.attention import Piece, forward, text_of
from calomel.engine.cache import KeyValueBuffer
from calomel.engine.transformer import Transformer
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.alignment.loss import Question, lay_out, score

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


def scored(
    model: Transformer, context: list[int], answers: list[list[int]], size: int, draws: int, seed: str
) -> Tensor:
    question = Question(tuple(context), tuple(map(tuple, answers)), size)
    return score(model, lay_out(question, model.config, draws=draws, seed=seed))


def context_of(tokenizer: Tokenizer) -> list[int]:
    return [tokenizer.prefix, *tokenizer.encode(PREFIX), tokenizer.near, tokenizer.middle]


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("shift", [False, True])
def test_answers_get_the_likelihood_that_the_engine_gives_them(
    tokenizer: Tokenizer, *, shift: bool, memory: bool
) -> None:
    model = random_model(tokenizer, shift=shift, memory=memory)
    context = context_of(tokenizer)
    answers = [tokenizer.encode(text) for text in ("index = 3\n", "", "value")]
    engine = Engine(model, tokenizer, context)

    _, causal = scored(model, context, answers, 8, draws=3, seed="1")

    assert causal.tolist() == pytest.approx([engine.causal(answer) for answer in answers], abs=1e-3)


@pytest.mark.parametrize("shift", [False, True])
@pytest.mark.parametrize("size", [8, 2])
def test_the_mean_over_masks_is_the_bound(tokenizer: Tokenizer, *, shift: bool, size: int) -> None:
    """Also of an answer that needs more than one canvas."""
    model = random_model(tokenizer, shift=shift)
    context = context_of(tokenizer)
    answer = tokenizer.encode("index = ")[:3]
    expected = Engine(model, tokenizer, context).bound(answer, size)

    means = [float(scored(model, context, [answer], size, draws=2, seed=str(seed))[0, 0]) for seed in range(100)]

    mean = sum(means) / len(means)
    deviation = (sum((each - mean) ** 2 for each in means) / len(means)) ** 0.5
    assert mean == pytest.approx(expected, abs=4 * deviation / len(means) ** 0.5 + 1e-4)


def test_other_answers_to_a_question_change_nothing(tokenizer: Tokenizer) -> None:
    model = random_model(tokenizer)
    context = context_of(tokenizer)
    answer, other = tokenizer.encode("index"), tokenizer.encode("self.items = 5\n")

    alone, beside = (scored(model, context, answers, 8, draws=4, seed="9") for answers in ([answer], [other, answer]))

    assert alone[:, 0].tolist() == pytest.approx(beside[:, 1].tolist(), abs=1e-4)


def test_a_canvas_never_sees_what_it_hides(tokenizer: Tokenizer) -> None:
    """The clean copy that the causal mode reads may say anything."""
    model = random_model(tokenizer)
    question = Question(tuple(context_of(tokenizer)), (tuple(tokenizer.encode("index = 3\n")),), 16)
    layout = lay_out(question, model.config, draws=4, seed="0")
    garbled = replace(layout, ids=np.where(layout.causal, tokenizer.near, layout.ids))

    clean, other = score(model, layout), score(model, garbled)

    assert float(clean[0, 0]) == float(other[0, 0])
    assert float(clean[1, 0]) != float(other[1, 0])
