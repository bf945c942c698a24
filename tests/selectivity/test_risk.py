from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache

import pytest

from calomel.selectivity import risk
from calomel.selectivity.risk import FEWEST, at_least, lower_bound, needed, smallest_threshold, upper_bound


# Quantiles of the beta distribution, as tables of Clopper and Pearson's bounds have them.
@pytest.mark.parametrize(
    ("successes", "trials", "confidence", "bound"),
    [
        (9, 10, 0.9, 0.66315),
        (10, 10, 0.9, 0.1**0.1),
        (59, 59, 0.95, 0.05 ** (1 / 59)),
        (1, 1, 0.9, 0.1),
        (1, 20, 0.95, 0.00256),
        (5, 10, 0.9, 0.26732),
        (0, 10, 0.9, 0.0),
        (0, 0, 0.9, 0.0),
    ],
)
def test_a_lower_bound_is_the_one_of_the_tables(successes: int, trials: int, confidence: float, bound: float) -> None:
    assert lower_bound(successes, trials, confidence) == pytest.approx(bound, abs=2e-5)


def test_an_upper_bound_mirrors_the_lower_one() -> None:
    assert upper_bound(0, 10, 0.95) == pytest.approx(1 - 0.05**0.1)
    assert upper_bound(1, 10, 0.9) == pytest.approx(1 - lower_bound(9, 10, 0.9))
    assert upper_bound(10, 10, 0.9) == upper_bound(0, 0, 0.9) == 1.0
    for successes in range(11):
        assert lower_bound(successes, 10) <= successes / 10 <= upper_bound(successes, 10)


def test_the_chance_of_so_many_successes_is_the_exact_sum() -> None:
    for share in (Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)):
        for trials in (1, 5, 12):
            for successes in range(trials + 1):
                exact = sum(
                    math.comb(trials, count) * share**count * (1 - share) ** (trials - count)
                    for count in range(successes, trials + 1)
                )
                assert at_least(successes, trials, float(share)) == pytest.approx(float(exact), rel=1e-9)
    assert (at_least(0, 5, 0.0), at_least(1, 5, 0.0), at_least(5, 5, 1.0)) == (1.0, 0.0, 1.0)
    assert at_least(900, 1000, 0.5) < 1e-100


def test_the_smallest_threshold_that_keeps_the_promise_is_found() -> None:
    probabilities = [0.95] * 30 + [0.8] * 30
    accepted = [True] * 30 + [False] * 30
    found = smallest_threshold(probabilities, accepted, 0.7)
    assert found is not None
    assert (found.threshold, found.shown, found.accepted) == (0.81, 30, 30)
    assert found.bound == pytest.approx(0.1 ** (1 / 30))
    shuffled = sorted(zip(probabilities, accepted, strict=True), key=hash)
    assert smallest_threshold([each for each, _ in shuffled], [each for _, each in shuffled], 0.7) == found


def test_the_search_ends_at_the_first_threshold_that_fails() -> None:
    # Further down it would be kept again; whoever looks there has looked too often.
    assert smallest_threshold([0.99] * 20 + [0.5] * 1000, [False] * 20 + [True] * 1000, 0.7) is None
    found = smallest_threshold([0.9] * 40 + [0.6] * 40 + [0.3] * 2000, [True] * 40 + [False] * 40 + [True] * 2000, 0.8)
    assert found is not None
    assert found.threshold == 0.61


def test_few_suggestions_neither_prove_nor_end_anything() -> None:
    assert smallest_threshold([0.9] * (FEWEST - 1), [True] * (FEWEST - 1), 0.1) is None
    assert smallest_threshold([0.9] * FEWEST, [True] * FEWEST, 0.5) is not None
    assert smallest_threshold([], [], 0.5) is None
    unlucky = smallest_threshold([0.99, *[0.9] * 50], [False, *[True] * 50], 0.8)
    assert unlucky is not None
    assert unlucky.shown == 51


def test_the_promise_holds_in_nine_of_ten_simulated_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    # The same counts come again and again.
    monkeypatch.setattr(risk, "lower_bound", cache(lower_bound))
    chance = random.Random(5)
    wanted, sets, kept, proven = 0.6, 200, 0, 0
    for _ in range(sets):
        # Of what is given more than t, (t + 1) / 2 is accepted: 0.6 from 0.2 on.
        probabilities = [chance.random() for _ in range(80)]
        accepted = [chance.random() < probability for probability in probabilities]
        found = smallest_threshold(probabilities, accepted, wanted)
        proven += found is not None
        kept += found is None or found.threshold >= 2 * wanted - 1
    assert proven > 0.75 * sets
    assert kept >= 0.9 * sets


def test_the_promise_holds_where_probabilities_say_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risk, "lower_bound", cache(lower_bound))
    chance = random.Random(6)
    broken = 0
    for _ in range(200):
        # Whatever is said, half is accepted: nothing may be promised.
        probabilities = [chance.random() for _ in range(80)]
        accepted = [chance.random() < 0.5 for _ in probabilities]
        broken += smallest_threshold(probabilities, accepted, 0.55) is not None
    assert broken <= 20


def test_what_is_needed_would_be_enough() -> None:
    assert needed(0.9, 1.0, most=1000) == 22
    for wanted, rate in ((0.5, 0.6), (0.3, 0.5), (0.8, 0.85)):
        count = needed(wanted, rate, most=2000)
        assert count is not None
        assert lower_bound(int(rate * count), count) >= wanted
        assert lower_bound(int(rate * count / 2), count // 2) < wanted
    assert needed(0.5, 0.5) is None
    assert needed(0.7, 0.2) is None
    assert needed(0.5, 0.501, most=100) is None
