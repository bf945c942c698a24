from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.too_large import too_large

LINES = "\n".join(f"    step_{number}()" for number in range(60))
DROPPED = {
    "sixty lines": f"def f():├\n{LINES}┤\n",
    "sixty lines in an empty file": f"├{LINES}┤",
    "sixty lines in two edits": f"├{LINES[: len(LINES) // 2]}┤\nx‸\n├{LINES[len(LINES) // 2 :]}┤\n",
    "one endless line": f"x = ├[{'1, ' * 2000}]┤\n",
    "an endless line beyond ASCII": f"x = ├'{'é' * 5000}'┤\n",
}
KEPT = {
    "a screen": "├" + "\n".join(f"x{number} = 1" for number in range(30)) + "┤\n",
    "many empty lines": "├a = 1" + "\n" * 100 + "b = 2┤\n",
    "sixty lines less": f"‸├{LINES}→pass┤\n",
    "one word": "x = ├1┤\n",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_more_than_anybody_reads_is_dropped(case: str) -> None:
    assert drops(too_large, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_what_fits_on_a_screen_stays(case: str) -> None:
    assert not drops(too_large, case)
