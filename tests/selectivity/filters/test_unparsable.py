from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.unparsable import unparsable
from calomel.selectivity.proposal import Proposal
from calomel.workspace.syntax import SyntaxTrees

DROPPED = {
    "a bracket too many": "x = f(1, ├2)┤)\n",
    "words without a comma": "f(├first second third┤)\n",
    "an edit that breaks a line": "⌈x = ‸├f(1)→f 1)┤\n⌉",
    "the second of two edits": "⌈├a→b┤‸\nx = ├1→1 2┤\n⌉",
    "an edit of an empty file": "‸├x = (]\n┤",
    "behind letters beyond ASCII": "x = 'é'\nf(├'é' x┤)\n",
}
KEPT = {
    "a statement": "├x = 1┤\n",
    "the end of one": "x = f(├1)┤\n",
    "the beginning of a block": "├if x:┤\n",
    "the first line of a call": "x = ├f(┤\n",
    "half of a line": "├x = f(1, 'two┤\n",
    "an edit that opens a block": "⌈├x = 1→if x:\n    y = [┤‸\n⌉",
    "an edit that mends": "⌈x = ‸f(1├→)┤\n⌉",
    "errors as before": "def (:\nf(├1┤)\n",
    "in an empty file": "├x = 1┤",
}


def errors(text: str) -> int:
    return SyntaxTrees().error_count(text, "python", seconds=60.0) or 0


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_what_makes_a_syntax_error_is_dropped(case: str) -> None:
    assert drops(unparsable, case, errors=errors)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_what_makes_none_stays(case: str) -> None:
    assert not drops(unparsable, case, errors=errors)


@pytest.mark.parametrize(("counted", "dropped"), [(None, False), ((0, 1), True), ((1, 1), False), ((9, 12), False)])
def test_among_many_errors_a_parser_guesses(counted: tuple[int, int] | None, *, dropped: bool) -> None:
    guess = Proposal("edit", "x\n", ((1, 1, " y"),), 1, errors=lambda: counted)
    assert unparsable(guess) is dropped
