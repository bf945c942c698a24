from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.empty_comment import empty_comment

DROPPED = {
    "a sharp": "x = 1\n├#┤\n",
    "a sharp and space": "x = 1\n    ├# ┤\n",
    "several": "x = 1\n├#\n#\n┤\n",
    "slashes": "x\n├//┤\n",
    "an empty block": "x\n├/* */┤\n",
    "behind letters beyond ASCII": "é = 1\n├#┤\n",
    "in an empty file": "├#┤",
}
KEPT = {
    "words": "x = 1\n├# why┤\n",
    "words beyond ASCII": "x = 1\n├# größer┤\n",
    "a comment goes on": "# why\n├#┤\n# because\n",
    "code": "x = ├1┤\n",
    "a docstring is opened": 'def f():\n    ├"""┤\n    Text.\n    """\n',
    "a ruler that was begun": "x = 1\n#├####┤\n",
    "an edit": "⌈x = 1‸\n├#\n┤y\n⌉",
    "behind code": "x = 1├  #┤\n",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_a_comment_without_words_is_dropped(case: str) -> None:
    assert drops(empty_comment, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_words_and_what_frames_them_stay(case: str) -> None:
    assert not drops(empty_comment, case)
