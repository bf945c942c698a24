from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calomel.prompts.fim import assemble_front, assemble_tail, split_suffix
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.branch import CANVAS, CAUSAL, FILL, KEPT, REST, Example, head_rows, rows
from calomel.training.config import BatchShape, HoleMix, TrainConfig
from calomel.training.documents import Document
from calomel.training.example import ExampleMaker
from calomel.training.holes import Hole, cut

SHAPE = BatchShape(documents=1, front=128, holes=4, canvas=16)


def make(config: TrainConfig, tokenizer: Tokenizer, document: Document, seed: int) -> Example:
    return ExampleMaker(tokenizer, config).make(document, SHAPE, 0.3, random.Random(seed))


def branch(example: Example, index: int) -> slice:
    start = SHAPE.front + index * rows(SHAPE)
    return slice(start, start + rows(SHAPE))


def test_front_and_branch_have_the_ids_that_a_live_prompt_of_the_same_text_has(
    config: TrainConfig, tokenizer: Tokenizer, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(config, far_suffix_share=0.0, path_share=0.0, gap_share=0.0, holes=HoleMix(aligned=0.0))
    text = documents[0].text
    holes: list[Hole] = []

    def remember(*arguments: Any) -> Hole:
        holes.append(cut(*arguments))
        return holes[-1]

    monkeypatch.setattr("calomel.training.example.cut", remember)
    checked = 0
    for seed in range(20):
        holes.clear()
        example = make(config, tokenizer, documents[0], seed)
        begin = text.find(tokenizer.decode(example.ids[1 : SHAPE.front - 20].tolist()))
        for index, hole in enumerate(holes):
            part = branch(example, index)
            prefix = text[begin : hole.start]
            if len(tokenizer.encode(prefix[tokenizer.boundary(prefix) :])) > REST:
                continue  # deeper inside a pre-token than a branch has room for: moved to its start
            near, _ = split_suffix(text[hole.end :], tokenizer)
            live = assemble_front((), (), tokenizer.encode(prefix), tokenizer) + assemble_tail((), near, tokenizer)
            head = example.ids[part][: head_rows(SHAPE)][example.valid[part][: head_rows(SHAPE)]]

            assert [*example.ids[: example.limit[part][0]], *head] == live
            checked += 1
    assert checked > 60


def test_the_clean_answer_is_never_in_a_fully_masked_canvas(
    config: TrainConfig, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    seen = 0
    for seed in range(30):
        example = make(config, tokenizer, documents[seed % 10], seed)
        for index in range(SHAPE.holes):
            start = branch(example, index).start + head_rows(SHAPE) + SHAPE.canvas
            for canvas in (slice(start, start + 16), slice(start + 16, start + 32)):
                masked = example.ids[canvas] == tokenizer.mask
                answers = example.groups[canvas] == CANVAS
                seen += int((masked & answers).sum())
                assert (example.targets[canvas][masked & answers] != tokenizer.mask).all()
                kept = example.groups[canvas] == KEPT
                assert (example.ids[canvas][kept] == example.targets[canvas][kept]).all()
    assert seen > 300


def test_every_answer_token_is_masked_in_one_of_the_two_canvases_or_in_the_first(
    config: TrainConfig, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    for seed in range(10):
        example = make(config, tokenizer, documents[seed], seed)
        for index in range(SHAPE.holes):
            start = branch(example, index).start + head_rows(SHAPE) + SHAPE.canvas
            first, second = slice(start, start + 16), slice(start + 16, start + 32)
            answer = example.valid[first] & (example.targets[first] != tokenizer.end)
            masked = (example.ids[first] == tokenizer.mask) | (example.ids[second] == tokenizer.mask)
            assert masked[answer].all()


def test_beginnings_of_an_answer_are_shown_and_the_rest_is_hidden(
    config: TrainConfig, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    config = replace(config, beginnings=1.0, losses=replace(config.losses, corruption=0.0))
    shown = set()
    for seed in range(20):
        example = make(config, tokenizer, documents[seed % 10], seed)
        for index in range(SHAPE.holes):
            start = branch(example, index).start + head_rows(SHAPE) + SHAPE.canvas
            pair = [slice(start, start + 16), slice(start + 16, start + 32)]
            known = [(example.groups[part] == KEPT) & (example.weights[part] > 0) for part in pair]
            for part, told in zip(pair, known, strict=True):
                count = int(told.sum())
                assert told[:count].all()
                hidden = (example.ids[part] == tokenizer.mask) & (example.targets[part] != tokenizer.end)
                assert not hidden[:count].any()
                answer = int((example.valid[part] & (example.targets[part] != tokenizer.end)).sum())
                shown.add((count, answer))
    assert len({count for count, _ in shown}) > 6
    assert any(count == answer > 0 for count, answer in shown)  # the end alone is to be found


def test_what_follows_the_end_is_always_masked_and_counted_apart(
    config: TrainConfig, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    lengths = set()
    for seed in range(20):
        example = make(config, tokenizer, documents[seed % 10], seed)
        fill = example.groups == FILL
        fill &= example.weights > 0
        assert (example.ids[fill] == tokenizer.mask).all()
        assert (example.targets[fill] == tokenizer.end).all()
        for index in range(SHAPE.holes):
            start = branch(example, index).start + head_rows(SHAPE) + SHAPE.canvas
            lengths.add(int(example.valid[start : start + 16].sum()))
    assert len(lengths) > 5


def test_the_middle_mark_predicts_the_first_token_of_the_answer(
    config: TrainConfig, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    example = make(config, tokenizer, documents[1], 5)
    for index in range(SHAPE.holes):
        last = branch(example, index).start + head_rows(SHAPE) - 1
        assert example.ids[last] == tokenizer.middle
        assert example.groups[last] == CAUSAL
        answer = example.ids[last + 1] if example.valid[last + 1] else tokenizer.end
        assert example.targets[last] == answer


def test_shifted_canvases_start_with_the_middle_mark_at_its_own_position(
    config: TrainConfig, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    plain = make(config, tokenizer, documents[1], 5)
    shifted = make(replace(config, model=replace(config.model, logit_shift=True)), tokenizer, documents[1], 5)

    for index in range(SHAPE.holes):
        start = branch(plain, index).start + head_rows(SHAPE) + SHAPE.canvas
        size = int(plain.valid[start : start + 16].sum())
        assert shifted.ids[start] == tokenizer.middle
        assert shifted.positions[start] == shifted.positions[start - SHAPE.canvas - 1]
        assert (shifted.ids[start + 1 : start + size] == plain.ids[start : start + size - 1]).all()
        assert (shifted.targets[start : start + 16] == plain.targets[start : start + 16]).all()


def test_positions_reach_the_whole_range_and_never_leave_it(
    config: TrainConfig, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    config = replace(config, gap_share=1.0)
    highest = [int(make(config, tokenizer, documents[seed % 10], seed).positions.max()) for seed in range(200)]

    assert max(highest) < config.model.max_position_embeddings
    assert max(highest) > 20_000
    assert np.median(highest) < 5_000


def test_holes_lie_in_their_range_and_have_the_kinds_that_were_asked_for(documents: list[Document]) -> None:
    rng = random.Random(3)
    text = documents[0].text
    kinds = {kind for kind in HoleMix.__slots__ if kind != "aligned"}
    found = set()
    for _ in range(400):
        hole = cut(text, 100, 1200, HoleMix(), rng)
        found.add(hole.kind)
        assert 100 <= hole.start < 1200
        assert hole.start <= hole.end <= len(text)
        if hole.kind == "rest_of_line":
            assert "\n" not in text[hole.start : hole.end]
        if hole.kind == "inside_token":
            assert text[hole.start : hole.end].isidentifier() or text[hole.start : hole.end].isalnum()
    assert found == kinds
