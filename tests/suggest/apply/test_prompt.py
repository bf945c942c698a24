from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.suggest.apply.snippet import ApplyPrompt, ApplyPromptError, parse_apply

PUBLISHED = "<|original_code|>\n{}\n<|/original_code|>\n\n<|update_snippet|>\n{}\n<|/update_snippet|>"
SUGGESTED = "{}\n\nThe following code was suggested as an edit:\n```\n{}\n```\nPlease apply it to the previous code."
REWRITE = (
    "This is the code to rewrite:\n```python\n{}\n```\n\n"
    "The user's request is: \"The following code was suggested as an edit:\n```\n{}\n```\n"
    'Please apply it to the previous code."\n\nDO NOT output any natural language.'
)


@given(st.text(), st.text())
def test_what_is_between_the_published_tags_comes_back_byte_for_byte(original: str, update: str) -> None:
    if "<|" not in original + update:
        assert parse_apply(PUBLISHED.format(original, update)) == ApplyPrompt(original, update)


@pytest.mark.parametrize("end", ["\n", "\n\n", "<|!@#IS_APPLY!@#|>", "\n\n<|!@#IS_NEXT_EDIT!@#|>"])
def test_what_clients_put_behind_the_tags_is_left_out(end: str) -> None:
    assert parse_apply(PUBLISHED.format("a", "b") + end) == ApplyPrompt("a", "b")


def test_the_sections_may_come_in_the_other_order() -> None:
    text = "<|update_snippet|>\nb\n<|/update_snippet|>\n<|original_code|>\na\n<|/original_code|>"
    assert parse_apply(text) == ApplyPrompt("a", "b")


def test_tags_may_be_left_open_and_lines_end_otherwise() -> None:
    assert parse_apply("<|original_code|>\na\n<|update_snippet|>\nb") == ApplyPrompt("a\n", "b")
    assert parse_apply(PUBLISHED.format("a", "b").replace("\n", "\r\n")) == ApplyPrompt("a", "b")
    assert parse_apply("<|original_code|>a<|/original_code|><|update_snippet|>b<|/update_snippet|>") == ApplyPrompt(
        "a", "b"
    )


def test_a_file_that_speaks_of_the_tags_is_kept_whole() -> None:
    original = 'OPEN = "<|original_code|>"\nUPDATE = "<|update_snippet|>"\n'
    assert parse_apply(PUBLISHED.format(original, "b")) == ApplyPrompt(original, "b")


@pytest.mark.parametrize("template", [SUGGESTED, REWRITE])
def test_the_sentences_of_continue_are_read(template: str) -> None:
    found = parse_apply(template.format("def a():\n    pass", "def a():\n    return 1") + "<|!@#IS_APPLY!@#|>")
    assert found == ApplyPrompt("def a():\n    pass", "def a():\n    return 1")


@pytest.mark.parametrize("text", ["", "hello", "<|original_code|>\na\n<|/original_code|>", "<|update_snippet|>\nb"])
def test_a_message_without_file_or_snippet_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ApplyPromptError, match="The message has no") as caught:
        parse_apply(text)
    assert "hello" not in str(caught.value)


@given(st.lists(st.sampled_from(["<|original_code|>", "<|/original_code|>", "<|update_snippet|>", "x\n", "```\n"])))
def test_no_message_breaks_the_reader(pieces: list[str]) -> None:
    with suppress(ApplyPromptError):
        parse_apply("".join(pieces))
