"""Which positions a step reveals, which tokens it takes, and how sure it is of them."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from tests.engine.conftest import Ask
from torch import Tensor

from calomel.engine import SamplingParams
from calomel.engine.errors import InvalidRequestError
from calomel.engine.policies import LeftToRight, Paced, RevealPolicy, parse_policy
from calomel.engine.sampling import LOWEST, Told, count_tokens, penalise, sample, tell


def policy(text: str) -> RevealPolicy:
    found = parse_policy(text)
    assert not isinstance(found, LeftToRight | Paced)
    return found


@pytest.mark.parametrize(
    ("text", "told", "revealed"),
    [
        ("threshold:0.9", [0.95, 0.5, 0.9, 0.89], [0, 2]),
        ("threshold", [0.2, 0.5, 0.4, 0.1], [1]),
        ("prefix:0.9", [0.1, 0.95, 0.9, 0.89], [0, 1, 2]),
        ("prefix", [0.1, 0.2, 0.95, 0.95], [0]),
        ("fixed:2", [0.1, 0.3, 0.2, 0.05], [1, 2]),
        ("fixed:9", [0.1, 0.3, 0.2, 0.05], [0, 1, 2, 3]),
        *((each, [], []) for each in ("threshold:0", "fixed:3", "prefix:0")),
    ],
)
def test_a_policy_reveals_what_it_says_of_the_masked_positions(
    text: str, told: list[float], revealed: list[int]
) -> None:
    assert sorted(policy(text)(told)) == revealed


@settings(deadline=None)
@given(st.sampled_from(["threshold:0.7", "fixed:2", "prefix:0.6"]), st.lists(st.floats(0, 1), max_size=6))
def test_every_step_makes_progress_while_there_is_any(name: str, told: list[float]) -> None:
    revealed = policy(name)(told)

    assert bool(revealed) == bool(told)
    assert set(revealed) <= set(range(len(told)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown policy ''; known: threshold:P"),
        ("greedy", "unknown policy 'greedy'"),
        ("left_to_right:0", "between 1.0 and inf"),
        ("prefix:0.9/0", "between 1.0 and inf"),
        ("threshold:x", "'x' is not a number"),
        ("threshold:1.5", "between 0.0 and 1.0"),
        ("threshold:nan", "not a finite number"),
        ("fixed:0", "between 1.0 and inf"),
        ("fixed:1.5", "whole number"),
        ("low_confidence:1.5", "whole number"),
        ("low_confidence_dynamic:2", "between 0.0 and 1.0"),
        ("low_confidence_dynamic:0.5/0", "between 1.0 and inf"),
        ("joint:2", "policy 'joint"),
        ("joint:0.5/x", "policy 'joint"),
        ("joint:0.5/0.5/0.5", "policy 'joint"),
    ],
)
def test_a_wrong_policy_is_explained(text: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        parse_policy(text)


def told(logits: list[list[float]], forced: int = -1) -> Told:
    return Told.of(tell(torch.tensor(logits), torch.full((len(logits),), forced)))


def test_the_most_probable_token_is_taken_and_of_equal_ones_the_lower_id() -> None:
    assert told([[1.0, 2.0, 3.0, 3.0], [1.0, 1.0, 1.0, 1.0]]).tokens == [2, 0]


def test_what_is_left_out_has_no_part_in_confidence_and_entropy() -> None:
    found = told([[LOWEST, 0.0, 0.0, 0.0, 0.0]])

    assert found.log_probs == pytest.approx([math.log(0.25)])
    assert found.confidences == pytest.approx([0.25])
    assert found.entropies == pytest.approx([math.log(4)])


def test_a_forced_token_has_its_own_probability() -> None:
    found = told([[0.0, 0.0, 0.0, math.log(2)]], forced=2)

    assert found.tokens == [2]
    assert found.log_probs == pytest.approx([math.log(0.2)])


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (SamplingParams(1.0), [0.5, 0.3, 0.15, 0.05]),
        (SamplingParams(0.5), [0.25 / 0.365, 0.09 / 0.365, 0.0225 / 0.365, 0.0025 / 0.365]),
        (SamplingParams(1.0, top_k=2), [0.625, 0.375, 0.0, 0.0]),
        (SamplingParams(1.0, top_p=0.7), [0.625, 0.375, 0.0, 0.0]),
        (SamplingParams(1.0, top_p=0.01), [1.0, 0.0, 0.0, 0.0]),
    ],
    ids=["as it is", "sharpened", "the best k", "the smallest set", "one"],
)
def test_samples_follow_the_distribution(params: SamplingParams, expected: list[float]) -> None:
    rows = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().expand(4000, -1)

    drawn = sample(rows, params, torch.Generator().manual_seed(0))

    found: Tensor = torch.bincount(drawn, minlength=4) / 4000
    torch.testing.assert_close(found, torch.tensor(expected), atol=0.03, rtol=0)
    assert ((found > 0) == (torch.tensor(expected) > 0)).all()


def test_penalties_change_the_tokens_that_were_there() -> None:
    counts = count_tokens(np.array([1, 3]), [2, 1, 1], [], 1)

    for params, expected in (
        (SamplingParams(frequency_penalty=0.5), [1.0, 0.0, -1.5, 2.0]),
        (SamplingParams(presence_penalty=0.5), [1.0, 0.5, -1.5, 2.0]),
        (SamplingParams(repetition_penalty=2.0), [1.0, 0.5, -2.0, 1.0]),
    ):
        logits = torch.tensor([[1.0, 1.0, -1.0, 2.0]])
        assert penalise(logits, params, counts)[0].tolist() == pytest.approx(expected)


def test_each_row_of_a_draft_counts_the_drafted_tokens_before_it() -> None:
    counts = count_tokens(np.array([], dtype=np.int64), [0], [1, 1, 2], 3)

    found = penalise(torch.zeros(3, 4), SamplingParams(frequency_penalty=1.0), counts)

    assert found.tolist() == [[-1, 0, 0, 0], [-1, -1, 0, 0], [-1, -2, 0, 0]]


@pytest.mark.parametrize("temperature", [1e-39, 1e-300, 5e-324])
def test_a_temperature_that_nothing_can_be_divided_by_is_that_of_the_best_token(ask: Ask, temperature: float) -> None:
    best, cold = (ask(max_new_tokens=8, canvas_length=8, sampling=SamplingParams(each)) for each in (0.0, temperature))
    assert (cold.ids, cold.log_probs) == (best.ids, best.log_probs)
