from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from calomel.engine.beginning import common_beginning

Tokens = tuple[int, ...]
sequences = st.lists(st.integers(0, 1), max_size=200).map(tuple)


@given(sequences, sequences, sequences)
def test_it_is_what_comparing_token_by_token_finds(both: Tokens, one: Tokens, other: Tokens) -> None:
    one, other = both * 3 + one, both * 3 + other
    pairs = enumerate(zip(one, other, strict=False))
    expected = next((at for at, (ours, theirs) in pairs if ours != theirs), min(len(one), len(other)))

    assert expected == common_beginning(one, other) == common_beginning(other, one)


@pytest.mark.parametrize("at", [0, 1, 63, 64, 65, 575, 576, 577, 30_000])
def test_one_other_token_is_found_wherever_it_stands(at: int) -> None:
    one = tuple(range(30_001))
    assert common_beginning(one, (*one[:at], -1, *one[at + 1 :])) == at
