from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.reinserts_deleted import reinserts_deleted

DROPPED = {
    "the word again": "x = ⟨foo→⟩├foo┤\n",
    "the word and more": "x = ⟨foo→⟩├foo(bar)┤\n",
    "half of it": "x = ⟨foo→⟩├fo┤\n",
    "a line again": "a()\n⟨b()\n→⟩├b()\n┤c()\n",
    "a line again from the line above": "a()├\nb()┤\n⟨b()\n→⟩c()\n",
    "as an edit": "⌈a\n⟨b\n→⟩‸├b\n┤c\n⌉",
    "one of two edits": "⌈a\n‸⟨log(x)→⟩├log(x)┤\n├c→d┤\n⌉",
    "the end of a longer name": "get⟨_user→⟩├_user┤()\n",
    "letters beyond ASCII": "x = '⟨é😀→⟩├é😀┤'\n",
    "all of a file": "⟨import os→⟩├import os┤",
}
KEPT = {
    "another word": "x = ⟨foo→⟩├bar┤\n",
    "elsewhere": "x = ⟨foo→⟩1\ny = ├foo(bar)┤\n",
    "a character and much more": "x = ⟨(→⟩├(first, second)┤\n",
    "what was replaced": "x = ⟨foo→b⟩├ar(foo)┤\n",
    "a deletion": "⌈x = ⟨foo→⟩‸├y→┤\n⌉",
    "nothing was done": "x = ├foo┤\n",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_what_was_just_deleted_does_not_come_back(case: str) -> None:
    assert drops(reinserts_deleted, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_something_new_in_its_place_stays(case: str) -> None:
    assert not drops(reinserts_deleted, case)
