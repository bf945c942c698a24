from __future__ import annotations

import pytest

from calomel.replay.metrics.selectivity import aurc, auroc, excess_aurc, expected_utility, precision_coverage


def test_a_confidence_that_ranks_perfectly_has_an_auroc_of_1() -> None:
    assert auroc([0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0]) == 1.0


def test_equal_confidences_count_half() -> None:
    # Pairs (taken, not): (.5, .5) half, (.5, .1) one, (.9, .5) one, (.9, .1) one: 3.5 of 4.
    assert auroc([0.5, 0.9, 0.5, 0.1], [1, 1, 0, 0]) == pytest.approx(3.5 / 4)


def test_without_both_outcomes_there_is_no_auroc() -> None:
    assert auroc([0.5, 0.6], [1, 1]) is None
    assert auroc([], []) is None


def test_aurc_is_the_mean_risk_of_the_surest_k() -> None:
    # Risks of the 1, 2, 3, 4 surest: 0, 1/2, 1/3, 1/2.
    assert aurc([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0]) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)


def test_the_order_of_equally_sure_suggestions_decides_nothing() -> None:
    assert aurc([0.5, 0.5], [1, 0]) == aurc([0.5, 0.5], [0, 1]) == pytest.approx(0.5)


def test_the_best_order_has_no_excess() -> None:
    assert excess_aurc([0.9, 0.8, 0.1], [1, 1, 0]) == pytest.approx(0.0)
    assert excess_aurc([0.1, 0.2, 0.9], [1, 1, 0]) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3 - (1 / 3) / 3)


def test_the_curve_has_a_point_for_each_confidence() -> None:
    assert precision_coverage([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0]) == [
        (0.25, 1.0, 0.9),
        (0.75, pytest.approx(2 / 3), 0.5),
        (1.0, 0.5, 0.1),
    ]


def test_utility_pays_for_what_is_taken_and_costs_for_the_rest() -> None:
    assert expected_utility([1, 0, 0], 0.25) == pytest.approx(0.75 - 0.5)
