from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.fim_tokens import parse_fim
from calomel.prompts.parts import Excerpt, PromptParts

# As clients write them: {p} before the hole, {s} behind it.
TEMPLATES = {
    "qwen": "<|fim_prefix|>{p}<|fim_suffix|>{s}<|fim_middle|>",
    "qwen, suffix first": "<|fim_suffix|>{s}<|fim_prefix|>{p}<|fim_middle|>",
    "starcoder": "<fim_prefix>{p}<fim_suffix>{s}<fim_middle>",
    "starcoder, suffix first": "<fim_prefix><fim_suffix>{s}<fim_middle>{p}",
    "santacoder": "<fim-prefix>{p}<fim-suffix>{s}<fim-middle>",
    "deepseek": "<｜fim▁begin｜>{p}<｜fim▁hole｜>{s}<｜fim▁end｜>",  # noqa: RUF001
    "deepseek with a beginning": "<｜begin▁of▁sentence｜><｜fim▁begin｜>{p}<｜fim▁hole｜>{s}<｜fim▁end｜>",  # noqa: RUF001
    "codestral": "[SUFFIX]{s}[PREFIX]{p}",
    "codestral with a beginning": "<s>[SUFFIX]{s}[PREFIX]{p}",
    "glm": "<|code_prefix|>{p}<|code_suffix|>{s}<|code_middle|>",
    "codellama": "<PRE> {p} <SUF>{s} <MID>",
    "codellama, suffix first": "<PRE> <SUF>{s} <MID> {p}",
    "seed-coder": "<[fim-suffix]>{s}<[fim-prefix]>{p}<[fim-middle]>",
}


def hole(prefix: str, suffix: str, path: str | None = None, related: tuple[Excerpt, ...] = ()) -> PromptParts:
    return PromptParts(related, path=path, prefix=prefix, suffix=suffix)


_TEXT = st.text(alphabet="ab \n\t{}é🙂", max_size=20)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@given(prefix=_TEXT, suffix=_TEXT)
def test_every_format_is_read_byte_for_byte(template: str, prefix: str, suffix: str) -> None:
    prompt = template.format(p=prefix, s=suffix)

    assert parse_fim(prompt) == hole(prefix, suffix)


@given(_TEXT, _TEXT)
def test_a_prompt_without_tokens_is_the_text_before_the_hole(prefix: str, suffix: str) -> None:
    assert parse_fim(prefix, suffix) == hole(prefix, suffix)
    assert parse_fim(prefix) == parse_fim(prefix, "<|endoftext|>") == hole(prefix, "")


def test_files_of_a_repository_are_excerpts_and_the_last_name_is_the_files_own() -> None:
    prompt = (
        "<|repo_name|>shop\n<|file_sep|>src/a.py\nx = 1\n<|file_sep|>src/b.py\ny = 2\n\n"
        "<|file_sep|>src/c.py\n<|fim_prefix|>def f():\n    <|fim_suffix|>\nf()\n<|fim_middle|>"
    )

    assert parse_fim(prompt) == hole(
        "def f():\n    ",
        "\nf()\n",
        "src/c.py",
        (Excerpt("src/a.py", 0, "x = 1\n"), Excerpt("src/b.py", 0, "y = 2\n\n")),
    )


def test_files_in_the_signs_of_codestral() -> None:
    prompt = "[SUFFIX]}\n[PREFIX]+++++ a.js\nlet x\n+++++ b.js\nfunction f() {"

    assert parse_fim(prompt) == hole("function f() {", "}\n", "b.js", (Excerpt("a.js", 0, "let x\n"),))
    assert parse_fim(prompt.partition("[PREFIX]")[2], "}\n") == parse_fim(prompt)


@pytest.mark.parametrize(
    "text",
    [
        "TOKEN = '<|fim_middle|>'\n",
        "a[PREFIX]b[SUFFIX]",
        "<|fim_suffix|>",
        "<PRE> x",
        "<|fim_middle|>",
        "# language: python\n# indentation: 4 spaces\nx",
        "x <|fim_prefix|> y <|fim_suffix|> z <|fim_middle|>\n",
        "[SUFFIX]",
        "\n<|file_sep|>a\n",
    ],
)
def test_tokens_in_the_users_text_are_text(text: str) -> None:
    assert parse_fim(text) == hole(text, "")
    assert parse_fim(text, "behind") == hole(text, "behind")


def test_tokens_of_one_format_are_text_in_another() -> None:
    prompt = TEMPLATES["starcoder"].format(p="'<|fim_prefix|>' [PREFIX] <PRE>", s="<|fim_middle|> <MID>")

    assert parse_fim(prompt) == hole("'<|fim_prefix|>' [PREFIX] <PRE>", "<|fim_middle|> <MID>")


_TOKENS = sorted(
    {token for text in TEMPLATES.values() for token in text.replace("{p}", " ").replace("{s}", " ").split()}
)


@given(st.lists(st.one_of(st.sampled_from([*_TOKENS, "<|file_sep|>", "\n", "+++++ "]), _TEXT)), st.none() | _TEXT)
def test_any_text_is_read(pieces: list[str], suffix: str | None) -> None:
    found = parse_fim("".join(pieces), suffix)

    assert len(found.prefix) + len(found.suffix) <= sum(map(len, pieces)) + len(suffix or "")
