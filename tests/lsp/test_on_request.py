"""What a client gets unasked, and what its user gets who asks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.editor import ADD, URI, Editor, edit_params

ASKED, UNASKED = 1, 2
RENAMED = "new = 1\nprint(old)\n"


async def edits(editor: Editor, kind: int) -> Any:
    params = edit_params(0, 3, 2) | {"context": {"triggerKind": kind}}
    return (await editor.ask("textDocument/copilotInlineEdit", params))["edits"]


async def renamed(editor: Editor, **suggest: Any) -> None:
    """A document in which a name was changed, whose other use the model would change too."""
    editor.script.edit = {"print(old)": "print(new)"}
    await editor.begin("old = 1\nprint(old)\n", suggest=suggest)
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
    editor.change(2, {"range": span, "text": "new"})


@pytest.mark.parametrize(
    ("suggest", "reason"),
    [
        ({"show": "on_request"}, "on_request"),
        ({"enabled": False}, "off_globally"),
        ({"languages": {"python": False}}, "off_language"),
    ],
)
async def test_unasked_it_is_silent_and_asked_it_answers(editor: Editor, suggest: dict[str, Any], reason: str) -> None:
    await editor.begin(suggest=suggest)
    assert await editor.inline(1, 4, UNASKED) is None
    assert await editor.silence() == reason
    item, *_ = (await editor.inline(1, 4, ASKED))["items"]
    assert (item["insertText"], "hint" in item) == ("return a + b", False)


@pytest.mark.parametrize(
    ("suggest", "reason"), [({"show": "on_request"}, "on_request"), ({"next_edit": False}, "off_next_edit")]
)
async def test_so_it_is_with_next_edits(editor: Editor, suggest: dict[str, Any], reason: str) -> None:
    await renamed(editor, **suggest)
    assert await edits(editor, UNASKED) == []
    assert await editor.silence() == reason
    assert [each["text"] for each in await edits(editor, ASKED)] == ["new"]


async def test_asked_it_answers_while_it_is_snoozed_or_off_in_a_file(editor: Editor) -> None:
    await editor.begin()
    await editor.command("calomel.snooze", 10)
    assert await editor.inline(1, 4, UNASKED) is None
    assert (await editor.inline(1, 4, ASKED))["items"]
    await editor.command("calomel.toggle", {"scope": "file", "uri": URI, "enabled": False})
    assert (await editor.inline(1, 4, ASKED))["items"]


async def test_a_file_that_models_do_not_see_stays_silent_though_asked(editor: Editor) -> None:
    await editor.begin(suggest={"enabled": False})
    uri = "file:///work/.env"
    editor.open("A=1\nB=\n", uri)
    assert await editor.inline(1, 2, ASKED, uri) is None
    assert await editor.silence() == "ignored_path"


async def test_a_hint_says_that_it_is_one(editor: Editor) -> None:
    await editor.begin(suggest={"show": "hint"})
    item, *_ = (await editor.inline(1, 4, UNASKED))["items"]
    assert (item["insertText"], item["hint"]) == ("return a + b", True)
    item, *_ = (await editor.inline(1, 4, ASKED))["items"]
    assert "hint" not in item


async def test_an_edit_that_is_a_hint_says_so(editor: Editor) -> None:
    await renamed(editor, show="hint")
    assert [each.get("hint") for each in await edits(editor, UNASKED)] == [True]
    assert [each.get("hint") for each in await edits(editor, ASKED)] == [None]


async def test_a_client_that_shows_no_hints_gets_what_it_asks_for_alone(editor: Editor) -> None:
    await editor.initialize(options={"calomel": {"suggest": {"show": "hint"}}})
    editor.open(ADD)
    assert await editor.inline(1, 4, UNASKED) is None
    item, *_ = (await editor.inline(1, 4, ASKED))["items"]
    assert "hint" not in item


@pytest.mark.parametrize(
    ("answer", "lines", "shown"),
    [
        ("total = a + b\n    return total", 1, "total = a + b"),
        ("total = a + b\n    total += 1\n    return total", 2, "total = a + b\n    total += 1"),
        ("return a + b", 1, "return a + b"),
        ("total = a + b\n    return total", None, "total = a + b\n    return total"),
    ],
)
async def test_text_at_the_cursor_has_as_many_lines_as_are_wanted(
    editor: Editor, answer: str, lines: int | None, shown: str
) -> None:
    editor.script.fill = answer
    await editor.begin(suggest={"lines": lines})
    item, *_ = (await editor.inline(1, 4, ASKED))["items"]
    assert item["insertText"] == shown
