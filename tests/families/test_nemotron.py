"""Nemotron-Labs-Diffusion against Ministral of transformers, and its published loop over those logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.families.published import nemotron as published
from tests.families.published.block_causal import END, MASK
from tests.families.published.layout import prompt
from tests.families.reference import block_diffusion as loop
from tests.families.reference.dense import attend_under, class_logits
from tests.families.writers import shape_of
from torch import Tensor

from calomel.engine import Engine, Request
from calomel.engine.checkpoint import tensor_table
from calomel.families.adapted import NEMOTRON_NAMES
from calomel.families.family import OpenOptions
from calomel.families.loading import load_decoder, renamed
from calomel.families.table import find

ROOM, BLOCK = 40, 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published.write(tmp_path_factory.mktemp("published") / "it")


@pytest.fixture(scope="module")
def network() -> Any:
    return published.network()


def visible(size: int, start: int) -> Tensor:
    """[size, size]: causal, and from `start` on a block that sees all of itself."""
    place = torch.arange(size)
    return (place[:, None] >= place) | ((place[:, None] >= start) & (place >= start))


def test_logits_are_those_of_transformers(folder: Path, network: Any) -> None:
    config, ids = shape_of(folder), [*prompt(64), *[MASK] * BLOCK]
    model = load_decoder(folder, config, renamed(tensor_table(config), NEMOTRON_NAMES), dtype=torch.float32)

    for start in (64, 96):
        seen = visible(len(ids), start)
        with torch.inference_mode():
            actual = model.logits(model(torch.tensor(ids), torch.arange(len(ids)), attend_under(seen)))
        torch.testing.assert_close(actual, class_logits(network, ids, seen), atol=1e-4, rtol=1e-4)
    # Queries are scaled behind that.
    assert config.max_position_embeddings == 2048


def published_loop(network: Any, context: tuple[int, ...], threshold: float) -> loop.Trace:
    """`generate_with_prefix_cache_block_diff` with a causal context: what it has behind each forward."""
    ids, trace, order = list(context), loop.Trace([]), loop.above(threshold)
    while len(ids) - len(context) < ROOM and END not in ids[len(context) :]:
        start = len(ids)
        row = class_logits(network, ids, visible(start, start))[-1:].clone()
        row[:, MASK] = -torch.inf
        ids += [*loop.best(row), *[MASK] * (BLOCK - 1)]
        trace.steps.append(ids[len(context) :])
        while MASK in ids and ids[start] != END:
            rows = class_logits(network, ids, visible(len(ids), start))[start:].clone()
            rows[:, MASK] = -torch.inf
            masked = [place for place in range(BLOCK) if ids[start + place] == MASK]
            proposed = dict(zip(masked, loop.best(rows[masked]), strict=True))
            sure = rows.double().softmax(dim=-1).max(dim=-1).values
            for place in order(sure, sure, masked, 0, 0):
                ids[start + place] = proposed[place]
            trace.steps.append(ids[len(context) :])
    trace.tokens = ids[len(context) :]
    return trace


@pytest.mark.parametrize(("size", "threshold"), [(1, 0.2), (33, 0.2), (50, 0.9)])
def test_steps_are_those_of_the_published_loop(folder: Path, network: Any, size: int, threshold: float) -> None:
    trace = published_loop(network, prompt(size), threshold)

    with find(folder).open(folder, OpenOptions(dtype="float32", cache_tokens=1024)) as engine:
        assert isinstance(engine, Engine)
        asked = Request(
            prompt(size), ROOM, (BLOCK,), policy=f"threshold:{threshold}", max_steps=32, record_canvases=True
        )
        handles = [engine.submit(asked), engine.submit(asked)]
        answers = [handle.result(60).ids for handle in handles]
        states = [list(state.ids) for state in handles[0].states()]

    # The second one finds the context encoded.
    assert answers == [tuple(loop.answer(trace.tokens, ROOM, END))] * 2
    for ours, theirs in zip(states, trace.steps, strict=False):
        assert ours == theirs[: len(ours)]


def speculated(network: Any, context: tuple[int, ...]) -> tuple[list[int], int]:
    """`linear_spec_generate` without a cache: tokens, more than asked for, and its forwards."""

    def best(ids: list[int], start: int) -> list[int]:
        rows = class_logits(network, ids, visible(len(ids), start)).clone()
        rows[:, MASK] = -torch.inf
        return loop.best(rows)

    ids, forwards = [*context, best(list(context), len(context))[-1]], 1
    while len(ids) - len(context) < ROOM and END not in ids[len(context) :]:
        last = len(ids) - 1
        drafted = [*ids, *best([*ids, *[MASK] * (BLOCK - 1)], last)[last + 1 :]]
        said = best(drafted, len(drafted))[last:]
        agreed = next((at for at in range(BLOCK - 1) if said[at] != drafted[last + 1 + at]), BLOCK - 1)
        ids, forwards = [*ids, *said[: agreed + 1]], forwards + 2
    return ids[len(context) :], forwards


# (how much all tokens have in common, tokens of the context, forwards for 40 tokens)
@pytest.mark.parametrize(("common", "size", "most"), [(0.0, 33, 77), (0.3, 1, 7), (0.3, 33, 49), (0.5, 50, 15)])
def test_drafts_that_it_denoises_and_verifies_are_those_of_the_published_loop_and_change_no_token(
    common: float, size: int, most: int, tmp_path: Path
) -> None:
    folder, network, greedy = published.write(tmp_path, common), published.network(common), list(prompt(size))
    while len(greedy) - size < ROOM and END not in greedy[size:]:
        row = class_logits(network, greedy, visible(len(greedy), len(greedy)))[-1:].clone()
        row[:, MASK] = -torch.inf
        greedy += loop.best(row)
    tokens, forwards = speculated(network, prompt(size))

    with find(folder).open(folder, OpenOptions(dtype="float32", cache_tokens=1024)) as engine:
        asked = [Request(prompt(size), ROOM, policy=policy) for policy in ("left_to_right", "left_to_right:10")]
        found, ahead = (engine.submit(each).result(60) for each in asked)

    assert list(found.ids) == list(ahead.ids) == loop.answer(tokens, ROOM, END) == greedy[size:]
    # The published loop denoises one more draft, for the two last tokens.
    assert forwards - 2 <= found.forwards <= min(forwards, most)


def test_given_texts_are_judged_by_the_causal_mode(folder: Path, network: Any) -> None:
    context = prompt(60)
    logits = class_logits(network, list(context), visible(60, 60)).clone()
    logits[:, MASK] = -torch.inf
    expected = logits.log_softmax(-1)[39:-1].gather(-1, torch.tensor(context[40:])[:, None])[:, 0]

    with find(folder).open(folder, OpenOptions(dtype="float32", cache_tokens=1024)) as engine:
        judged = engine.submit(Request(context[:40], given=context[40:])).result(60)

    torch.testing.assert_close(torch.tensor(judged.log_probs), expected, atol=1e-4, rtol=1e-4)
