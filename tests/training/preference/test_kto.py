from __future__ import annotations

import math

import pytest
import torch

from calomel.prompts.parts import PromptParts
from calomel.training.preference.balance import balance
from calomel.training.preference.kto import figures, losses
from calomel.training.preference.preference import Preference


def test_the_loss_pulls_desirable_answers_up_and_pushes_the_others_down() -> None:
    rewards = torch.zeros(2, requires_grad=True)
    losses(rewards, torch.tensor([True, False]), torch.ones(2), 0.0, 0.1).sum().backward()
    assert rewards.grad is not None
    # Half of the slope at the origin: beta / 4.
    assert rewards.grad.tolist() == pytest.approx([-0.025, 0.025])


def test_an_answer_far_from_the_origin_teaches_hardly_anything() -> None:
    rewards = torch.tensor([0.0, 100.0], requires_grad=True)
    losses(rewards, torch.tensor([True, True]), torch.ones(2), 0.0, 0.1).sum().backward()
    assert rewards.grad is not None
    assert abs(rewards.grad[1]) < abs(rewards.grad[0]) / 500


def test_the_loss_is_measured_from_the_mean_reward() -> None:
    rewards = torch.tensor([5.0, 3.0])
    desirable = torch.tensor([True, False])
    near, far = (losses(rewards, desirable, torch.ones(2), origin, 1.0).sum() for origin in (4.0, 10.0))
    assert near < far


def test_saturation_is_counted() -> None:
    found = figures(torch.tensor([-140.0, 0.0, 140.0]), torch.tensor([False, True, True]), 0.05)
    assert found.over_6 == pytest.approx(2 / 3)
    assert found.over_8 == 0.0
    assert (found.desirable, found.undesirable, found.margin) == (70.0, -140.0, 210.0)
    assert found.reach == pytest.approx(14 / 3)


def test_a_batch_of_one_side_has_no_margin() -> None:
    assert math.isnan(figures(torch.tensor([1.0]), torch.tensor([True]), 0.1).margin)


def some(desirable: int, undesirable: int) -> list[Preference]:
    sides = [True] * desirable + [False] * undesirable
    return [Preference(PromptParts(), "fill", "x", desirable=side) for side in sides]


@pytest.mark.parametrize(("taken", "rejected"), [(10, 90), (50, 50), (90, 10)])
def test_without_numbers_from_people_both_sides_weigh_about_the_same(taken: int, rejected: int) -> None:
    found = balance(some(taken, rejected), None, None)
    assert found.ratio == pytest.approx(7 / 6)
    assert found.warning is None
    assert max(found.desirable, found.undesirable) < 1.2


def test_weights_out_of_balance_are_said_to_be() -> None:
    found = balance(some(10, 90), 1.0, 1.0)
    assert found.ratio == pytest.approx(1 / 9)
    assert "0.11 times" in (found.warning or "")
    assert balance(some(10, 90), 12.0, 1.0).ratio == pytest.approx(4 / 3)
    assert balance(some(10, 90), None, 1.0).warning is None
    assert balance(some(10, 90), 3.0, None).warning is None
