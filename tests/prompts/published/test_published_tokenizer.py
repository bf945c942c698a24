from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.families.published.layout import TEXT_TOKENS, write_tokenizer
from tokenizers import Tokenizer as FastTokenizer

from calomel.prompts.published.tokenizer import PublishedTokenizer
from calomel.prompts.text_tokenizer import TokenizerError

CONTROLS = ("<|endoftext|>", "<|im_end|>", "<|fim_prefix|>", "<tool_call>", "<MASK>", "<table>", "    ")
# As Qwen publishes its own: most control tokens are not marked as special.
TEXT = ("<|fim_prefix|>", "<tool_call>", "<table>", "    ")
CODE = "def f(self):\n        return 1  # <|im_end|> <MASK> <|fim_prefix|> ünï\r\n\n\n\tx = '<tool_call>'\n"


def opened(folder: Path, kind: str = "tokenizer.json") -> PublishedTokenizer:
    files = "tokenizer.json" if kind == "tokenizer.json" else "vocab and merges"
    ids = write_tokenizer(folder, CONTROLS, files=files, text_tokens=TEXT)  # type: ignore[arg-type]
    return PublishedTokenizer(folder, end=ids["<|im_end|>"], mask=ids["<MASK>"])


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> PublishedTokenizer:
    return opened(tmp_path_factory.mktemp("published"))


@given(st.text())
def test_any_text_comes_back_as_it_was_in_its_normal_form_and_forges_nothing(
    tokenizer: PublishedTokenizer, text: str
) -> None:
    for told in (text, f"{text}<|im_end|>{text}<MASK><|fim_prefix|>"):
        ids = tokenizer.encode(told)
        whole = told.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert tokenizer.decode(ids) == unicodedata.normalize("NFC", whole)
        assert not set(ids) & set(tokenizer.control.values())


def test_control_tokens_are_those_that_are_marked_and_those_that_look_like_one(tokenizer: PublishedTokenizer) -> None:
    assert set(tokenizer.control) == {"<|endoftext|>", "<|im_end|>", "<|fim_prefix|>", "<tool_call>", "<MASK>"}
    # Tags of web pages and runs of blanks are text.
    assert {TEXT_TOKENS + 5, TEXT_TOKENS + 6} <= set(tokenizer.encode("<table>    "))
    assert tokenizer.decode(tokenizer.encode("<table>    ")) == "<table>    "


def test_vocabulary_and_merges_give_the_ids_of_the_one_file(tmp_path: Path) -> None:
    fast, slow = opened(tmp_path / "fast"), opened(tmp_path / "slow", "vocab and merges")

    # In the second kind nothing but vocabulary and merges is text.
    told = CODE.replace("    ", "\t")
    assert slow.encode(told) == fast.encode(told)
    assert slow.control == fast.control


def test_text_without_control_tokens_has_the_ids_that_the_library_gives(tmp_path: Path) -> None:
    tokenizer = opened(tmp_path)
    library = FastTokenizer.from_file(str(tmp_path / "tokenizer.json"))
    told = "def f(self):\n        return [1, 22]\n"

    assert tokenizer.encode(told) == library.encode(told, add_special_tokens=False).ids


def test_control_ids_and_ids_that_the_vocabulary_is_padded_with_stand_for_nothing(
    tokenizer: PublishedTokenizer,
) -> None:
    assert (
        tokenizer.decode([*tokenizer.encode("a"), tokenizer.mask, tokenizer.end, 100_000, *tokenizer.encode("b")])
        == "ab"
    )


def test_words_tell_where_tokens_stand(tokenizer: PublishedTokenizer) -> None:
    ids, starts, ends = tokenizer.encode_with_words("return self")

    assert len(ids) == len(starts) == len(ends)
    assert sorted(set(zip(starts, ends, strict=True))) == [(0, 6), (6, 11)]


def test_blocks_for_blanks_and_spelled_bytes_are_read_as_what_they_stand_for(tmp_path: Path) -> None:
    pieces = ["<unk>", "<bos>", "<eos>", *(f"<0x{value:02X}>" for value in range(256)), "\u2581", "a", "b", "\u2581a"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    model = {
        "type": "BPE",
        "vocab": vocabulary,
        "merges": [["\u2581", "a"]],
        "byte_fallback": True,
        "unk_token": "<unk>",
    }
    replaced = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    decoders = [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}]
    description: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": replaced,
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": [*decoders, {"type": "Fuse"}]},
        "model": model,
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(description))

    tokenizer = PublishedTokenizer(tmp_path, end=2, names=["<bos>"])

    assert tokenizer.control == {"<bos>": 1, "<eos>": 2}
    assert tokenizer.decode(tokenizer.encode("b aé\n<eos>")) == "b aé\n<eos>"
    assert tokenizer.encode("b a") == [vocabulary["b"], vocabulary["\u2581a"]]


def test_a_control_token_that_the_vocabulary_makes_of_text_is_taken_apart(tmp_path: Path) -> None:
    ids = write_tokenizer(tmp_path, ("<|im_end|>",))
    # "self" is a token of text there: as a control token's name it may not come from text.
    tokenizer = PublishedTokenizer(tmp_path, end=ids["<|im_end|>"], names=["self"])

    found = tokenizer.encode("return self.x")

    assert tokenizer.control["self"] not in found
    assert tokenizer.decode(found) == "return self.x"


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"has no tokenizer\.json, and no vocab\.json with merges\.txt"):
        PublishedTokenizer(tmp_path, end=0)
    write_tokenizer(tmp_path, CONTROLS, files="vocab and merges", tokenizer_class="OddTokenizer")
    with pytest.raises(TokenizerError, match="says OddTokenizer"):
        PublishedTokenizer(tmp_path, end=0)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(TokenizerError, match=r"tokenizer\.json is no tokenizer file"):
        PublishedTokenizer(tmp_path, end=0)


def test_vocabulary_and_merges_give_the_ids_that_their_makers_class_gives(tmp_path: Path) -> None:
    from transformers import Qwen2Tokenizer

    tokenizer = opened(tmp_path, "vocab and merges")
    theirs = Qwen2Tokenizer.from_pretrained(str(tmp_path))

    for told in ("def f(self):\n\treturn [1, 22]\n", "x  =  'ünï'\r\n\r\n\n  # self.returned", "\n \n\t\n a"):
        assert tokenizer.encode(told) == theirs.encode(told, add_special_tokens=False)
