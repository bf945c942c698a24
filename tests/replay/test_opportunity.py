from __future__ import annotations

import json
from dataclasses import replace
from typing import TypeVar

from calomel.replay.events import Checks, Edit, Problem
from calomel.replay.opportunity import LogResult, Opportunity, Shown
from calomel.report.result import CONVERTER
from calomel.selectivity.sample import Sample

T = TypeVar("T")

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


def back(value: object, kind: type[T]) -> T:
    return CONVERTER.structure(json.loads(json.dumps(CONVERTER.unstructure(value), allow_nan=False)), kind)


def test_an_opportunity_survives_json() -> None:
    unsure = replace(CHANCE, candidate=replace(SHOWN, confidence=None))
    for each in (CHANCE, SILENT, unsure):
        assert back(each, Opportunity) == each


def test_a_result_survives_json() -> None:
    sample = Sample("fill", question="log:1:fill", outcome="accepted", signals={"tokens": 3})
    result = LogResult(
        "log", "recording", 60.0, 10, [CHANCE, SILENT], [CHANCE], 1, 2, [Problem(7, "odd")], Checks(1, 2, None, 1),
        samples=[sample],
    )  # fmt: skip
    assert back(result, LogResult) == result
