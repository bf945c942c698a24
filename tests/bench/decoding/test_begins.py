from __future__ import annotations

from pathlib import Path

import pytest

from calomel.bench.decoding.begins import Begins, cut_back, token_pieces
from calomel.bench.heldout import HeldoutFile
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.tokenizer import train_tokenizer

PIECES = (b"", b"a", b"ab", b"abc", b"b", b"bc!", b"x")


def allowed(mask: bytes) -> set[int]:
    return {token for token in range(len(PIECES)) if mask[token // 8] >> token % 8 & 1}


def test_tokens_may_be_a_part_of_the_text_or_go_beyond_it() -> None:
    walk = Begins(b"ab", PIECES).begin()
    assert allowed(walk.allowed()) == {1, 2, 3}
    assert not walk.may_end()
    assert walk.advance([1]) == 1
    assert allowed(walk.allowed()) == {4, 5}
    assert walk.advance([5, 0, 6]) == 3
    assert walk.may_end()
    assert allowed(walk.allowed()) == set(range(len(PIECES)))


def test_what_does_not_fit_is_not_taken_in() -> None:
    walk = Begins(b"ab", PIECES).begin()
    assert walk.advance([1, 6]) == 1
    assert walk.advance([0]) == 0
    assert walk.forced() == ()


@pytest.fixture
def tokenizer(files: tuple[HeldoutFile, ...], tmp_path: Path) -> Tokenizer:
    return train_tokenizer([file.text for file in files], tmp_path / "tokenizer.json", vocab_size=400)


def test_a_prefix_is_cut_back_to_its_last_word(tokenizer: Tokenizer) -> None:
    assert "x = 1\nreturn tot"[cut_back("x = 1\nreturn tot", tokenizer) :] == " tot"
    assert cut_back("x = 1\n    ", tokenizer) == len("x = 1\n    ")
    assert cut_back("", tokenizer) == 0


def test_control_tokens_stand_for_nothing(tokenizer: Tokenizer) -> None:
    pieces = token_pieces(tokenizer)
    assert len(pieces) == tokenizer.size
    assert pieces[tokenizer.end] == b""
    assert b"".join(pieces[token] for token in tokenizer.encode("def f(x):")) == b"def f(x):"
