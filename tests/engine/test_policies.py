from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from calomel.engine.errors import UnknownPolicyError
from calomel.engine.policies import (
    EntropyBound,
    Fixed,
    Joint,
    Paced,
    Prefix,
    RevealPolicy,
    Threshold,
    parse_policy,
)

ALL = torch.ones(1, 4, dtype=torch.bool)


def select(
    policy: RevealPolicy, confidence: list[float], candidates: Tensor = ALL, entropy: list[float] | None = None
) -> list[int]:
    chosen = policy(torch.tensor([confidence]), torch.tensor([entropy or confidence]), candidates)
    return [int(index) for index in chosen[0].nonzero()[:, 0]]


def test_threshold_reveals_what_reaches_it() -> None:
    assert select(Threshold(0.9), [0.95, 0.5, 0.9, 0.89]) == [0, 2]


def test_threshold_reveals_the_best_when_none_reaches_it() -> None:
    assert select(Threshold(0.9), [0.2, 0.5, 0.4, 0.1]) == [1]


def test_prefix_reveals_the_first_masked_position_and_the_sure_ones_behind_it() -> None:
    assert select(Prefix(0.9), [0.1, 0.95, 0.9, 0.89]) == [0, 1, 2]
    assert select(Prefix(0.9), [0.1, 0.2, 0.95, 0.95]) == [0]
    assert select(Prefix(0.9), [0.99] * 4) == [0, 1, 2, 3]


def test_prefix_goes_on_behind_what_is_revealed() -> None:
    candidates = torch.tensor([[False, True, False, True, True]])
    assert select(Prefix(0.9), [0.1, 0.2, 0.1, 0.95, 0.5], candidates) == [1, 3]


def test_entropy_bound_sums_the_entropies_before_each() -> None:
    # in order: 0.02, 0.05, 0.06, 0.3; sums before them: 0, 0.02, 0.07, 0.13
    entropy = [0.06, 0.02, 0.3, 0.05]
    assert select(EntropyBound(0.1), [0.0] * 4, entropy=entropy) == [0, 1, 3]
    assert select(EntropyBound(0.06), [0.0] * 4, entropy=entropy) == [1, 3]
    assert select(EntropyBound(0.0), [0.0] * 4, entropy=entropy) == [1]


def test_fixed_reveals_the_most_confident() -> None:
    assert select(Fixed(2), [0.1, 0.3, 0.2, 0.05]) == [1, 2]
    assert select(Fixed(9), [0.1, 0.3, 0.2, 0.05]) == [0, 1, 2, 3]


@pytest.mark.parametrize("policy", [Threshold(0.9), EntropyBound(0.1), Fixed(3), Prefix(0.9)], ids=repr)
def test_only_candidates_are_revealed(policy: RevealPolicy) -> None:
    candidates = torch.tensor([[False, True, False, False]])
    assert select(policy, [0.99, 0.01, 0.99, 0.99], candidates, entropy=[0.0, 5.0, 0.0, 0.0]) == [1]
    assert select(policy, [0.99] * 4, torch.zeros_like(candidates), entropy=[0.0] * 4) == []


@settings(deadline=None)
@given(
    st.sampled_from(["threshold:0.7", "entropy_bound:0.2", "fixed:2", "prefix:0.6"]),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 4), st.booleans()), min_size=6, max_size=6),
)
def test_every_canvas_makes_progress_and_is_decided_alone(
    name: str, positions: list[tuple[float, float, bool]]
) -> None:
    policy = parse_policy(name)
    assert policy is not None
    assert not isinstance(policy, Paced)
    confidence, entropy = (torch.tensor([each[index] for each in positions]) for index in (0, 1))
    candidates = torch.tensor([each[2] for each in positions])
    batch = policy(
        torch.stack((confidence, confidence.flip(0))),
        torch.stack((entropy, entropy.flip(0))),
        torch.stack((candidates, torch.ones_like(candidates))),
    )

    alone = policy(confidence[None], entropy[None], candidates[None])
    assert torch.equal(batch[:1], alone)
    assert bool(alone.any()) == bool(candidates.any())
    assert not (alone[0] & ~candidates).any()


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("threshold:0.5", Threshold(0.5)),
        ("threshold", Threshold(0.9)),
        ("prefix:0.8", Prefix(0.8)),
        ("entropy_bound:0.3", EntropyBound(0.3)),
        ("fixed:4", Fixed(4)),
        ("left_to_right", None),
    ],
)
def test_policies_are_read_by_name(text: str, policy: RevealPolicy | None) -> None:
    assert parse_policy(text) == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown policy ''; there are threshold:P"),
        ("greedy", "unknown policy 'greedy'"),
        ("threshold:x", "'x' is not a number"),
        ("threshold:1.5", "between 0.0 and 1.0"),
        ("threshold:nan", "not a finite number"),
        ("entropy_bound:-1", "between 0.0 and inf"),
        ("fixed:0", "between 1.0 and inf"),
        ("fixed:1.5", "whole number"),
        ("verified", "unknown policy 'verified'"),
        ("left_to_right:0", "between 1.0 and inf"),
    ],
)
def test_a_wrong_policy_is_explained(text: str, message: str) -> None:
    with pytest.raises(UnknownPolicyError, match=message):
        parse_policy(text)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("joint", Joint()),
        ("joint:0.7", Joint(0.7)),
        ("joint:0.7/0.5", Joint(0.7, 0.5)),
        ("joint:0.7/0/3", Joint(0.7, 0.0, 3)),
    ],
)
def test_the_three_numbers_of_the_joint_threshold_are_read(text: str, policy: Joint) -> None:
    assert parse_policy(text) == policy


@pytest.mark.parametrize("text", ["joint:2", "joint:0.5/x", "joint:0.5/0.5/0.5"])
def test_a_wrong_number_of_the_joint_threshold_is_named(text: str) -> None:
    with pytest.raises(UnknownPolicyError, match="policy 'joint"):
        parse_policy(text)
