from __future__ import annotations

import math

from calomel.suggest.outcome_history import Fate, Story, WhatIf, what_if


def story(
    probability: float,
    fate: Fate = "withheld",
    *,
    shown: bool = False,
    reason: str = "low_confidence",
    explicit: bool = False,
) -> Story:
    return Story(1.0, "go", "fill", "canvas", explicit, probability, shown, "" if shown else reason, fate)


FOUND = [
    story(0.6, "accepted", shown=True),
    story(0.45, "rejected", shown=True),
    story(0.35, "typed", shown=True),
    story(0.25, "typed"),
    story(0.12),
    # What a threshold has no word in.
    story(0.05, "accepted", shown=True, explicit=True),
    story(0.9, "typed", reason="unbalanced"),
    story(math.nan),
]


def at(threshold: float) -> WhatIf:
    return next(each for each in what_if(FOUND) if each.threshold == threshold)


def test_a_lower_threshold_would_have_shown_more_of_what_was_held_back() -> None:
    assert (at(0.3).shown, at(0.3).wanted, at(0.3).missed) == (3, 2, 1)
    assert (at(0.2).shown, at(0.2).wanted, at(0.2).missed) == (4, 3, 0)
    assert (at(0.1).shown, at(0.1).wanted, at(0.1).of) == (5, 3, 6)


def test_a_higher_threshold_would_have_lost_some() -> None:
    assert (at(0.5).shown, at(0.5).wanted, at(0.5).missed) == (1, 1, 2)


def test_every_setting_with_a_name_is_there_in_its_place() -> None:
    found = what_if([])
    assert {each.name: each.threshold for each in found if each.name} == {"quiet": 0.5, "balanced": 0.3, "eager": 0.15}
    assert [each.threshold for each in found] == [0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
