from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.suggest.edit import common_prefix, common_suffix, is_boundary


@pytest.mark.parametrize(
    "whole",
    ["\r\n", "e\u0301", "👍🏽", "👩\u200d💻", "❤\ufe0f", "🇦🇹"],
    ids=["crlf", "accent", "skin", "joiner", "heart", "flag"],
)
def test_what_is_one_character_to_a_person_is_not_cut(whole: str) -> None:
    text = f"a{whole}b"
    assert [at for at in range(len(text) + 1) if is_boundary(text, at)] == [0, 1, 1 + len(whole), 2 + len(whole)]


def test_two_flags_may_be_parted() -> None:
    assert [at for at in range(5) if is_boundary("🇦🇹🇩🇪", at)] == [0, 2, 4]


def test_a_common_beginning_does_not_end_within_a_character() -> None:
    assert common_prefix("xe\u0301", "xe\u0300") == 1
    assert common_prefix("👩\u200d💻", "👩\u200d🔬") == 0


def test_a_common_end_does_not_begin_within_a_character() -> None:
    assert common_suffix("a\r\n", "b\n") == 0
    assert common_suffix("ab\r\n", "cb\r\n") == 3


@given(st.text("ab", max_size=9), st.text("ab", max_size=9))
def test_common_prefix_equals_the_character_by_character_one(first: str, second: str) -> None:
    naive = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    assert common_prefix(first, second) == naive
