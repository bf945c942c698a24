from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.repeats_itself import repeats_itself

DROPPED = {
    "a word six times": "x = ├foo foo foo foo foo foo┤\n",
    "a call four times": "x = ├compute(a).compute(a).compute(a).compute(a)┤\n",
    "a loop that was cut": "x = ├value or value or value or value or value or value or value or val┤\n",
    "at the end of several lines": "├a = 1\nb = -----abcabcabcabcabcabc┤\n",
    "a line three times": "├import os\nimport os\nimport os┤\n",
    "a block twice": "├a = first(x)\nb = second(y)\na = first(x)\nb = second(y)┤\n",
    "a block twice in the middle": "├begin()\nif ready:\n    run_all()\nif ready:\n    run_all()\nend()┤\n",
    "in an edit": "⌈a‸\n├b→value()\nvalue()\nvalue()┤\n⌉",
    "in the second of two edits": "⌈├a→b┤‸\n├c→value()\nvalue()\nvalue()┤\n⌉",
    "letters beyond ASCII": "x = '├äöü äöü äöü äöü äöü äöü┤'\n",
    "in an empty file": "├log()\nlog()\nlog()\nlog()┤",
}
KEPT = {
    "numbers": "x = [├0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0┤]\n",
    "bytes": "x = [├0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00┤]\n",
    "values": "x = [├None, None, None, None, None, None, None, None┤]\n",
    "rows of a table": "x = [\n├    [0, 0, 0],\n    [0, 0, 0],\n    [0, 0, 0],\n    [0, 0, 0],┤\n]\n",
    "alike rows of names": 'x = [\n├    ("a", 1),\n    ("b", 1),\n    ("c", 1),\n    ("d", 1),\n    ("e", 1),┤\n]\n',
    "a ruler": "├# ----------------------------------------------------------┤\n",
    "brackets that close": "f(├[[[[1]]]]\n            )\n        )\n    )\n)┤\n",
    "tags that close": "├</div>\n    </div>\n  </div>\n</div>┤\n",
    "a line twice": "├next(lines)\nnext(lines)┤\n",
    "assertions": "├assert a == 1\nassert b == 2\nassert c == 3┤\n",
    "a word five times": "x = ├no no no no no┤\n",
    "an insertion into an empty file": "├import os┤",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_what_goes_round_in_circles_is_dropped(case: str) -> None:
    assert drops(repeats_itself, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_tables_and_what_is_only_alike_stay(case: str) -> None:
    assert not drops(repeats_itself, case)
