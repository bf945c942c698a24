from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.reverts_edit import reverts_edit

DROPPED = {
    "the exact inverse": "‸x = ⟨old→├new→old┤⟩\n",
    "the inverse of one letter": "‸x = ⟨1→├2→1┤⟩\n",
    "the inverse beyond ASCII": "‸x = '⟨Größe→├naïve→Größe┤⟩'\n",
    "the inverse of two changes": "‸x = ⟨old→├new→old┤⟩\ny = ⟨old→├new→old┤⟩\n",
    "one of two edits goes back": "‸x = ⟨old→├new→old┤⟩\ny = ├first(1)→second(2, 3)┤\n",
    "most of a line comes back": "‸⟨return compute(values)→├raise NotImplementedError→return compute(value)┤⟩\n",
    "over several lines": "‸⟨a = first()\nb = two()\n→├c = third(x)\nd = f(z)\n→a = first()\nb = two()\n┤⟩e\n",
    "the whole text of a file": "‸⟨import os→├from pathlib import Path→import os┤⟩",
}
KEPT = {
    "a word of its own": "‸x = ⟨old→├new→newer┤⟩\n",
    "another word": "‸x = ⟨old_name→├nw_name→new_name┤⟩\n",
    "a typo mended": "‸⟨→re├tru→tur┤n⟩ x\n",
    "elsewhere": "x = ⟨old→new⟩\n‸y = ├old→new┤\n",
    "what was begun goes on": "x = ⟨get→get_user⟩‸(├name→user┤)\n",
    "nothing was done": "‸x = ├new→old┤\n",
    "in an empty file": "├x┤",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_what_puts_back_what_was_changed_is_dropped(case: str) -> None:
    assert drops(reverts_edit, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_what_goes_on_from_there_stays(case: str) -> None:
    assert not drops(reverts_edit, case)
