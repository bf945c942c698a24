from __future__ import annotations

import math
import random

import pytest
from tests.replay.made import opportunity, result, shown

from calomel.replay.events import Problem
from calomel.replay.opportunity import LogResult, Outcome

OUTCOMES: tuple[Outcome, ...] = ("accepted", "rejected", "rejected", "partly", "superseded", "too_short")
NASTY = "</script><script>document.title = 'broken'</script><img src=x onerror=alert(1)> & \u2028 \U0001f600"


@pytest.fixture
def results() -> list[LogResult]:
    """Enough of everything that each plot has something to show; texts that try to break out."""
    rng = random.Random(3)
    ours = []
    for entry in range(300):
        confidence = rng.random()
        outcome = "accepted" if rng.random() < confidence / 2 else rng.choice(OUTCOMES[1:])
        candidate = shown(
            outcome,
            confidence,
            saved=rng.randrange(20) if outcome == "accepted" else 0,
            kept=outcome == "accepted" or None,
            before=f"def call{entry}():\n    return ",
            after=f"def call{entry}():\n    return {NASTY if entry == 0 else entry}",
            expected=f"def call{entry}():\n    return {entry}",
            signals={"parse_error_delta": rng.random()},
        )
        silence = "low_confidence" if confidence < 0.2 else None
        latency = math.exp(rng.gauss(4.5, 0.8))
        ours.append(opportunity(entry, candidate, silence=silence, time=entry * 9.0, latency_ms=latency, computed=40))
    ours.append(opportunity(300, silence="empty", latency_ms=30.0, computed=12))
    theirs = [
        opportunity(1000 + entry, shown("accepted" if entry % 6 == 0 else "rejected", None, source="recorded & co"))
        for entry in range(40)
    ]
    found = result(ours, theirs, minutes=45, typed=9000, log="session <one>")
    found.real_accepts, found.real_offers = 6, 40
    found.problems.append(Problem(17, "The range <5, 9> lies outside; it is left out."))
    return [found]
