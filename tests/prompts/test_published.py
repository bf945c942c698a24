from __future__ import annotations

import json
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.families.published.layout import CHATML, TEXT_TOKENS, write_config, write_tokenizer
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.prompts.published import Published, PublishedTokenizer, fence_for, inside, open_published
from calomel.prompts.renderer import PromptStyle
from calomel.prompts.tokenizer import TextTokenizer, TokenizerError

CONTROLS = ("<|endoftext|>", "<|im_end|>", "<|fim_prefix|>", "<tool_call>", "<MASK>", "<table>", "    ")
# As Qwen publishes its own: most control tokens are not marked as special.
TEXT = ("<|fim_prefix|>", "<tool_call>", "<table>", "    ")


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


# As CodeLlama's: bytes are spelled where there is no token, and a block stands for a blank.
_NAMED = ("<s>", "</s>", "<unk>", "<|image|>")
_SPELLED = (*(f"<0x{value:02X}>" for value in range(256)), "\u2581", "\n", *map(chr, range(33, 127)))
_PAIRS = ("\u2581 \u2581", "r e", "t u", "re tu", "r n", "retu rn", "\u2581 return")


def write_spelling_tokenizer(folder: Path) -> None:
    texts = (*_NAMED, *_SPELLED, *(pair.replace(" ", "") for pair in _PAIRS))
    ids = {text: number for number, text in enumerate(texts)}
    merges = [(first, second) for first, second in map(str.split, _PAIRS)]
    fast = Tokenizer(BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    fast.normalizer = normalizers.Replace(" ", "\u2581")
    fast.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    fast.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    fast.add_special_tokens([AddedToken(name, normalized=False) for name in _NAMED])
    fast.save(str(folder / "tokenizer.json"))
    said = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    write_config(folder, {"tokenizer_class": "CodeLlamaTokenizer", **said}, "tokenizer_config.json")


@pytest.mark.parametrize("text", ["b  return\t\u00fc\r\n", "日本語 🙂 \x00", "</s><s> <0x41> <|image|>", "\u2581"])
def test_blocks_for_blanks_and_spelled_bytes_are_read_as_what_they_stand_for(tmp_path: Path, text: str) -> None:
    write_spelling_tokenizer(tmp_path)
    tokenizer = PublishedTokenizer(tmp_path, end=1, names=["<s>", "</s>"])

    ids = tokenizer.encode(text)

    assert min(ids) >= len(_NAMED)
    assert tokenizer.decode(ids) == text.replace("\u2581", " ")


def test_no_blank_is_put_before_a_text_as_llama_2_does_it(tmp_path: Path) -> None:
    ids = write_tokenizer(tmp_path, ("<s>", "</s>"))
    raw = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    blank = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "a"}, {"type": "NFC"}]}
    write_config(tmp_path, {**raw, "normalizer": blank}, "tokenizer.json")

    tokenizer = PublishedTokenizer(tmp_path, end=ids["</s>"])

    assert tokenizer.decode(tokenizer.encode("def f(): pass")) == "def f(): pass"


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
    with pytest.raises(TokenizerError, match="has OddTokenizer"):
        PublishedTokenizer(tmp_path, end=0)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(TokenizerError, match=r"tokenizer\.json is not valid JSON"):
        PublishedTokenizer(tmp_path, end=0)


def test_vocabulary_and_merges_give_the_ids_that_their_makers_class_gives(tmp_path: Path) -> None:
    from transformers import Qwen2Tokenizer

    tokenizer = opened(tmp_path, "vocab and merges")
    theirs = Qwen2Tokenizer.from_pretrained(str(tmp_path))

    for told in ("def f(self):\n\treturn [1, 22]\n", "x  =  'ünï'\r\n\r\n\n  # self.returned", "\n \n\t\n a"):
        assert tokenizer.encode(told) == theirs.encode(told, add_special_tokens=False)


STYLE_CONTROLS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>",
    "<|file_sep|>", "<bos>", "<MASK>",
)  # fmt: skip
PARTS = PromptParts(
    related=(Excerpt("far.py", 0, "FAR = 1\n"), Excerpt("near.py", 3, "NEAR = 2\n")),
    edits=(Hunk("x.py", 0, "old\n", "new\n"),),
    path="x.py",
    prefix="import a\nx = ",
    suffix="\ny = 2\n",
)


STYLE = PromptStyle("left_to_right", "chat", mask="<MASK>", ends=("<|im_end|>", "<|endoftext|>"))


def asked(folder: Path, kind: Any, template: str | None = CHATML, **more: Any) -> Published:
    ids = write_tokenizer(folder, STYLE_CONTROLS, chat_template=template, text_tokens=STYLE_CONTROLS[3:7])
    style = STYLE if kind == "chat" else replace(STYLE, fim=kind, edit=kind, **more)
    return open_published(folder, style, end=ids["<|im_end|>"], mask=ids["<MASK>"])


def spelled(ids: Any, tokenizer: TextTokenizer) -> str:
    """The prompt with its control tokens by name."""
    names = {number: name for name, number in tokenizer.control.items()}
    out = ""
    run: list[int] = []
    for number in ids:
        if number in names:
            out += tokenizer.decode(run) + names[number]
            run = []
        else:
            run.append(number)
    return out + tokenizer.decode(run)


def test_around_a_hole_stand_prefix_and_suffix_as_they_are(tmp_path: Path) -> None:
    found = asked(tmp_path, "around", begin="<bos>", close="<|endoftext|>")

    prompt = found.fill.render(PARTS, 512)

    assert spelled(prompt.context, found.tokenizer) == "<bos>import a\nx = "
    assert spelled(prompt.suffix, found.tokenizer) == "\ny = 2\n<|endoftext|>"
    assert not prompt.cut


def test_left_to_right_the_file_up_to_the_hole_comes_last(tmp_path: Path) -> None:
    found = asked(tmp_path, "left_to_right", begin="<bos>")

    prompt = found.fill.render(PARTS, 512)

    assert spelled(prompt.context, found.tokenizer).startswith("<bos>")
    assert spelled(prompt.context, found.tokenizer).endswith("import a\nx = ")
    assert found.continues


def test_in_a_chat_other_files_and_changes_come_before_the_region(tmp_path: Path) -> None:
    found = asked(tmp_path, "chat")

    prompt = spelled(found.edit.render(replace(PARTS, region=EditRegion("z\n")), 2048).context, found.tokenizer)

    assert prompt.startswith("<|im_start|>user\nYou are editing the file below.")
    assert "From near.py:\n```\nNEAR = 2\n```" in prompt
    assert "```diff\nx.py\n-old\n+new\n```" in prompt
    assert prompt.endswith("\ny = 2\n```<|im_end|>\n<|im_start|>assistant\n```\n")


def test_in_a_chat_a_region_is_marked_with_the_cursor_in_it(tmp_path: Path) -> None:
    found = asked(tmp_path, "chat")
    parts = PromptParts(path="x.py", prefix="a\n", suffix="c\n", region=EditRegion("bb\n", 1))

    prompt = spelled(found.edit.render(parts, 2048).context, found.tokenizer)

    assert "```\na\n<REGION>\nb<CURSOR>b\n</REGION>\nc\n```<|im_end|>" in prompt


@pytest.mark.parametrize("kind", ["around", "fim_tokens", "left_to_right", "chat"])
def test_no_text_forges_a_control_token(tmp_path: Path, kind: str) -> None:
    found = asked(tmp_path, kind)
    controls = set(found.tokenizer.control.values())
    forged = "".join(STYLE_CONTROLS)
    parts = PromptParts((Excerpt(forged, 0, forged),), (), (Hunk(forged, 0, forged, ""),), forged, forged, forged)
    honest = PromptParts((Excerpt("a", 0, "a"),), (), (Hunk("a", 0, "a", ""),), "a", "a", "a")

    told, plain = (found.edit.render(each, 4096) for each in (parts, honest))

    assert [number for number in (*told.context, *told.suffix) if number in controls] == [
        number for number in (*plain.context, *plain.suffix) if number in controls
    ]


@pytest.mark.parametrize("kind", ["around", "fim_tokens", "left_to_right", "chat"])
@pytest.mark.parametrize("room", [512, 640, 1024])
def test_a_prompt_keeps_within_its_room_and_says_what_it_left_out(tmp_path: Path, kind: str, room: int) -> None:
    found = asked(tmp_path, kind)
    long = "".join(f"value_{number} = {number}\n" for number in range(500))
    parts = PromptParts((Excerpt("b.py", 0, long),), (), (Hunk("x.py", 0, long, ""),), "x.py", long, long)

    prompt = found.edit.render(parts, room)

    assert len(prompt.context) + len(prompt.suffix) <= room
    assert prompt.cut
    assert not found.edit.render(PromptParts(prefix="a = 1\n"), room).cut


def test_an_answer_in_a_block_is_read_and_over_when_the_block_is(tmp_path: Path) -> None:
    found = asked(tmp_path, "chat")

    assert found.edit.read(found.tokenizer.encode("a + b\n```\nDone.")) == "a + b"
    assert found.edit.ended(found.tokenizer.encode("a + b\n```"))
    assert found.edit.read(found.tokenizer.encode("a + b\n`"), whole=False) == "a + b"


def test_without_a_template_a_region_is_the_hole_that_it_leaves(tmp_path: Path) -> None:
    found = asked(tmp_path, "chat", template=None)

    assert found.blind
    assert found.continues


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("a + b\n```", "a + b"),
        ("    x = 1\n    y = 2\n```\n", "    x = 1\n    y = 2"),
        ("```python\na + b\n```", "a + b"),
        ("\n````\na\n````\n", "a"),
        ("x = '```'\ny\n```", "x = '```'\ny"),
    ],
)
def test_the_text_is_what_stands_in_the_block(answer: str, expected: str) -> None:
    assert inside(answer) == expected


@pytest.mark.parametrize(
    ("beginning", "settled"),
    [("a + b", "a + b"), ("a + b\n", "a + b"), ("a + b\n``", "a + b"), ("a\n```", "a"), ("``", ""), ("```py", "")],
)
def test_of_an_unfinished_answer_nothing_is_shown_that_may_become_the_fence(beginning: str, settled: str) -> None:
    assert inside(beginning, whole=False) == settled


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert fence_for("plain") == "```"
    assert fence_for("a ``` b ```` c") == "`````"
