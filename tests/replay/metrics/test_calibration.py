from __future__ import annotations

import pytest

from calomel.replay.metrics.calibration import brier, ece, reliability


def test_bins_tell_mean_confidence_and_the_share_taken() -> None:
    low, high = reliability([0.91, 0.99, 0.15], [1, 0, 0])
    assert (low.low, low.high, low.size, low.taken) == (0.1, 0.2, 1, 0.0)
    assert (high.low, high.high, high.size, high.taken) == (0.9, 1.0, 2, 0.5)
    assert (low.confidence, high.confidence) == pytest.approx((0.15, 0.95))


def test_a_confidence_of_1_lies_in_the_last_bin() -> None:
    assert reliability([1.0], [1]) == [(0.9, 1.0, 1, 1.0, 1.0)]


def test_ece_weighs_the_bins_by_their_counts() -> None:
    # (2 * |0.5 - 0.95| + 1 * |0 - 0.15|) / 3
    assert ece([0.91, 0.99, 0.15], [1, 0, 0]) == pytest.approx((2 * 0.45 + 0.15) / 3)


def test_brier_is_the_mean_squared_distance() -> None:
    assert brier([0.8, 0.4], [1, 0]) == pytest.approx((0.04 + 0.16) / 2)


def test_nothing_suggested_gives_no_figure() -> None:
    assert ece([], []) is None
    assert brier([], []) is None
