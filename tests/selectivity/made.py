"""Samples made up from a rule that is known, so that a fit can be compared with it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from calomel.selectivity.calibrator import KindCalibrator
from calomel.selectivity.sample import Sample

# A fill is accepted the likelier the surer the model is, and the model's own words more often than a draft's.
TRUTH = KindCalibrator({"mean_log_prob": 2.0, "maker:template": -1.5, "distance": -0.5}, 3.5)


def sample(number: int = 0, outcome: str = "accepted", **changes: Any) -> Sample:
    """One of a fill, by default a question of its own."""
    values: dict[str, Any] = {
        "question": f"log:{number}:fill",
        "kind": "fill",
        "outcome": outcome,
        "maker": "canvas",
        "language": "python",
        "group": f"day{number % 6}",
        "time": float(number),
        "signals": {"mean_log_prob": -0.5, "characters_inserted": 8},
    }
    return Sample(**{**values, **changes})


def drawn(
    count: int,
    truth: KindCalibrator = TRUTH,
    *,
    seed: int = 1,
    kind: str = "fill",
    group: Callable[[int], str] = lambda number: f"package{number % 10}",
) -> list[Sample]:
    """Samples whose outcome is drawn with the probability that `truth` gives them."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        signals = {"mean_log_prob": -3 * chance.random(), "distance": chance.randrange(20), "end_log_prob": -0.1}
        maker = chance.choice(("canvas", "template"))
        question = {"question": f"log:{number}:{kind}", "kind": kind, "maker": maker, "group": group(number)}
        made = sample(number, **question, signals=signals, saved_characters=5)
        taken = chance.random() < truth.probability(made)
        found.append(replace(made, outcome="accepted" if taken else "rejected"))
    return found
