"""Cases are in files: title and path, the original, the update, and what comes of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.suggest.apply.merge import UNDECIDED, merge
from calomel.suggest.apply.snippet import ApplyPrompt, ApplyPromptError, is_marker, parse_apply

FOLDER = Path(__file__).parent / "cases"


def cases() -> Iterator[Any]:
    for file in sorted(FOLDER.glob("*.txt")):
        for part in file.read_text(encoding="utf-8").split("#### ")[1:]:
            head, *sections = part.split("==== ")
            (_, original), (_, update), (verdict, expected) = (each.split("\n", 1) for each in sections)
            yield pytest.param(original, update, verdict, expected, id=head.partition(" | ")[0])


@pytest.mark.parametrize(("original", "update", "verdict", "expected"), list(cases()))
def test_a_snippet_is_merged(original: str, update: str, verdict: str, expected: str) -> None:
    merged = merge(original, update)
    if verdict == "merged":
        assert (merged.text, merged.warning) == (expected, None)
        return
    assert merged.text == original
    assert merged.warning is not None
    assert (merged.warning == UNDECIDED) == (verdict == "undecided")


ORIGINAL = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


UPDATE = "# ... existing code ...\ndef two():\n    return 22\n"


MERGED = "def one():\n    return 1\n\n\ndef two():\n    return 22\n"


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_are_those_of_the_file(end: str) -> None:
    assert merge(ORIGINAL.replace("\n", end), UPDATE).text == MERGED.replace("\n", end)
    assert merge(ORIGINAL, UPDATE.replace("\n", end)).text == MERGED
    # And so is a byte order mark.
    assert merge("\ufeff" + ORIGINAL, UPDATE).text == "\ufeff" + MERGED


def test_an_empty_file_becomes_the_snippet() -> None:
    assert merge("", "x = 1\n").text == "x = 1\n"


@pytest.mark.parametrize(
    ("original", "update", "says"),
    [
        pytest.param(ORIGINAL, "\n", "does not match a place", id="nothing"),
        pytest.param("x = 1\n" * 60_000, "# ...\nx = 2\n", "too long", id="lines"),
        pytest.param("xoxb-" * 30_000, "# ...\nx = 2\n", "too long", id="characters of a line"),
    ],
)
def test_what_is_refused_says_why(original: str, update: str, says: str) -> None:
    merged = merge(original, update)
    assert merged.text == original
    assert says in str(merged.warning)


MARKERS = [
    "    // ... existing code ...",
    "/* ... existing code ... */",
    "<!-- ... existing code ... -->",
    "-- ... existing code ...",
    "# ... (rest of the code remains unchanged)",
    "# rest of the code remains the same",
    "# …",
    "// ... keep everything else the same ...",
    "# [... existing code ...]",
]
CODE = [
    "",
    "...",
    "foo(...args)",
    "# wait for it...",
    "# the rest of the arguments are passed on to the parent",
    "return  # ... existing code ...",
    "print('... existing code ...')",
]


@pytest.mark.parametrize("line", [*MARKERS, *CODE])
def test_a_comment_for_what_stays_is_a_marker_and_no_other_line_is(line: str) -> None:
    assert is_marker(line) == (line in MARKERS)


def test_a_row_of_dots_takes_no_longer_than_a_person_waits() -> None:
    began = time.process_time()
    assert not is_marker(f"# {'.' * 60}!")
    assert time.process_time() - began <= 3.0


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


TAGGED = PUBLISHED.format("a", "b")


@pytest.mark.parametrize(
    "message",
    [
        *(TAGGED + end for end in ("\n", "\n\n", "<|!@#IS_APPLY!@#|>", "\n\n<|!@#IS_NEXT_EDIT!@#|>")),
        TAGGED.replace("\n", "\r\n"),
        "<|original_code|>a<|/original_code|><|update_snippet|>b<|/update_snippet|>",
    ],
    ids=["a line end", "a blank line", "a mark", "a blank line and a mark", "Windows", "one line"],
)
def test_what_clients_put_behind_and_between_the_tags_is_left_out(message: str) -> None:
    assert parse_apply(message) == ApplyPrompt("a", "b")


def test_tags_may_be_left_open() -> None:
    assert parse_apply("<|original_code|>\na\n<|update_snippet|>\nb") == ApplyPrompt("a\n", "b")


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
