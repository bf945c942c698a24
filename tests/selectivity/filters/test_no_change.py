from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.no_change import no_change
from calomel.selectivity.proposal import Proposal

DROPPED = {
    "the same words": "x = ├1→1┤‸\n",
    "twice the same": "├a→a┤\n‸├b→b┤\n",
    "nothing inserted": "x = ├┤\n",
    "the same letters beyond ASCII": "name = ├'é😀'→'é😀'┤‸\n",
}
KEPT = {
    "another word": "x = ├1→2┤‸\n",
    "one edit of two": "├a→a┤\n‸├b→c┤\n",
    "into an empty file": "├import os┤",
    "a deletion": "├a→┤‸",
    "another composition of the same letter": "x = '├é→e\u0301┤'‸",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_what_changes_nothing_is_dropped(case: str) -> None:
    assert drops(no_change, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_what_changes_something_stays(case: str) -> None:
    assert not drops(no_change, case)


def test_no_edit_at_all_is_no_change() -> None:
    assert no_change(Proposal("edit", "x", (), 0))
