"""From what became of suggestions to preferences, their balance, and the loss of rewards."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from calomel.prompts.parts import EditRegion, PromptParts
from calomel.training.alignment.data import AlignmentError, Judged, Preference, balance, check_enough, preferences_of
from calomel.training.alignment.loss import figures, losses

HOLE = PromptParts(prefix="total = ", suffix="\n")
REGION = PromptParts(prefix="a\n", region=EditRegion("b = 1\n", 0))
TAKEN = Judged(HOLE, "fill", "sum(values)", "accepted", group="g", max_context=512)


def taught(*judged: Judged) -> list[tuple[str, bool, float]]:
    return [(each.answer, each.desirable, each.weight) for each in preferences_of(judged)]


def test_what_was_taken_is_desirable_and_silence_in_its_place_is_not() -> None:
    assert taught(TAKEN) == [("sum(values)", True, 1.0), ("", False, 0.5)]


def test_where_a_suggestion_was_rejected_silence_and_what_the_person_wrote_are_desirable() -> None:
    rejected = Judged(REGION, "edit", "b = 2\n", "rejected", wanted="b = 3\n")
    assert taught(rejected) == [("b = 2\n", False, 1.0), ("b = 1\n", True, 0.5), ("b = 3\n", True, 0.5)]


@pytest.mark.parametrize("wanted", [None, "", "zero"])
def test_writing_nothing_or_the_same_is_no_further_lesson(wanted: str | None) -> None:
    rejected = replace(TAKEN, answer="zero", fate="rejected", wanted=wanted)
    assert [answer for answer, _, _ in taught(rejected)] == ["zero", ""]


def test_silence_is_wrong_where_one_of_several_suggestions_was_right() -> None:
    rejected = replace(TAKEN, answer="None", fate="rejected", wanted="sum(values)")
    assert taught(rejected, TAKEN) == [("None", False, 1.0), ("sum(values)", True, 1.0), ("", False, 0.5)]


def test_a_part_that_was_taken_counts_less() -> None:
    assert taught(replace(TAKEN, fate="partly")) == [("sum(values)", True, 0.5), ("", False, 0.25)]


def test_who_only_did_nothing_counts_less() -> None:
    ignored = replace(TAKEN, fate="rejected", certainty=0.5)
    assert taught(ignored) == [("sum(values)", False, 0.5), ("", True, 0.25)]


def test_a_suggestion_to_do_nothing_teaches_nothing() -> None:
    assert taught(Judged(REGION, "edit", "b = 1\n", "rejected")) == []


def test_the_question_goes_along() -> None:
    found = list(preferences_of([TAKEN]))
    assert {(each.parts, each.kind, each.group, each.max_context) for each in found} == {(HOLE, "fill", "g", 512)}


def test_too_few_suggestions_are_refused_with_numbers() -> None:
    rejected = replace(TAKEN, fate="rejected")
    with pytest.raises(AlignmentError, match="239 judged suggestions with text, 200 of them taken and 39 rejected; "):
        check_enough([TAKEN] * 200 + [rejected] * 39)
    with pytest.raises(AlignmentError, match="alignment needs 200, of either kind 40"):
        check_enough([TAKEN] * 159 + [rejected] * 40)
    check_enough([TAKEN] * 160 + [rejected] * 40)


def test_the_loss_pulls_desirable_answers_up_and_pushes_the_others_down() -> None:
    rewards = torch.zeros(2, requires_grad=True)
    losses(rewards, torch.tensor([True, False]), torch.ones(2), torch.zeros(1), 0.1).sum().backward()
    assert rewards.grad is not None
    # Half of the slope at the origin: beta / 4.
    assert rewards.grad.tolist() == pytest.approx([-0.025, 0.025])


def test_an_answer_far_from_the_origin_teaches_hardly_anything() -> None:
    rewards = torch.tensor([0.0, 100.0], requires_grad=True)
    losses(rewards, torch.tensor([True, True]), torch.ones(2), torch.zeros(1), 0.1).sum().backward()
    assert rewards.grad is not None
    assert abs(rewards.grad[1]) < abs(rewards.grad[0]) / 500


def test_the_loss_is_measured_from_the_mean_reward() -> None:
    rewards = torch.tensor([5.0, 3.0])
    desirable = torch.tensor([True, False])
    near, far = (losses(rewards, desirable, torch.ones(2), torch.tensor([origin]), 1.0).sum() for origin in (4.0, 10.0))
    assert near < far


def test_saturation_is_counted() -> None:
    found = figures(torch.tensor([-140.0, 0.0, 140.0]), torch.tensor([False, True, True]), 0.05)
    assert found["over_6"] == pytest.approx(2 / 3)
    assert found["over_8"] == 0.0
    assert (found["desirable"], found["undesirable"], found["margin"]) == (70.0, -140.0, 210.0)


def test_a_batch_of_one_side_has_no_margin() -> None:
    assert math.isnan(figures(torch.tensor([1.0]), torch.tensor([True]), 0.1)["margin"])


@pytest.mark.parametrize(("taken", "rejected"), [(10, 90), (50, 50), (90, 10)])
def test_both_sides_weigh_about_the_same(taken: int, rejected: int) -> None:
    sides = [True] * taken + [False] * rejected
    wanted, unwanted = balance([Preference(PromptParts(), "fill", "x", desirable=side) for side in sides])
    assert wanted * taken / (unwanted * rejected) == pytest.approx(7 / 6)
    assert max(wanted, unwanted) < 1.2
