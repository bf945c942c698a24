from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.deletes_too_much import deletes_too_much

DROPPED = {
    "four lines go": "⌈a‸\n├b\nc\nd\ne\n→┤f\n⌉g\n",
    "four lines go in two places": "⌈‸├a\nb\n→┤c\n├d\ne\n→┤f\n⌉",
    "the end of an answer is missing": "⌈a‸\n├b = 1\nc = 2\nd = 3\ne = 4\nf = 5\n→b = 1┤⌉\ng\n",
    "a whole function in one word": "⌈‸├def f():\n" + "    step()\n" * 12 + "→pass\n┤x\n⌉",
    "letters beyond ASCII": "⌈‸├é\nü\nß\nø\n→┤x\n⌉",
    "without a region": "‸├a\nb\nc\nd\n→┤",
}
KEPT = {
    "three lines go": "⌈a‸\n├b\nc\nd\n→┤f\n⌉",
    "as many come": "⌈a‸\n├b\nc\nd\ne\n→1\n2\n3\n4\n┤f\n⌉",
    "what goes comes elsewhere": "⌈‸├a\nb\nc\nd\n→┤e\n├a\nb\nc\nd\n┤f\n⌉",
    "a call in fewer lines": "⌈x = ‸f(├\n    a,\n    b,\n    c,\n    d,\n→a, b, c, d┤)\ny\n⌉",
    "empty lines go": "⌈a‸├\n\n\n\n\n\n→\n┤b\n⌉",
    "an insertion in an empty file": "├a\nb┤",
    "a word of each of five lines": "⌈‸a├x→┤\nb├x→┤\nc├x→┤\nd├x→┤\ne├x→┤\n⌉",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_a_loss_of_lines_is_dropped(case: str) -> None:
    assert drops(deletes_too_much, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_a_few_lines_may_go(case: str) -> None:
    assert not drops(deletes_too_much, case)
