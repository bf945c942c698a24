"""Which positions a step reveals, which tokens it takes, and how sure it is of them."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from tests.engine.conftest import Ask
from torch import Tensor

from calomel.engine import SamplingParams
from calomel.engine.errors import InvalidRequestError
from calomel.engine.policies import LeftToRight, Paced, RevealPolicy, parse_policy
from calomel.engine.sampling import Choice, Counts, Draw, choose, count_tokens, penalise, sample


def policy(text: str) -> RevealPolicy:
    found = parse_policy(text)
    assert not isinstance(found, LeftToRight | Paced)
    return found


@pytest.mark.parametrize(
    ("text", "told", "hidden", "revealed"),
    [
        ("threshold:0.9", [0.95, 0.5, 0.9, 0.89], [], [0, 2]),
        ("threshold", [0.2, 0.5, 0.4, 0.1], [], [1]),
        ("prefix:0.9", [0.1, 0.95, 0.9, 0.89], [], [0, 1, 2]),
        ("prefix", [0.1, 0.2, 0.95, 0.95], [], [0]),
        ("prefix:0.9", [0.1, 0.2, 0.1, 0.95], [0, 2], [1, 3]),
        ("fixed:2", [0.1, 0.3, 0.2, 0.05], [], [1, 2]),
        ("fixed:9", [0.1, 0.3, 0.2, 0.05], [], [0, 1, 2, 3]),
        *((each, [0.5] * 4, [0, 1, 2, 3], []) for each in ("threshold:0", "fixed:3", "prefix:0")),
    ],
)
def test_a_policy_reveals_what_it_says_of_the_masked_positions(
    text: str, told: list[float], hidden: list[int], revealed: list[int]
) -> None:
    candidates = torch.tensor([[place not in hidden for place in range(4)]])

    chosen = policy(text)(torch.tensor([told]), candidates)

    assert chosen[0].nonzero()[:, 0].tolist() == revealed


@settings(deadline=None)
@given(
    st.sampled_from(["threshold:0.7", "fixed:2", "prefix:0.6"]),
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=6, max_size=6),
)
def test_every_canvas_makes_progress_and_is_decided_alone(name: str, positions: list[tuple[float, bool]]) -> None:
    confidence, candidates = (torch.tensor(each) for each in zip(*positions, strict=True))
    batch = policy(name)(
        torch.stack((confidence, confidence.flip(0))), torch.stack((candidates, torch.ones_like(candidates)))
    )

    alone = policy(name)(confidence[None], candidates[None])
    assert torch.equal(batch[:1], alone)
    assert bool(alone.any()) == bool(candidates.any())
    assert not (alone[0] & ~candidates).any()


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


def draw(logits: list[list[float]], *draws: Draw) -> Choice:
    """With vocabulary entry 0 as the mask token and 1 as the end token."""
    return choose(torch.tensor(logits), draws, mask_token_id=0, end_token_ids=(1,))


def test_the_most_probable_token_is_taken_and_of_equal_ones_the_lower_id() -> None:
    assert draw([[9.0, 1.0, 2.0, 3.0, 3.0], [9.0, 1.0, 1.0, 1.0, 1.0]]).token.tolist() == [3, 1]


def test_confidence_and_entropy_leave_out_the_mask_token() -> None:
    choice = draw([[50.0, 0.0, 0.0, 0.0, 0.0]])

    assert choice.log_prob.tolist() == pytest.approx([math.log(0.25)])
    assert choice.entropy.tolist() == pytest.approx([math.log(4)])


def test_the_end_is_left_out_where_it_must_not_come_and_a_forced_token_has_its_own_probability() -> None:
    assert draw(
        [[0.0, 5.0, 1.0, 2.0], [0.0, 5.0, 1.0, 2.0]], Draw(0, 2, SamplingParams(), without_end=[1])
    ).token.tolist() == [1, 3]
    forced = draw([[0.0, 0.0, 0.0, math.log(2)]], Draw(0, 1, SamplingParams(), forced={0: 2}))
    assert forced.token.tolist() == [2]
    assert forced.log_prob.tolist() == pytest.approx([math.log(0.25)])


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
    counts = Counts(torch.tensor([[0.0, 2.0, 1.0, 0.0]]), torch.tensor([[False, True, True, True]]))
    logits = torch.tensor([[1.0, 1.0, -1.0, 2.0]])

    for params, expected in (
        (SamplingParams(frequency_penalty=0.5), [1.0, 0.0, -1.5, 2.0]),
        (SamplingParams(presence_penalty=0.5), [1.0, 0.5, -1.5, 2.0]),
        (SamplingParams(repetition_penalty=2.0), [1.0, 0.5, -2.0, 1.0]),
    ):
        assert penalise(logits, params, counts)[0].tolist() == pytest.approx(expected)


def test_penalties_reach_the_rows_of_their_request_alone() -> None:
    counts = count_tokens(torch.zeros(4, dtype=torch.bool), [3], [], 1)
    penalised = Draw(0, 1, SamplingParams(presence_penalty=5.0), counts=counts)

    assert draw([[0.0, 0.0, 1.0, 2.0]] * 2, penalised, Draw(1, 2, SamplingParams())).token.tolist() == [2, 3]


@pytest.mark.parametrize("temperature", [1e-39, 1e-300, 5e-324])
def test_a_temperature_that_nothing_can_be_divided_by_is_that_of_the_best_token(ask: Ask, temperature: float) -> None:
    best, cold = (ask(max_new_tokens=8, canvas_length=8, sampling=SamplingParams(each)) for each in (0.0, temperature))
    assert (cold.ids, cold.log_probs) == (best.ids, best.log_probs)
