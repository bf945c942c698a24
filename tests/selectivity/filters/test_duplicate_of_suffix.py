from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.duplicate_of_suffix import duplicate_of_suffix

DROPPED = {
    "the rest of the line": "f(├, value┤, value)\n",
    "all of the rest": "x = ├a┤ a\n",
    "a word of the rest": "x = ├total┤total + 1\n",
    "the next line": "x = 1\n├return x\n┤return x\n",
    "the next line from this one": "x = 1├\nreturn x┤\nreturn x\n",
    "two lines": "x = 1├\ny = value()\nreturn y┤\ny = value()\nreturn y\n\n",
    "the next line of an edit": "⌈a = 1‸\n├b = call()\n┤b = call()\n⌉",
    "one of two edits": "⌈├a→b┤‸\nf(├name┤name)\n⌉",
    "a bracket that stands there": "f(1├)┤)\n",
    "a quote and a bracket that stand there": "f('a├')┤')\n",
    "the rest and the next line": "foo(├)\nreturn bar┤)\nreturn bar\n",
    "a short line": "f()├\nb┤\nb\n",
    "letters beyond ASCII": "x = ├größe┤größe + 1\n",
    "all of a file": "├import os\n┤import os",
}
KEPT = {
    "the beginning of a longer word": "├print┤printer\n",
    "the same letter once more": "x = [├a┤a]\n",
    "a value of a table": "x = [├0, ┤0, 0]\n",
    "none of a table": "x = [├None, ┤None, None]\n",
    "a bracket that closes": "f(g(├)┤)\n",
    "one of three quotes": 'def f():\n    ├"┤""\n',
    "the value of the next line": "x = ├compute()┤\ncompute()\n",
    "a line that is the beginning of the next": "├return x\n┤return x + 1\n",
    "nothing behind": "x = ├1┤",
    "in an empty file": "├x = 1┤",
    "a replacement": "⌈x = ├a→total┤total‸\n⌉",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_what_follows_already_is_dropped(case: str) -> None:
    assert drops(duplicate_of_suffix, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_what_only_begins_alike_stays(case: str) -> None:
    assert not drops(duplicate_of_suffix, case)
