from __future__ import annotations

import json
import math

from calomel.replay.events import Checks, Edit, Problem
from calomel.replay.opportunity import LogResult, Opportunity, Shown

SHOWN = Shown(
    edits=(Edit(1, 2, "x"),),
    before="ab\n",
    after="ax\n",
    expected=None,
    confidence=0.5,
    signals={"tokens": 3.0},
    source="calomel",
    outcome="partly",
    accepted_characters=1,
    saved_characters=1,
    kept=True,
    visible_seconds=0.25,
    alternatives=("ax\n", None),
)
CHANCE = Opportunity("log", 3, 1.5, "a.py", "python", "fill", None, SHOWN, shown=True, latency_ms=12.5)
SILENT = Opportunity("log", 4, 2.5, "a.py", "python", "edit", "empty", None, shown=False)


def test_an_opportunity_survives_json() -> None:
    for each in (CHANCE, SILENT):
        assert Opportunity.from_json(json.loads(json.dumps(each.to_json(), allow_nan=False))) == each


def test_a_confidence_that_nobody_knows_survives_json() -> None:
    from dataclasses import replace

    unknown = replace(CHANCE, candidate=replace(SHOWN, confidence=math.nan))
    back = Opportunity.from_json(json.loads(json.dumps(unknown.to_json(), allow_nan=False)))
    assert back.candidate is not None
    assert math.isnan(back.candidate.confidence)


def test_a_result_survives_json() -> None:
    result = LogResult(
        "log", "recording", 60.0, 10, [CHANCE, SILENT], [CHANCE], 1, 2, [Problem(7, "odd")], Checks(1, 2, None, 1)
    )
    assert LogResult.from_json(json.loads(json.dumps(result.to_json(), allow_nan=False))) == result
