from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.cut_off import cut_off

DROPPED = {
    "half a line": "x = compute(├first, sec┤\n",
    "half a line behind an empty one": "def f():├\n    retur┤\n",
    "an edit": "⌈├a = 1→a = 2┤\nb = 1\n⌉",
    "an edit of several lines": "⌈├a→x\ny┤\n├b→z\n┤⌉",
    "in an empty file": "├import o┤",
    "letters beyond ASCII": "x = '├größ┤\n",
}
KEPT = {
    "a whole line before the cut": "x = compute(├first)\ny = comp┤\n",
    "a whole line and nothing behind": "def f():├\n    return 1\n┤",
}
WHOLE = {
    "a line": "x = ├1┤\n",
    "an edit": "⌈├a→b┤\n⌉",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_half_of_something_is_dropped(case: str) -> None:
    assert drops(cut_off, case, cut_off=True)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_a_fill_may_end_behind_a_whole_line(case: str) -> None:
    assert not drops(cut_off, case, cut_off=True)


@pytest.mark.parametrize("case", [*WHOLE.values(), *DROPPED.values()])
def test_what_came_to_its_end_stays(case: str) -> None:
    assert not drops(cut_off, case)
