from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.whitespace_only import whitespace_only

DROPPED = {
    "a blank": "x = ├ ┤\n",
    "an empty line": "x = 1├\n\n┤\n",
    "space around an operator": "├y=2→y = 2┤‸\n",
    "indentation": "if x:\n├  →    ┤‸return\n",
    "several edits": "├a →a┤\nb‸\n├c→ c┤\n",
    "space beyond ASCII": "x = ├\u00a0\u3000┤\n",
    "in an empty file": "├\n┤",
    "blank lines taken away": "a\n├\n\n→\n┤b‸\n",
}
KEPT = {
    "a word": "x = ├ 1┤\n",
    "one of two edits has a word": "├a →a┤\nb‸\n├c→ d┤\n",
    "a deleted word": "├a b→a┤‸\n",
    "in an empty file": "├\nx\n┤",
    "a letter beyond ASCII": "├ →é┤‸\n",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_other_space_alone_is_dropped(case: str) -> None:
    assert drops(whitespace_only, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_words_stay(case: str) -> None:
    assert not drops(whitespace_only, case)
