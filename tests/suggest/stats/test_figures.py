from __future__ import annotations

import math
import time

from calomel.suggest.outcome_history import Fate, Figures, Story, day_of, grouped, total


def story(fate: Fate, *, language: str = "go", shown: bool = True, saved: int = 0, at: float = 1.0) -> Story:
    return Story(at, language, "fill", "canvas", explicit=False, shown=shown, fate=fate, saved=saved)


def test_each_suggestion_is_counted_once() -> None:
    fates: tuple[Fate, ...] = ("accepted", "partly_accepted", "rejected", "ignored", "typed", "superseded", "open")
    found = [story(fate, saved=2) for fate in fates]
    held = [story("withheld", shown=False), story("typed", shown=False)]
    figures = total([*found, *held])
    assert figures == Figures(1, 1, 1, 1, 1, 1, 1, withheld=2, withheld_typed=1, saved=14)
    assert (figures.shown, figures.taken) == (7, 2)


def test_groups_stand_in_the_order_of_their_names() -> None:
    groups = grouped(
        [story("open"), story("open", language="c"), story("open", language="")], lambda each: each.language
    )
    assert {name: each.shown for name, each in groups.items()} == {"c": 1, "go": 1, "unknown": 1}
    assert list(groups) == ["c", "go", "unknown"]


def test_a_day_is_that_of_the_users_clock() -> None:
    assert day_of(story("open", at=1.8e9)) == time.strftime("%Y-%m-%d", time.localtime(1.8e9))


def test_a_time_that_is_none_has_no_day() -> None:
    assert [day_of(story("open", at=at)) for at in (math.inf, math.nan, 1e300)] == ["unknown"] * 3
