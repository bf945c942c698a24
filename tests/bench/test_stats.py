from __future__ import annotations

import pytest

from calomel.report.stats import (
    percentile,
    percentile_interval,
    ratio_of_ratios,
    ratio_of_sums,
    wilson,
)


def test_wilson_gives_the_published_bounds() -> None:
    # Newcombe 1998, table I, method 3: 81 of 263.
    interval = wilson(81, 263)
    assert interval is not None
    assert (interval.value, interval.low, interval.high) == pytest.approx((0.3080, 0.2553, 0.3662), abs=5e-5)


@pytest.mark.parametrize(("successes", "bounds"), [(0, (0.0, 0.0, 0.2775)), (10, (1.0, 0.7225, 1.0))])
def test_wilson_stays_inside_zero_and_one(successes: int, bounds: tuple[float, float, float]) -> None:
    interval = wilson(successes, 10)
    assert interval is not None
    assert (interval.value, interval.low, interval.high) == pytest.approx(bounds, abs=5e-5)


def test_nothing_observed_gives_no_interval() -> None:
    found = (wilson(0, 0), percentile([], 50), percentile_interval([], 50))
    assert found == (None, None, None)


def test_percentile_lies_between_neighbours() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.5


def test_ratio_is_of_the_sums_and_not_the_mean_of_ratios() -> None:
    interval = ratio_of_sums([1.0, 9.0], [1.0, 1.0])
    assert interval is not None
    assert interval.value == 5.0
    assert (interval.low, interval.high) == (1.0, 9.0)


def test_ratio_over_nothing_is_none() -> None:
    assert ratio_of_sums([1.0], [0.0]) is None


def test_a_ratio_of_ratios_resamples_both_alike() -> None:
    # Every item has the same ratio of ratios, and so has every sample of them.
    interval = ratio_of_ratios(([1.0, 4.0], [2.0, 8.0]), ([3.0, 12.0], [2.0, 8.0]))
    assert interval is not None
    assert (interval.value, interval.low, interval.high) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert ratio_of_ratios(([1.0], [0.0]), ([1.0], [1.0])) is None
    assert ratio_of_ratios(([], []), ([], [])) is None
