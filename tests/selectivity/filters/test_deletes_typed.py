from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.deletes_typed import deletes_typed

DROPPED = {
    "the word": "x = ⟨→├foo→┤⟩‸\n",
    "one character that is all": "x = ⟨→├1→┤⟩‸\n",
    "the end of it": "x = ⟨→foo├bar→┤⟩‸\n",
    "a line": "a\n⟨→├b()\n→┤⟩‸c\n",
    "a line of several": "a\n⟨→b()\n├c()\n→┤d()\n⟩‸e\n",
    "two places": "x = ⟨→├foo→┤⟩\ny = ⟨→├foo→┤⟩‸\n",
    "letters beyond ASCII": "x = '⟨→├größer→┤⟩‸'\n",
    "all of a file": "⟨→├import os→┤⟩‸",
    "a space more": "x = ⟨→├ foo→┤⟩‸\n",
}
KEPT = {
    "much more than that": "x = ├⟨→foo⟩bar()→┤‸\n".replace("⟨→", "").replace("⟩", ""),
    "old text": "x = ⟨→foo⟩‸(├bar→┤)\n",
    "a letter too many": "⟨→p├p→┤rint(x)⟩‸\n",
    "a bracket too many": "⟨→print(value)├)→┤⟩‸\n",
    "a replacement": "x = ⟨→├foo→bar┤⟩‸\n",
    "nothing was done": "x = ├foo→┤‸\n",
    "an insertion into an empty file": "├x┤",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_what_was_just_written_is_not_taken_away(case: str) -> None:
    assert drops(deletes_typed, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_other_deletions_and_mended_typos_stay(case: str) -> None:
    assert not drops(deletes_typed, case)
