"""All filters together: their names, their order, and what every one of them has to be."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.selectivity.filters.golden import proposal

from calomel.selectivity.filters import FILTERS, fired
from calomel.selectivity.proposal import Edit, Proposal, Recent
from calomel.suggest.silence import SilenceReason

PLAIN = ["a", "foo", "return x", "x = ", "0, ", " ", "    ", "\n", "\r\n", "\r", "\\", "<|end|>", "*" * 8]
MARKS = ["(", ")", "{", "]", '"', "'", '"""', "`", "# ", "//", "/*", "*/", "é", "😀", "\u2028", "\0"]
PIECES = st.lists(st.sampled_from(PLAIN + MARKS), max_size=12).map("".join)


@st.composite
def proposals(draw: st.DrawFn) -> Proposal:
    text = draw(PIECES)
    places = st.integers(0, len(text))
    marks = sorted(draw(st.lists(places, max_size=6)))
    edits = [Edit(start, end, draw(PIECES)) for start, end in list(pairwise(marks))[::2]]
    start, end = sorted((draw(places), draw(places)))
    return Proposal(
        kind=draw(st.sampled_from(["fill", "edit"])),
        text=text,
        edits=tuple(edits),
        cursor=draw(places),
        language_id=draw(st.sampled_from(["", "python", "typescript", "rust", "go", "markdown"])),
        region=draw(st.sampled_from([None, (start, end)])),
        recent=(Recent(start, end, draw(PIECES), text[start:end]),),
        masked=draw(st.sampled_from(["", text, "*" * len(text)])),
        cut_off=draw(st.booleans()),
        errors=lambda: (0, 1),
    )


@settings(deadline=None)
@given(proposals())
def test_no_filter_ever_fails(suggestion: Proposal) -> None:
    assert set(fired(suggestion)) <= set(FILTERS)


def test_every_filter_is_a_reason_that_people_can_read() -> None:
    assert [name for name in FILTERS if not SilenceReason(name).message] == []


def test_whoever_wants_one_name_pays_for_no_more() -> None:
    def never() -> tuple[int, int] | None:
        pytest.fail("a text was parsed that another filter had dropped")

    suggestion = Proposal("fill", "x = \n", ((4, 4, " "),), 4, errors=never)
    assert next(fired(suggestion)) == "whitespace_only"


def test_a_good_suggestion_passes_all() -> None:
    assert list(fired(proposal("def add(a, b):\n    ⟨→ret⟩├urn a + b┤\n"))) == []
    assert list(fired(proposal("⟨item→entry⟩ = 1\n⌈‸print(├item→entry┤)\n⌉"))) == []
    with pytest.raises(FrozenInstanceError):
        proposal("x├y┤").text = ""  # type: ignore[misc]
