from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.tokenizer import SPECIAL_TOKENS, Tokenizer, TokenizerError, line_cuts

CODE = st.text(alphabet=st.sampled_from(list("ab_1 \t\n\r():=é漢🙂\u200d\ufeff")), max_size=60) | st.text(max_size=60)


@given(text=CODE)
def test_every_text_survives_encoding_and_decoding(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(text=CODE, more=CODE)
def test_appending_changes_only_tokens_behind_the_last_pre_token_boundary(
    tokenizer: Tokenizer, text: str, more: str
) -> None:
    stable = tokenizer.encode(text[: tokenizer.boundary(text)])

    assert tokenizer.encode(text + more)[: len(stable)] == stable


@given(text=CODE)
def test_cutting_a_text_inside_a_pre_token_keeps_the_tokens_before_it(tokenizer: Tokenizer, text: str) -> None:
    ids, starts, ends = tokenizer.encode_with_words(text)
    for cut in range(len(text) + 1):
        whole = [token for token, end in zip(ids, ends, strict=True) if end <= cut]
        boundary = max((start for start, end in zip(starts, ends, strict=True) if end > cut >= start), default=cut)

        assert tokenizer.encode(text[:cut]) == whole + tokenizer.encode(text[boundary:cut])


def test_text_that_names_a_control_token_is_encoded_as_its_characters(tokenizer: Tokenizer) -> None:
    specials = {tokenizer.end, tokenizer.mask, tokenizer.file, tokenizer.near, tokenizer.middle}

    ids = tokenizer.encode("".join(SPECIAL_TOKENS))

    assert not specials & set(ids)
    assert tokenizer.decode(ids) == "".join(SPECIAL_TOKENS)


def test_a_lone_surrogate_becomes_the_replacement_character(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("a\ud83d")) == "a\ufffd"


def test_a_file_that_is_missing_or_no_tokenizer_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    with pytest.raises(TokenizerError, match=r"tokenizer\.json does not exist"):
        Tokenizer.from_file(file)
    file.write_text("{}")
    with pytest.raises(TokenizerError, match=r"tokenizer\.json is not a tokenizer file"):
        Tokenizer.from_file(file)


LINES = st.lists(
    st.sampled_from(
        ["", "\n", "\r\n", "\r", "  ", "\t", "x = 1\n", "    y\r\n", "\n\n", "\r\n\r\n", "a" * 40, "é\n", "\u2028"]
    )
    | CODE,
    max_size=60,
).map("".join)


@given(text=LINES, more=LINES, times=st.sampled_from([1, 1, 6, 40]))
def test_chunks_of_any_text_give_the_tokens_of_the_whole(
    tokenizer: Tokenizer, text: str, more: str, times: int
) -> None:
    text = text * times + more
    cuts = line_cuts(text)

    assert cuts == sorted(set(cuts))
    assert tokenizer._encode(text) == [
        token for start, end in pairwise([0, *cuts, len(text)]) for token in tokenizer._encode(text[start:end])
    ]
    assert tokenizer.encode(text) == tokenizer._encode(text)


@given(text=LINES, times=st.sampled_from([1, 6, 40]), count=st.integers(1, 400))
def test_the_place_of_a_token_counted_from_the_end_is_that_of_its_pre_token(
    tokenizer: Tokenizer, text: str, times: int, count: int
) -> None:
    text = "value = compute(1)\n" * 30 + text * times
    ids, starts, _ = tokenizer.encode_with_words(text)

    assert tokenizer.encode_last(text, count) == (ids, starts[-count] if len(ids) > count else None)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_changed_line_leaves_the_chunks_around_it_alone(
    tokenizer: Tokenizer, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = f"def f(x):{end}    y = x + 1{end}    return y{end}"
    blocks = [f"# {number}{end}{block}{end}" for number in range(400)]
    encoded: list[int] = []
    plain = tokenizer._encode

    def counted(text: str) -> list[int]:
        encoded.append(len(text))
        return plain(text)

    monkeypatch.setattr(tokenizer, "_encode", counted)
    tokenizer.encode("".join(blocks))
    first = sum(encoded)
    for changed in (0, 200, 399):
        for typed in ("y", "yes", "", f"{end}{end}"):
            encoded.clear()
            blocks[changed] = f"# {typed}{end}{block}{end}"
            tokenizer.encode("".join(blocks))
            assert sum(encoded) < 2048 < first / 8
