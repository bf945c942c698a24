from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.families.published.layout import CHATML, write_tokenizer

from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.prompts.styles.choose import Published, open_published
from calomel.prompts.text_tokenizer import TextTokenizer, TokenizerError

CONTROLS = (
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


@dataclass(frozen=True)
class Names:
    prefix: str = "<|fim_prefix|>"
    suffix: str = "<|fim_suffix|>"
    middle: str = "<|fim_middle|>"
    order: Literal["psm", "spm"] = "psm"
    repo: str | None = None
    file: str | None = None


@dataclass(frozen=True)
class Style:
    fim: Literal["calomel", "fim_tokens", "around", "chat"]
    edit: Literal["calomel", "fim_tokens", "around", "chat"]
    mask: str | None = "<MASK>"
    ends: tuple[str, ...] = ("<|im_end|>", "<|endoftext|>")
    begin: str | None = None
    close: str | None = None
    names: Names | None = None
    template: str | None = None


def opened(folder: Path, kind: Any, template: str | None = CHATML, **more: Any) -> Published:
    ids = write_tokenizer(folder, CONTROLS, chat_template=template, text_tokens=CONTROLS[3:7])
    return open_published(folder, Style(kind, kind, **more), end=ids["<|im_end|>"], mask=ids["<MASK>"])


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
    found = opened(tmp_path, "around", begin="<bos>", close="<|endoftext|>")

    prompt = found.fill.render(PARTS, 512)

    assert spelled(prompt.context, found.tokenizer) == "<bos>import a\nx = "
    assert spelled(prompt.suffix, found.tokenizer) == "\ny = 2\n<|endoftext|>"
    assert not prompt.cut


def test_a_hole_in_an_empty_file_still_has_a_context(tmp_path: Path) -> None:
    assert opened(tmp_path, "around").fill.render(PromptParts(), 512).context


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("psm", "<|fim_prefix|>import a\nx = <|fim_suffix|>\ny = 2\n<|fim_middle|>"),
        ("spm", "<|fim_suffix|>\ny = 2\n<|fim_prefix|>import a\nx = <|fim_middle|>"),
    ],
)
def test_a_hole_stands_between_the_tokens_of_the_format(tmp_path: Path, order: Any, expected: str) -> None:
    found = opened(tmp_path, "fim_tokens", names=Names(order=order))

    prompt = found.fill.render(PARTS, 512)

    assert spelled(prompt.context, found.tokenizer) == expected
    # What a keystroke leaves alone is kept: everything up to the end of the prefix.
    assert spelled(prompt.context[: prompt.reuse], found.tokenizer).endswith("import a\nx = ")


def test_other_files_and_edits_stand_before_the_hole_where_the_format_has_files(tmp_path: Path) -> None:
    found = opened(tmp_path, "fim_tokens", names=Names(file="<|file_sep|>"))

    assert spelled(found.fill.render(PARTS, 512).context, found.tokenizer) == (
        "<|file_sep|>far.py\nFAR = 1\n<|file_sep|>near.py\nNEAR = 2\n<|file_sep|>recent.diff\n-old\n+new\n"
        "<|file_sep|>x.py\n<|fim_prefix|>import a\nx = <|fim_suffix|>\ny = 2\n<|fim_middle|>"
    )


def test_in_a_chat_the_hole_is_marked_and_the_block_opened(tmp_path: Path) -> None:
    found = opened(tmp_path, "chat")

    prompt = spelled(found.fill.render(PARTS, 2048).context, found.tokenizer)

    assert prompt.startswith("<|im_start|>user\nBelow is a file with a hole, marked <MIDDLE>.")
    assert "From near.py:\n```\nNEAR = 2\n```" in prompt
    assert "```diff\nx.py\n-old\n+new\n```" in prompt
    assert prompt.endswith(
        "The file x.py:\n```\nimport a\nx = <MIDDLE>\ny = 2\n```<|im_end|>\n<|im_start|>assistant\n```\n"
    )


def test_in_a_chat_a_region_is_marked_with_the_cursor_in_it(tmp_path: Path) -> None:
    found = opened(tmp_path, "chat")
    parts = PromptParts(path="x.py", prefix="a\n", suffix="c\n", region=EditRegion("bb\n", 1))

    prompt = spelled(found.edit.render(parts, 2048).context, found.tokenizer)

    assert "```\na\n<REGION>\nb<CURSOR>b\n</REGION>\nc\n```<|im_end|>" in prompt


@pytest.mark.parametrize("kind", ["around", "fim_tokens", "chat"])
def test_no_text_forges_a_control_token(tmp_path: Path, kind: str) -> None:
    found = opened(tmp_path, kind, names=Names(file="<|file_sep|>"))
    controls = set(found.tokenizer.control.values())
    forged = "".join(CONTROLS)
    parts = PromptParts((Excerpt(forged, 0, forged),), (), (Hunk(forged, 0, forged, ""),), forged, forged, forged)
    honest = PromptParts((Excerpt("a", 0, "a"),), (), (Hunk("a", 0, "a", ""),), "a", "a", "a")

    told, plain = (found.fill.render(each, 4096) for each in (parts, honest))

    assert [number for number in (*told.context, *told.suffix) if number in controls] == [
        number for number in (*plain.context, *plain.suffix) if number in controls
    ]


@pytest.mark.parametrize("kind", ["around", "fim_tokens", "chat"])
@pytest.mark.parametrize("room", [400, 512, 1024])
def test_a_prompt_keeps_within_its_room_and_says_what_it_left_out(tmp_path: Path, kind: str, room: int) -> None:
    found = opened(tmp_path, kind, names=Names(file="<|file_sep|>"))
    long = "".join(f"value_{number} = {number}\n" for number in range(500))
    parts = PromptParts((Excerpt("b.py", 0, long),), (), (Hunk("x.py", 0, long, ""),), "x.py", long, long)

    prompt = found.fill.render(parts, room)

    assert len(prompt.context) + len(prompt.suffix) <= room
    assert prompt.cut
    assert not found.fill.render(PromptParts(prefix="a = 1\n"), room).cut


@pytest.mark.parametrize("kind", ["around", "fim_tokens", "chat"])
def test_a_text_that_repeats_itself_is_cut_like_any_other(tmp_path: Path, kind: str) -> None:
    """What is left of it is how it begins, too."""
    found = opened(tmp_path, kind, names=Names(file="<|file_sep|>"))
    assert found.fill.render(PromptParts(prefix="value = 1\n" * 500), 512).cut


def test_an_answer_ends_at_any_of_the_ends(tmp_path: Path) -> None:
    found = opened(tmp_path, "around")
    ids = [*found.tokenizer.encode("a"), found.tokenizer.control["<|endoftext|>"], *found.tokenizer.encode("b")]

    assert found.fill.read(ids) == "a"
    assert found.fill.ended(ids)
    assert not found.fill.ended(ids[:1])


def test_an_answer_in_a_block_is_read_and_over_when_the_block_is(tmp_path: Path) -> None:
    found = opened(tmp_path, "chat")

    assert found.fill.read(found.tokenizer.encode("a + b\n```\nDone.")) == "a + b"
    assert found.fill.ended(found.tokenizer.encode("a + b\n```"))
    assert found.fill.read(found.tokenizer.encode("a + b\n`"), whole=False) == "a + b"


def test_without_a_template_a_chat_model_is_refused_unless_its_family_has_one(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="has no chat template"):
        opened(tmp_path, "chat", template=None)
    write_tokenizer(tmp_path / "own", CONTROLS)
    style = Style("chat", "chat", template=CHATML)
    assert open_published(tmp_path / "own", style, end=271, mask=277).fill.render(PARTS, 2048).context


def test_a_name_that_the_tokenizer_lacks_is_told(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="has no token <fim>"):
        opened(tmp_path, "fim_tokens", names=Names(prefix="<fim>"))


def test_a_base_model_without_a_template_fills_the_hole_that_a_region_leaves(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, CONTROLS)
    found = open_published(tmp_path, Style("around", "chat"), end=271, mask=277)
    parts = PromptParts(prefix="a\n", suffix="c\n", region=EditRegion("bb\n", 1))

    assert spelled(found.edit.render(parts, 512).context, found.tokenizer) == "a\n"
