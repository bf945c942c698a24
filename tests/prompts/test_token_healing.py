from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.token_healing import HealingConstraint, Pieces, TokenHealing, cut_back
from calomel.prompts.tokenizer import Tokenizer

PIECES = Pieces((b"", b"a", b"ab", b"abc", b"b", b"bc!", b"x"))


def allowed(mask: bytes) -> set[int]:
    return {token for token in range(len(PIECES.by_id)) if mask[token // 8] >> token % 8 & 1}


def test_tokens_may_be_a_part_of_the_text_or_go_beyond_it() -> None:
    walk = HealingConstraint("ab", PIECES).begin()
    assert allowed(walk.allowed()) == {1, 2, 3}
    assert not walk.may_end()
    assert walk.advance([1]) == 1
    assert allowed(walk.allowed()) == {4, 5}
    assert walk.advance([5, 0, 6]) == 3
    assert walk.may_end()
    assert allowed(walk.allowed()) == set(range(len(PIECES.by_id)))


@given(st.text("abcx!", min_size=1, max_size=5))
def test_what_fits_is_what_a_look_at_every_token_finds(text: str) -> None:
    wanted = text.encode()
    naive = {
        token
        for token, piece in enumerate(PIECES.by_id)
        if piece and (piece.startswith(wanted) or wanted.startswith(piece))
    }
    assert set(PIECES.fitting(wanted)) == naive


@given(st.lists(st.text("ab1 .(", min_size=1, max_size=40), min_size=40, max_size=80))
def test_the_last_word_of_a_long_line_is_that_of_the_whole_line(nano: Tokenizer, words: list[str]) -> None:
    line = " ".join(words)
    assert cut_back(line, nano) == (nano.boundary(line) if line.strip() else len(line))


def test_no_more_than_the_end_of_a_line_is_split_into_words(nano: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    boundary = Tokenizer.boundary

    def watched(self: Tokenizer, text: str) -> int:
        looked.append(len(text))
        return boundary(self, text)

    monkeypatch.setattr(Tokenizer, "boundary", watched)
    for unit in ("xoxb-", "a ", "1"):
        cut_back(unit * 100_000, nano)
    assert max(looked) <= 512


def test_the_half_word_is_what_stands_before_the_cursor(nano: Tokenizer) -> None:
    assert TokenHealing.before("if not numbers:\n    retu", nano).text == "retu"
    assert TokenHealing.before("x = tot", nano).text == " tot"
    assert TokenHealing.before("x = 1\n    ", nano).text == ""
    assert TokenHealing.before("", nano).text == ""
    assert TokenHealing.before("x = " + "a" * 100, nano).text == ""


def test_nothing_is_owed_where_a_stop_string_could_begin_in_it(nano: Tokenizer) -> None:
    assert TokenHealing.before("x = tot", nano, ("\n",)).text == " tot"
    assert TokenHealing.before("x = tot", nano, ("tal",)).text == ""
    assert TokenHealing.before("x = tot", nano, ("o",)).text == ""
