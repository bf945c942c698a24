"""Canvases that begin while the one before has little left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.conftest import END, MASK

from calomel.engine import InvalidCanvasError, ModelConfig, Request, Transformer
from calomel.engine.reveal import Threshold

LONG = list(range(10, 34))


def slow_ends(place: int, step: int) -> float:
    """Of every eight tokens the last two come one by one; the others are sure at once."""
    del step
    return 0.2 if place % 8 > 5 else 0.99


def test_the_next_canvas_begins_beside_one_that_has_little_left(scripted: Any, start: Any) -> None:
    found = {}
    for overlap in (0, 2):
        model = scripted(3, LONG)
        model.confidence = slow_ends
        request = Request((1, 2, 3), 40, canvas_lengths=(8,), policy="threshold:0.9", max_steps=8, overlap=overlap)
        found[overlap] = start(model).submit(request).result(60)

    assert found[0].ids == found[2].ids == tuple(LONG)
    assert found[0].finish_reason == found[2].finish_reason == "stop"
    assert found[2].forwards < found[0].forwards


def test_an_end_in_the_first_canvas_drops_the_second(scripted: Any, start: Any) -> None:
    model = scripted(3, LONG[:5])
    # The end shows when all but two positions are known, and the next canvas has begun.
    model.confidence = lambda place, step: 0.99 if place < 4 or step > 2 else 0.2
    request = Request((1, 2, 3), 40, canvas_lengths=(6,), policy="threshold:0.9", max_steps=9, overlap=2)
    result = start(model).submit(request).result(60)

    assert result.ids == tuple(LONG[:5])
    assert result.finish_reason == "stop"


@pytest.mark.parametrize("overlap", [1, 3, 8])
@pytest.mark.parametrize("room", [7, 8, 9, 16, 21])
def test_an_answer_is_no_longer_than_it_may_be(overlap: int, room: int, scripted: Any, start: Any) -> None:
    model = scripted(3, LONG)
    model.confidence = lambda place, step: 0.99 if (place + step) % 2 else 0.3
    request = Request((1, 2, 3), room, canvas_lengths=(8,), policy="threshold:0.9", max_steps=3, overlap=overlap)
    result = start(model).submit(request).result(60)

    assert result.ids == tuple(LONG[:room])
    assert result.finish_reason == "length"


def test_until_is_asked_when_a_canvas_is_whole(scripted: Any, start: Any) -> None:
    model = scripted(3, LONG)
    model.confidence = slow_ends
    asked: list[list[int]] = []

    def until(answer: Any) -> bool:
        asked.append(list(answer))
        return len(answer) >= 8

    request = Request((1, 2, 3), 40, canvas_lengths=(8,), policy="threshold:0.9", max_steps=8, overlap=2, until=until)
    result = start(model).submit(request).result(60)

    assert result.ids == tuple(LONG[: len(result.ids)])
    assert 8 <= len(result.ids) <= 16
    assert result.finish_reason == "stop"
    assert all(answer == LONG[: len(answer)] for answer in asked)


@pytest.mark.parametrize("overlap", [0, 3, 6])
@pytest.mark.parametrize("steps", [3, 6])
def test_it_is_what_whole_forwards_give(
    overlap: int, steps: int, model: Transformer, config: ModelConfig, context: Any, naive: Any, start: Any
) -> None:
    request = Request(
        context, 30, canvas_lengths=(8,), policy="threshold:0.05", max_steps=steps, overlap=overlap, min_new_tokens=30
    )
    result = start(model).submit(request).result(60)

    assert list(result.ids) == reference(model, config, list(context), overlap, steps, naive)


def reference(
    model: Transformer, config: ModelConfig, tokens: list[int], overlap: int, steps: int, naive: Any
) -> list[int]:
    """30 tokens in canvases of 8, nothing remembered from one forward to the next."""
    begun, shift = len(tokens), int(config.diffusion.logit_shift)
    canvas, first, step = [MASK] * 8, 0, 0
    while len(tokens) - begun < 30:
        step += 1
        limit = first if first and step >= steps else len(canvas)
        cut = len(tokens) - shift
        logits = naive(model, tokens[:cut], [*tokens[cut:], *canvas])[cut : cut + len(canvas)]
        logits[:, [MASK, END]] = -torch.inf
        probabilities = logits.softmax(-1)
        masked = torch.tensor([token == MASK and at < limit for at, token in enumerate(canvas)])
        confidence, token = probabilities.max(-1)
        early = torch.arange(len(canvas)) < first
        chosen = masked
        if step < steps:
            parts = [part for part in (masked & early, masked & ~early) if part.any()]
            found = [Threshold(0.05)(confidence[None], confidence[None], part[None])[0] for part in parts]
            chosen = torch.stack(found).any(0)
        canvas = [int(token[at]) if chosen[at] else known for at, known in enumerate(canvas)]
        left = [at for at, known in enumerate(canvas) if known == MASK]
        room = 30 - (len(tokens) - begun)
        if not left:
            tokens, first, step = [*tokens, *canvas[:room]], 0, 0
            canvas = [MASK] * min(8, 31 - (len(tokens) - begun))
        elif first and left[0] >= first:
            tokens, canvas, left, step = [*tokens, *canvas[:first]], canvas[first:], [at - first for at in left], 1
            room, first = room - first, 0
        if left and not first and len(left) <= overlap and min(8, room - len(canvas) + 1) > 1:
            first = len(canvas)
            canvas += [MASK] * min(8, room - first + 1)
    return tokens[begun:]


def test_a_wrong_overlap_is_refused(model: Transformer, start: Any) -> None:
    with pytest.raises(InvalidCanvasError, match="overlap is -1"):
        start(model).submit(replace(Request((1, 2), 8, canvas_lengths=(8,)), overlap=-1))
