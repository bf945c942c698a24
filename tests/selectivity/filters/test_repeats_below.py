from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.repeats_below import repeats_below

DROPPED = {
    "the line below": "    ├total = compute(values)┤\n    total = compute(values)\n    return total\n",
    "almost the line below": "    ├total = compute(value)┤\n    total = compute(values)\n",
    "from the end of the line above": "done()├\nreturn result┤\nreturn result\n",
    "three lines, whatever comes then": "├a = first()\nb = two()\nc = 3\nd┤\na = first()\nb = two()\nc = 3\n",
    "behind an empty line": "├return result┤\n\nreturn result\n",
    "as an edit": "⌈a‸\n├return result\n┤return result\n⌉",
    "one of two edits": "⌈├a→b┤‸\nx\n├return result\n┤return result\n⌉",
    "letters beyond ASCII": "├größe = messen()┤\ngröße = messen()\n",
    "at the beginning of a file": "├import os\n┤import os",
}
KEPT = {
    "a bracket": "    ├}┤\n}\n",
    "the next number": "x├1 = y1┤\nx2 = y2\n",
    "the next name": "    ├self.width = width(1)┤\n    self.depth = width(1)\n",
    "the first line alone": "├first_line()\nsecond_line()┤\nfirst_line()\nother()\n",
    "a row of a table": "├    0, 0, 0,┤\n    0, 0, 0,\n",
    "almost the same, as an edit": "⌈a‸\n├total = compute(value)\n┤total = compute(values)\n⌉",
    "the end of a line that the user wrote": "return result(├)┤\nreturn result()\n",
    "nothing below": "├something_new()┤",
    "in an empty file": "├import os┤",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_what_stands_below_already_is_dropped(case: str) -> None:
    assert drops(repeats_below, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_lines_that_are_only_alike_stay(case: str) -> None:
    assert not drops(repeats_below, case)
