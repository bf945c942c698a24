"""POST /v1/apply/completions: snippets with markers are merged into their files, or come back with what to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.server.conftest import events

from calomel.suggest import apply
from calomel.suggest.apply import NO_PLACE, TOO_LONG, ApplyPrompt, ApplyPromptError, is_marker, merge, parse_apply

URL = "/v1/apply/completions"
PUBLISHED = "<|original_code|>\n{}\n<|/original_code|>\n\n<|update_snippet|>\n{}\n<|/update_snippet|>"
SUGGESTED = "{}\n\nThe following code was suggested as an edit:\n```\n{}\n```\nPlease apply it to the previous code."
REWRITE = (
    "This is the code to rewrite:\n```python\n{}\n```\n\n"
    "The user's request is: \"The following code was suggested as an edit:\n```\n{}\n```\n"
    'Please apply it to the previous code."\n\nDO NOT output any natural language.'
)
ORIGINAL = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
UPDATE = "# ... existing code ...\ndef two():\n    return 22\n"
MERGED = "def one():\n    return 1\n\n\ndef two():\n    return 22\n"


def cases() -> Iterator[Any]:
    """Of `apply.txt`: title, original, update, and what comes of it."""
    text = (Path(__file__).parent / "apply.txt").read_text(encoding="utf-8")
    for part in text.split("#### ")[1:]:
        head, *sections = part.split("==== ")
        (_, original), (_, update), (verdict, expected) = (each.split("\n", 1) for each in sections)
        yield pytest.param(original, update, expected if verdict == "merged" else None, id=head.strip())


def ask(original: str, update: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": PUBLISHED.format(original, update)}]
    return {"model": "mercury-edit", "messages": messages, **fields}


def answered(client: TestClient, original: str, update: str) -> tuple[str, str | None]:
    """The content and the warning of an answer; those of a stream are the same."""
    whole = client.post(URL, json=ask(original, update)).json()
    content, warning = whole["choices"][0]["message"]["content"], whole["warning"]
    *chunks, done = events(client.post(URL, json=ask(original, update, stream=True)))
    assert done == "[DONE]"
    assert "".join(choice["delta"]["content"] for chunk in chunks for choice in chunk["choices"]) == content
    assert chunks[-1]["warning"] == warning
    return content, warning


@pytest.mark.parametrize(("original", "update", "expected"), list(cases()))
def test_a_snippet_is_merged_where_its_place_is_certain(
    client: TestClient, original: str, update: str, expected: str | None
) -> None:
    assert answered(client, original, update) == ((original, NO_PLACE) if expected is None else (expected, None))


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_and_a_byte_order_mark_are_those_of_the_file(client: TestClient, end: str) -> None:
    assert answered(client, ORIGINAL.replace("\n", end), UPDATE)[0] == MERGED.replace("\n", end)
    assert answered(client, ORIGINAL, UPDATE.replace("\n", end))[0] == MERGED
    assert answered(client, "\ufeff" + ORIGINAL, UPDATE)[0] == "\ufeff" + MERGED
    assert answered(client, ORIGINAL.rstrip("\n"), UPDATE)[0] == MERGED.rstrip("\n")


@pytest.mark.parametrize(
    ("original", "update"),
    [
        ("// note\n" * 8_000, "// ...\nx = 2;\n// ...\n"),
        ("".join(f"// note {n} same rest other keep\n" for n in range(8_000)), "// ...\nx = 2;\n// ...\n"),
        ("(" * 180_000, "// ...\n" + "(" * 180_000 + "x\n// ...\n"),
        ("x = 1\n", "`" * 180_000 + "\n" + "~" * 9),
    ],
    ids=["equal comments", "comments", "brackets", "fences"],
)
def test_a_large_file_keeps_nobody_waiting(client: TestClient, original: str, update: str) -> None:
    """No turn of the event loop takes long either: every test of this folder watches it."""
    began = time.process_time()
    assert answered(client, original, update) == (original, NO_PLACE)
    assert time.process_time() - began < 2.0


def test_a_merge_that_takes_too_long_or_whose_client_has_left_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert merge(ORIGINAL, UPDATE, lambda: True) == (ORIGINAL, TOO_LONG)
    monkeypatch.setattr(apply, "_SECONDS", -1.0)
    assert merge(ORIGINAL, UPDATE) == (ORIGINAL, TOO_LONG)


LINES = st.lists(st.sampled_from(["", "a", "b", "c", "  d", "# ... existing code ..."]), max_size=9).map("\n".join)


@given(LINES.filter(lambda text: "..." not in text), LINES)
def test_every_line_of_an_answer_is_the_files_or_the_snippets(original: str, update: str) -> None:
    merged = merge(original, update)
    assert merged.warning is None or merged.text == original
    assert set(merged.text.split("\n")) <= {*original.split("\n"), *update.split("\n"), ""} - {
        "# ... existing code ..."
    }


MARKERS = [
    "    // ... existing code ...",
    "/* ... existing code ... */",
    "{/* ... existing code ... */}",
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
    f"# {'.' * 60}!",
]


@pytest.mark.parametrize("line", [*MARKERS, *CODE])
def test_a_comment_for_what_stays_is_a_marker_and_no_other_line_is(line: str) -> None:
    assert is_marker(line) == (line in MARKERS)


@given(st.text(), st.text())
def test_what_is_between_the_published_tags_comes_back_byte_for_byte(original: str, update: str) -> None:
    if "<|" not in original + update:
        assert parse_apply(PUBLISHED.format(original, update)) == ApplyPrompt(original, update)


TAGGED = PUBLISHED.format("a", "b")
SPEAKS_OF_TAGS = 'OPEN = "<|original_code|>"\nUPDATE = "<|update_snippet|>"\n'
PROMPTS = {
    "a line end": (TAGGED + "\n", "a"),
    "a mark": (TAGGED + "\n\n<|!@#IS_APPLY!@#|>", "a"),
    "Windows": (TAGGED.replace("\n", "\r\n"), "a"),
    "one line": ("<|original_code|>a<|/original_code|><|update_snippet|>b<|/update_snippet|>", "a"),
    "open tags": ("<|original_code|>\na\n<|update_snippet|>\nb", "a\n"),
    "the update first": (
        "<|update_snippet|>\nb\n<|/update_snippet|>\n<|original_code|>\na\n<|/original_code|>", "a",
    ),
    "a file that speaks of the tags": (PUBLISHED.format(SPEAKS_OF_TAGS, "b"), SPEAKS_OF_TAGS),
    "Continue applies": (SUGGESTED.format("a", "b") + "<|!@#IS_APPLY!@#|>", "a"),
    "Continue rewrites": (REWRITE.format("a", "b"), "a"),
}  # fmt: skip


@pytest.mark.parametrize(("message", "original"), PROMPTS.values(), ids=PROMPTS)
def test_what_clients_send_is_read(message: str, original: str) -> None:
    assert parse_apply(message) == ApplyPrompt(original, "b")


@pytest.mark.parametrize("text", ["", "hello", "<|original_code|>\na\n<|/original_code|>", "<|update_snippet|>\nb"])
def test_a_message_without_file_or_snippet_is_refused_without_being_quoted(client: TestClient, text: str) -> None:
    refused = client.post(URL, json={"model": "m", "messages": [{"role": "user", "content": text}]})
    assert refused.status_code == 400 or not text
    assert "hello" not in refused.text
    with pytest.raises(ApplyPromptError, match="The message has no"):
        parse_apply(text)


@given(st.lists(st.sampled_from(["<|original_code|>", "<|/original_code|>", "<|update_snippet|>", "x\n", "```\n"])))
def test_no_message_breaks_the_reader(pieces: list[str]) -> None:
    with suppress(ApplyPromptError):
        parse_apply("".join(pieces))
