from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.wrong_region import wrong_region

DROPPED = {
    "above": "├a→x┤\n⌈b‸\nc\n⌉d\n",
    "below": "a\n⌈b‸\nc\n⌉├d→x┤\n",
    "over its end": "a\n⌈b‸\nc⌉├\nd→x┤\n",
    "the second of two edits": "a\n⌈├b→x┤‸\nc\n⌉d\n├e→x┤\n",
    "the answer is three lines further down": "⌈‸├a\nb\nc\n→┤d\n├e\nf\ng\n┤⌉",
    "beyond ASCII": "├é→x┤\n⌈ü‸\n⌉",
}
KEPT = {
    "within": "a\n⌈b‸\n├c→x┤\n⌉d\n",
    "at its end": "a\n⌈b‸\n├c\n┤⌉d\n",
    "a fill, which has none": "a\n├b┤\n",
    "three lines go and nothing comes": "⌈‸├a\nb\nc\n→┤d\ne\n⌉",
    "two lines go and others come": "⌈‸├a\nb\n→┤d\n├e\n┤⌉",
    "three lines go and others come in between": "⌈‸├a\nb\nc\n→┤d\n├e\n┤f\ng\n⌉",
    "a region without text": "⌈├a┤⌉",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_what_was_not_asked_for_is_dropped(case: str) -> None:
    assert drops(wrong_region, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_what_was_asked_for_stays(case: str) -> None:
    assert not drops(wrong_region, case)
