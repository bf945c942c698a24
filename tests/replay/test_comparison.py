from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console
from tests.replay.made import opportunity, result, shown

from calomel.replay.comparison import ComparisonError, compare
from calomel.replay.summary import document


def run(*saved: int) -> dict[str, object]:
    items = [opportunity(entry, shown("accepted", saved=number), time=entry * 61) for entry, number in enumerate(saved)]
    loaded: dict[str, object] = json.loads(json.dumps(document([result(items)])))
    return loaded


def test_runs_are_compared_over_the_opportunities_that_both_had() -> None:
    found = compare(run(1, 2, 3), run(2, 3, 4, 100))
    assert (found.matched, found.only_first, found.only_second) == (3, 0, 1)
    difference = found.differences["characters_per_opportunity"]
    assert (difference.value, difference.low, difference.high) == pytest.approx((1.0, 1.0, 1.0))


def test_a_run_does_not_differ_from_itself() -> None:
    found = compare(run(1, 2, 3), run(1, 2, 3))
    assert all((each.value, each.low, each.high) == (0, 0, 0) for each in found.differences.values())


def test_the_table_and_the_json_name_what_was_matched() -> None:
    found = compare(run(1, 2), run(1, 5))
    page = Console(file=StringIO(), width=120, record=True)
    page.print(found.to_table())
    assert "2 opportunities in both" in page.export_text()
    assert json.loads(json.dumps(found.to_json()))["matched"] == 2


def test_a_file_of_something_else_is_refused_in_a_sentence() -> None:
    with pytest.raises(ComparisonError, match="the second file is no result"):
        compare(run(1), {"score": 1})
