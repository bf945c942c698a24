from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.prompts.test_zeta import _TAGS, _WORDS, STOP, region

from calomel.prompts.edit_prompt import ForeignPromptError, parse_edits
from calomel.prompts.fim_tokens import parse_fim
from calomel.prompts.mercury import parse_mercury
from calomel.prompts.token_healing import HealingConstraint, Pieces, TokenHealing, cut_back
from calomel.prompts.tokenizer import SPECIAL_TOKENS, Tokenizer, TokenizerError, line_cuts
from calomel.prompts.zeta import parse_zeta, zeta_answer

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


def read_zeta(text: str) -> None:
    read = parse_zeta(f"<[fim-suffix]><[fim-prefix]><filename>a\n<|marker_1|>{text}<[fim-middle]>")
    zeta_answer(read, read.edit.region + "x", STOP)


READERS: dict[str, tuple[list[Callable[[str], object]], list[str]]] = {
    "diff": (
        [parse_edits],
        ["-a\n b\n", "--- ", "--- x\n+++ y\n", "@@ -1,9 +1,9 @@\n", "\\" * 50 + "\n", '"\\', "@" * 40 + "\n", "-\n"],
    ),
    "fim": (
        [parse_fim, lambda text: parse_fim(text, "x"), lambda text: parse_fim(f"<|file_sep|>{text}<|fim_middle|>")],
        ["<|fim_prefix|>", "<|file_sep|>", "\n<|file_sep|>a\n", "[SUFFIX][PREFIX]", "\n+++++ ", "<PRE> <SUF>", "<|"],
    ),
    "mercury": (
        [parse_mercury, lambda text: parse_mercury(region(text))],
        [
            *(f"{tag}\n" for tag in _TAGS),
            *("<|code_to_edit|>", "<|/code_to_edit|>", "<|cursor|>", "<|", " ", "<|!@#IS_NEXT_EDIT!@#|>\n"),
            *("<|code_to_edit|>\n<|/code_to_edit|>\n", "<|current_file_content|>\n<|/current_file_content|>\n"),
        ],
    ),
    "zeta": (
        [lambda text: read_zeta(f"{text}\n=======\n"), lambda text: read_zeta(f"{text}<|marker_2|>\n")],
        [*_WORDS, "<filename>a\n", "<|marker_", "...\n", "-a\n+b\n", "<[fim-middle]>"],
    ),
}


@pytest.mark.parametrize(
    ("name", "piece"),
    [pytest.param(name, piece) for name, (_, pieces) in READERS.items() for piece in pieces],
    ids=repr,
)
def test_a_large_hostile_text_is_read_in_a_moment(name: str, piece: str) -> None:
    for read in READERS[name][0]:
        began = time.perf_counter()
        with contextlib.suppress(ForeignPromptError):
            read(piece * (500_000 // len(piece)))
        assert time.perf_counter() - began < 3
