from __future__ import annotations

import pytest
from tests.selectivity.made import TRUTH, drawn, sample

from calomel.selectivity.thresholds import losing, named_thresholds, surest


def test_thresholds_lose_no_more_than_their_names_promise() -> None:
    samples = drawn(600)
    probabilities = [TRUTH.probability(each.subject) for each in samples]
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
    likely = [TRUTH.probability(each.subject) ** (1 + seed) for each in samples]
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
