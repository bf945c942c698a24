from __future__ import annotations

import random

import pytest
from tests.selectivity.made import TRUTH, drawn, sample

from calomel.selectivity.fit import (
    FEWEST_SHOWN,
    losing,
    lower_bound,
    named_thresholds,
    needed,
    smallest_threshold,
    surest,
    upper_bound,
)


def test_thresholds_lose_no_more_than_their_names_promise() -> None:
    samples = drawn(600)
    probabilities = [TRUTH.probability(each) for each in samples]
    found = named_thresholds(samples, probabilities)
    taken = [likely for each, likely in zip(samples, probabilities, strict=True) if each.accepted]
    for name, bound in (("balanced", 0.05), ("eager", 0.01)):
        lost = sum(likely < found[name] for likely in taken) / len(taken)
        assert lost <= bound
        # A little higher loses more: nothing is shown that need not be.
        assert sum(likely < found[name] + 0.002 for likely in taken) / len(taken) > lost - 1e-9
        assert sum(likely < found[name] + 0.1 for likely in taken) / len(taken) > bound
    shown = [each.accepted for each, likely in zip(samples, probabilities, strict=True) if likely >= found["quiet"]]
    assert len(shown) > 10
    assert sum(shown) / len(shown) > 0.5


@pytest.mark.parametrize("seed", range(5))
def test_quiet_shows_no_more_than_balanced_and_balanced_no_more_than_eager(seed: int) -> None:
    samples = drawn(60, seed=seed)
    likely = [TRUTH.probability(each) ** (1 + seed) for each in samples]
    found = named_thresholds(samples, likely)
    assert 1 >= found["quiet"] >= found["balanced"] >= found["eager"] >= 0


def test_where_nothing_was_accepted_nothing_is_promised() -> None:
    assert named_thresholds([sample(number, "rejected") for number in range(30)], [0.4] * 30) == {}
    assert named_thresholds([], []) == {}


def test_quiet_is_even_odds_where_nothing_is_proven() -> None:
    samples = [sample(number, "accepted" if number < 3 else "rejected") for number in range(6)]
    assert named_thresholds(samples, [0.3] * 6) == {"quiet": 0.5, "balanced": 0.3, "eager": 0.3}


def test_only_the_surest_candidate_of_a_question_counts() -> None:
    samples = [sample(1, "rejected", maker="rename"), sample(2), sample(1, "accepted")]
    assert surest(samples, [0.8, 0.1, 0.7]) == [(samples[0], 0.8), (samples[1], 0.1)]
    # The accepted one of the first question would not have been shown, so no threshold loses it.
    assert named_thresholds(samples, [0.8, 0.1, 0.7])["balanced"] == 0.1


def test_a_threshold_is_rounded_so_that_nothing_more_is_lost() -> None:
    assert losing([0.12345, 0.5, 0.9], 0.0) == 0.123
    assert losing([0.1, 0.2, 0.3, 0.4], 0.25) == 0.2
    assert losing([0.1, 0.2, 0.3, 0.4], 0.2) == 0.1
    assert losing([0.0004], 0.05) == 0.0


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


def test_the_smallest_threshold_that_keeps_the_promise_is_found() -> None:
    probabilities = [0.95] * 30 + [0.8] * 30
    accepted = [True] * 30 + [False] * 30
    found = smallest_threshold(probabilities, accepted, 0.7)
    assert found is not None
    assert (found.threshold, found.shown, found.accepted) == (0.81, 30, 30)
    shuffled = sorted(zip(probabilities, accepted, strict=True), key=hash)
    assert smallest_threshold([each for each, _ in shuffled], [each for _, each in shuffled], 0.7) == found


def test_the_search_ends_at_the_first_threshold_that_fails() -> None:
    # Further down it would be kept again; whoever looks there has looked too often.
    assert smallest_threshold([0.99] * 20 + [0.5] * 1000, [False] * 20 + [True] * 1000, 0.7) is None
    found = smallest_threshold([0.9] * 40 + [0.6] * 40 + [0.3] * 2000, [True] * 40 + [False] * 40 + [True] * 2000, 0.8)
    assert found is not None
    assert found.threshold == 0.61


def test_few_suggestions_neither_prove_nor_end_anything() -> None:
    assert smallest_threshold([0.9] * (FEWEST_SHOWN - 1), [True] * (FEWEST_SHOWN - 1), 0.1) is None
    assert smallest_threshold([0.9] * FEWEST_SHOWN, [True] * FEWEST_SHOWN, 0.5) is not None
    assert smallest_threshold([], [], 0.5) is None
    unlucky = smallest_threshold([0.99, *[0.9] * 50], [False, *[True] * 50], 0.8)
    assert unlucky is not None
    assert unlucky.shown == 51


def test_the_promise_holds_in_nine_of_ten_simulated_sets() -> None:
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


def test_the_promise_holds_where_probabilities_say_too_much() -> None:
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
