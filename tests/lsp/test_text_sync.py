from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.editor import URI, Editor, at, span

DEBUG = {"calomel": {"debug": True, "extensions": True}}


def replace(line: int, start: int, end: int, text: str) -> dict[str, Any]:
    return {"range": span(line, start, end), "text": text}


async def test_changes_are_applied_in_their_order(editor: Editor) -> None:
    await editor.initialize(options=DEBUG)
    editor.open("one\ntwo\n")
    editor.change(2, replace(0, 0, 3, "1"), replace(1, 3, 3, "!"), replace(0, 1, 1, "st"))
    assert await editor.text() == "1st\ntwo!\n"


@pytest.mark.parametrize(("line", "character"), [(0, 99), (0, 2**31 - 1)])
async def test_a_character_beyond_the_line_is_the_lines_end(editor: Editor, line: int, character: int) -> None:
    await editor.initialize(options=DEBUG)
    editor.open("one\r\ntwo")
    editor.change(2, replace(line, character, character, "!"))
    assert await editor.text() == "one!\r\ntwo"


async def test_positions_count_utf16(editor: Editor) -> None:
    await editor.initialize({"general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]}}, DEBUG)
    editor.open("a😀b")
    editor.change(2, replace(0, 3, 4, "c"))
    assert await editor.text() == "a😀c"


@pytest.mark.parametrize(("encoding", "start"), [("utf-8", 5), ("utf-32", 2), ("utf-16", 3)])
async def test_other_encodings_are_a_setting(editor: Editor, encoding: str, start: int) -> None:
    capabilities = {"general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]}}
    result = await editor.initialize(capabilities, {"calomel": {"debug": True, "position_encoding": encoding}})
    assert encoding == result["capabilities"]["positionEncoding"]
    editor.open("a😀b\n")
    editor.change(2, replace(0, start, start + 1, "c"))
    assert await editor.text() == "a😀c\n"
    answer = await editor.inline(0, start + 1)
    assert at(0, start + 1) == answer["items"][0]["range"]["start"]


async def test_an_encoding_that_the_client_does_not_offer_is_not_chosen(editor: Editor) -> None:
    options = {"calomel": {"position_encoding": "utf-8"}}
    result = await editor.initialize({"general": {"positionEncodings": ["utf-16"]}}, options)
    assert result["capabilities"]["positionEncoding"] == "utf-16"


WRONG = {
    "a range that ends before it starts": (2, {"range": {"start": at(0, 3), "end": at(0, 0)}, "text": "x"}),
    "a version that goes backwards": (0, replace(0, 0, 1, "x")),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_document_out_of_step_is_silent_until_its_text_comes_again(editor: Editor, name: str) -> None:
    version, change = WRONG[name]
    await editor.initialize(options=DEBUG)
    editor.open("one\n")
    editor.change(version, change)
    shown = await editor.notice("window/showMessage")
    assert shown["type"] == 2
    assert "lost track" in shown["message"]
    editor.change(5, replace(0, 0, 0, "ignored"))
    assert await editor.inline(0, 0) is None
    assert (await editor.notice("calomel/silence"))["reason"] == "stale"
    assert await editor.next_edit(0, 0, version=None) == {"edits": []}
    editor.script.fill = ".count()"
    editor.change(6, {"text": "anew\n"})
    assert await editor.text() == "anew\n"
    assert await editor.inline(0, 4) is not None


async def test_opening_again_brings_a_document_back(editor: Editor) -> None:
    await editor.initialize(options=DEBUG)
    editor.open("one\n")
    editor.change(2, {"range": {"start": at(0, 3), "end": at(0, 0)}, "text": "x"})
    editor.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    editor.script.fill = ".count()"
    editor.open("two\n", version=1)
    assert await editor.text() == "two\n"
    assert await editor.inline(0, 3) is not None


async def test_the_user_is_told_once(editor: Editor) -> None:
    await editor.initialize(options=DEBUG)
    for number in range(3):
        uri = f"file:///workspace/{number}.py"
        editor.open("one\n", uri=uri)
        editor.change(2, {"range": {"start": at(0, 3), "end": at(0, 0)}, "text": "x"}, uri=uri)
    assert await editor.alive()
    assert sum(message.get("method") == "window/showMessage" for message in editor.messages) == 1


async def test_a_change_of_a_document_that_is_not_open_waits_for_its_text(editor: Editor) -> None:
    await editor.initialize(options=DEBUG)
    editor.change(2, replace(0, 0, 0, "x"))
    assert await editor.error("calomel/debug/document", {"uri": URI}) == -32602
    editor.change(3, replace(0, 0, 0, "x"), {"text": "whole"}, replace(0, 5, 5, "!"))
    assert await editor.text() == "whole!"


async def test_the_whole_text_under_the_known_version_is_taken(editor: Editor) -> None:
    await editor.initialize(options=DEBUG)
    editor.open("one\ntwo\n", version=3)
    editor.change(3, {"range": {"start": at(0, 0), "end": at(2147483647, 0)}, "text": "one\n2\n"})
    assert await editor.text() == "one\n2\n"


async def test_lone_surrogates_are_replaced_one_for_one(editor: Editor) -> None:
    await editor.initialize(options=DEBUG)
    editor.open("a\ud800b")
    editor.change(2, replace(0, 2, 3, "c\udc00"))
    assert await editor.text() == "a\ufffdc\ufffd"


@pytest.mark.parametrize("uri", ["", "http://[", "untitled:Untitled-1", "vscode-notebook-cell:/a#b", "file:///a%00b"])
async def test_strange_uris_break_nothing(editor: Editor, uri: str) -> None:
    await editor.initialize(options=DEBUG)
    editor.open("a = 1\n", uri=uri)
    editor.change(2, replace(0, 0, 0, "b"), uri=uri)
    await editor.ask(
        "textDocument/inlineCompletion",
        {"textDocument": {"uri": uri}, "position": at(0, 0), "context": {"triggerKind": 1}},
    )
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert await editor.alive()


async def test_folders_come_and_go(editor: Editor, tmp_path: Any) -> None:
    await editor.initialize(options=DEBUG, workspaceFolders=[{"uri": tmp_path.as_uri(), "name": "one"}])
    added, removed = [{"uri": "file:///other", "name": "other"}], [{"uri": tmp_path.as_uri(), "name": "one"}]
    editor.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": removed}})
    editor.script.fill = ".count()"
    editor.open("a = b\n", uri="file:///other/x/y.py")
    assert await editor.inline(0, 5, uri="file:///other/x/y.py") is not None
    assert editor.script.requests[-1].parts.path == "x/y.py"


async def test_a_thousand_changes_in_one_write_keep_their_order(editor: Editor) -> None:
    await editor.initialize(options=DEBUG)
    editor.open("")
    for number in range(1000):
        editor.change(number + 2, replace(0, number, number, "abcdefghij"[number % 10]))
    assert await editor.text() == "abcdefghij" * 100


MALFORMED: list[Any] = [
    {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"range": {"start": 1}, "text": "x"}]},
    {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"range": span(0, 0, 0)}]},
    {"textDocument": {"uri": URI, "version": 2}, "contentChanges": "all of it"},
    {"textDocument": {"uri": URI, "version": "two"}, "contentChanges": [{"text": 5}]},
    {"textDocument": {"version": 2}, "contentChanges": [{"text": "x"}]},
    [],
    None,
]


@pytest.mark.parametrize("params", MALFORMED, ids=repr)
async def test_after_a_change_that_nobody_can_read_a_document_is_silent_until_its_text_comes_again(
    editor: Editor, params: Any
) -> None:
    await editor.initialize(options=DEBUG)
    editor.open("one\n")
    editor.script.fill = ".count()"
    editor.notify("textDocument/didChange", params)
    assert "lost track" in (await editor.notice("window/showMessage"))["message"]
    editor.change(3, replace(0, 0, 3, "two"))
    assert await editor.inline(0, 3) is None
    assert (await editor.notice("calomel/silence"))["reason"] == "stale"
    editor.change(4, {"text": "three\n"})
    assert await editor.text() == "three\n"
    assert await editor.inline(0, 5) is not None


async def test_a_change_of_another_document_that_nobody_can_read_leaves_this_one_alone(editor: Editor) -> None:
    await editor.initialize(options=DEBUG)
    editor.open("one\n")
    editor.script.fill = ".count()"
    other = {"uri": "file:///workspace/other.py", "version": 2}
    editor.notify("textDocument/didChange", {"textDocument": other, "contentChanges": 1})
    assert await editor.inline(0, 3) is not None


LARGE = "value = compute(value)\n" * 100_000


async def test_a_text_that_no_model_reads_is_not_held_until_it_is_smaller(editor: Editor) -> None:
    await editor.initialize(options=DEBUG)
    editor.open(LARGE)
    editor.script.fill = ".count()"
    for version in (2, 3):
        editor.change(version, replace(0, 0, 0, "x"))
        assert await editor.inline(0, 1) is None
    silence = await editor.notice("calomel/silence")
    assert (silence["reason"], silence["message"]) == (
        "ignored_path",
        "This file is larger than 1 MB, which no model reads.",
    )
    shown = await editor.ask(
        "workspace/executeCommand",
        {"command": "calomel.showContext", "arguments": [{"textDocument": {"uri": URI}, "position": at(0, 0)}]},
    )
    assert shown["message"] == silence["message"]
    assert await editor.error("calomel/debug/document", {"uri": URI}) == -32602
    editor.change(4, {"text": "three\n"})
    assert await editor.text() == "three\n"
    assert await editor.inline(0, 5) is not None
    editor.change(5, {"text": LARGE})
    assert await editor.inline(0, 5) is None
    editor.change(6, {"text": "four\n"}, replace(0, 4, 4, LARGE))
    assert await editor.inline(0, 4) is None
    assert not any(message.get("method") == "window/showMessage" for message in editor.messages)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1\n" * 180_000, "This file is larger than 1 MB, which no model reads."),
        ("# Code generated by a tool; do not edit.\nx = 1\n", "This file was made by a program, so no model sees it."),
        ("x = 1;" * 20_000, "This file is minified, so no model sees it."),
        ("x\0y\n", "This file is no text, so no model sees it."),
    ],
    ids=["large", "generated", "minified", "binary"],
)
async def test_what_keeps_a_file_from_models_is_said_as_it_is(editor: Editor, text: str, why: str) -> None:
    await editor.initialize(options=DEBUG)
    editor.open(text)
    assert await editor.inline(0, 0) is None
    assert (await editor.notice("calomel/silence"))["message"] == why
