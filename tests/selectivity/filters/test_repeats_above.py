from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.repeats_above import repeats_above

DROPPED = {
    "the line above": "x\n    total = compute()\n    tot├al = compute()┤\n",
    "the line itself": "    total = compute()├\n    total = compute()┤\n",
    "the two lines above": "a = first()\nb = second()\n├a = first()\nb = second()┤\n",
    "the two lines above from their end": "a = first()\nb = second()├\na = first()\nb = second()┤\n",
    "with other indentation": "if x:\n    total = compute()\n├total = compute()┤\n",
    "as an edit": "⌈total = compute()\n‸├total = compute()\n┤x\n⌉",
    "one of two edits": "⌈├a→b┤‸\ntotal = compute()\n├total = compute()\n┤x\n⌉",
    "letters beyond ASCII": "größe = messen()\n├größe = messen()┤\n",
    "at the end of a file": "import os\n├import os┤",
}
KEPT = {
    "a bracket": "    }\n    ├}┤\n",
    "a word that stands often": "pass\n├pass┤\n",
    "another argument": "total = compute(1)\ntot├al = compute(2)┤\n",
    "a row of a table": "    0, 0, 0,\n    ├0, 0, 0,┤\n",
    "a row of nothing": "    None, None,\n    ├None, None,┤\n",
    "what the user wrote again": "total = compute()\ntotal = compute(├)┤\n",
    "one line of two": "a = first()\n├a = first()\nb = second()┤\n",
    "behind an empty line": "total = compute()\n\n├total = compute()┤\n",
    "in front of more": "total = compute()\n├total = compute()┤ + 1\n",
    "in an empty file": "├import os┤",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_the_lines_above_once_more_are_dropped(case: str) -> None:
    assert drops(repeats_above, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_what_may_stand_twice_stays(case: str) -> None:
    assert not drops(repeats_above, case)
