from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.editor import URI, Editor, at, change_params, place, span


def replace(line: int, start: int, end: int, text: str) -> dict[str, Any]:
    return {"range": span(line, start, end), "text": text}


async def test_changes_are_applied_in_their_order(editor: Editor) -> None:
    await editor.begin("one\ntwo\n")
    editor.change(2, replace(0, 0, 3, "1"), replace(1, 3, 3, "!"), replace(0, 1, 1, "st"))
    assert await editor.text() == "1st\ntwo!\n"


async def test_a_character_beyond_the_line_is_the_lines_end(editor: Editor) -> None:
    await editor.begin("one\r\ntwo")
    for version, character in ((2, 99), (3, 2**31 - 1)):
        editor.change(version, replace(0, character, character, "!"))
    assert await editor.text() == "one!!\r\ntwo"


async def test_positions_count_utf16_whatever_else_the_client_offers(editor: Editor) -> None:
    result = await editor.begin("a😀b\n", {"general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]}})
    assert result["capabilities"]["positionEncoding"] == "utf-16"
    editor.change(2, replace(0, 3, 4, "c"))
    assert await editor.text() == "a😀c\n"
    answer = await editor.inline(0, 4)
    assert at(0, 4) == answer["items"][0]["range"]["start"]


@pytest.mark.parametrize(
    ("start", "end"),
    [(at(3, 0), at(3, 0)), (at(1, 0), at(9, 0)), (at(2, 1), at(2, 1)), (at(0, 2), at(0, 3)), (at(0, 0), at(0, 2))],
    ids=["start beyond", "end beyond", "behind the last line", "from within a character", "into one"],
)
async def test_a_range_that_is_not_in_the_text_is_not_guessed(editor: Editor, start: Any, end: Any) -> None:
    await editor.begin("a😀b\ntwo")
    editor.change(2, {"range": {"start": start, "end": end}, "text": "x"})
    assert (await editor.inline(0, 1)) is None
    assert len(editor.shown()) == 1
    editor.change(3, {"text": "whole"})
    assert await editor.text() == "whole"


async def test_all_of_a_text_and_its_very_end_are_in_it(editor: Editor) -> None:
    await editor.begin("one\ntwo")
    editor.change(2, {"range": {"start": at(2, 0), "end": at(2, 0)}, "text": "!"})
    assert await editor.text() == "one\ntwo!"
    editor.change(3, {"range": {"start": at(0, 0), "end": at(999, 0)}, "text": "new"})
    assert await editor.text() == "new"


async def test_the_user_is_told_once(editor: Editor) -> None:
    await editor.initialize(options={"calomel": {"debug": True}})
    for number in range(3):
        uri = f"file:///workspace/{number}.py"
        editor.open("one\n", uri=uri)
        editor.change(2, {"range": {"start": at(0, 3), "end": at(0, 0)}, "text": "x"}, uri=uri)
    assert await editor.alive()
    assert len(editor.shown()) == 1


async def test_a_change_of_a_document_that_is_not_open_waits_for_its_text(editor: Editor) -> None:
    await editor.initialize(options={"calomel": {"debug": True}})
    editor.change(2, replace(0, 0, 0, "x"))
    assert await editor.error("calomel/debug/document", {"uri": URI}) == -32602
    editor.change(3, replace(0, 0, 0, "x"), {"text": "whole"}, replace(0, 5, 5, "!"))
    assert await editor.text() == "whole!"


async def test_lone_surrogates_are_replaced_one_for_one(editor: Editor) -> None:
    await editor.begin("a\ud800b")
    editor.change(2, replace(0, 2, 3, "c\udc00"))
    assert await editor.text() == "a\ufffdc\ufffd"


@pytest.mark.parametrize("uri", ["", "http://[", "untitled:Untitled-1", "vscode-notebook-cell:/a#b", "file:///a%00b"])
async def test_strange_uris_break_nothing(editor: Editor, uri: str) -> None:
    await editor.initialize(options={"calomel": {"debug": True}})
    editor.open("a = 1\n", uri=uri)
    editor.change(2, replace(0, 0, 0, "b"), uri=uri)
    await editor.inline(0, 0, uri=uri)
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert await editor.alive()


async def test_folders_come_and_go(editor: Editor, tmp_path: Any) -> None:
    added, removed = [{"uri": "file:///other", "name": "other"}], [{"uri": tmp_path.as_uri(), "name": "one"}]
    await editor.initialize(workspaceFolders=removed)
    editor.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": removed}})
    editor.script.fill = ".count()"
    editor.open("a = b\n", uri="file:///other/x/y.py")
    assert await editor.inline(0, 5, uri="file:///other/x/y.py") is not None
    assert editor.script.requests[-1].parts.path == "x/y.py"


MALFORMED: list[Any] = [
    change_params(2, {"range": {"start": at(0, 3), "end": at(0, 0)}, "text": "x"}),
    change_params(0, replace(0, 0, 1, "x")),
    change_params(2, {"range": {"start": 1}, "text": "x"}),
    change_params(2, {"range": span(0, 0, 0)}),
    change_params("two", {"text": 5}),
    {"textDocument": {"uri": URI, "version": 2}, "contentChanges": "all of it"},
    {"textDocument": {"version": 2}, "contentChanges": [{"text": "x"}]},
    [],
    None,
]


@pytest.mark.parametrize("params", MALFORMED, ids=repr)
@pytest.mark.parametrize("anew", [True, False])
async def test_after_a_change_that_can_not_be_a_document_is_silent_until_its_text_comes_again(
    editor: Editor, params: Any, *, anew: bool
) -> None:
    await editor.begin("one\n")
    editor.script.fill = ".count()"
    editor.notify("textDocument/didChange", params)
    shown = await editor.notice("window/showMessage")
    assert (shown["type"], "lost track" in shown["message"]) == (2, True)
    editor.change(3, replace(0, 0, 3, "two"))
    assert await editor.inline(0, 3) is None
    assert await editor.silence() == "stale"
    assert await editor.next_edit(0, 0, version=None) == {"edits": []}
    if anew:
        editor.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        editor.open("three\n", version=1)
    else:
        editor.change(4, {"text": "three\n"})
    assert await editor.text() == "three\n"
    assert await editor.inline(0, 5) is not None


async def test_a_change_of_another_document_that_nobody_can_read_leaves_this_one_alone(editor: Editor) -> None:
    await editor.begin("one\n")
    editor.script.fill = ".count()"
    other = {"uri": "file:///workspace/other.py", "version": 2}
    editor.notify("textDocument/didChange", {"textDocument": other, "contentChanges": 1})
    assert await editor.inline(0, 3) is not None


LARGE = "value = compute(value)\n" * 100_000


async def test_a_text_that_no_model_reads_is_not_held_until_it_is_smaller(editor: Editor) -> None:
    await editor.begin(LARGE)
    editor.script.fill = ".count()"
    for version in (2, 3):
        editor.change(version, replace(0, 0, 0, "x"))
        assert await editor.inline(0, 1) is None
    silence = await editor.notice("calomel/silence")
    assert (silence["reason"], silence["message"]) == ("ignored_path", "This file is larger than 1 MB.")
    shown = await editor.command("calomel.showContext", place(0, 0))
    assert shown["message"] == silence["message"]
    assert await editor.error("calomel/debug/document", {"uri": URI}) == -32602
    editor.change(4, {"text": "three\n"})
    assert await editor.text() == "three\n"
    assert await editor.inline(0, 5) is not None
    editor.change(5, {"text": LARGE})
    assert await editor.inline(0, 5) is None
    editor.change(6, {"text": "four\n"}, replace(0, 4, 4, LARGE))
    assert await editor.inline(0, 4) is None
    assert not editor.shown()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("# Code generated by a tool; do not edit.\nx = 1\n", "This file is generated."),
        ("x = 1;" * 20_000, "This file is minified."),
        ("x\0y\n", "This is not a text file."),
    ],
    ids=["generated", "minified", "binary"],
)
async def test_what_keeps_a_file_from_models_is_said_as_it_is(editor: Editor, text: str, why: str) -> None:
    await editor.begin(text)
    assert await editor.inline(0, 0) is None
    assert (await editor.notice("calomel/silence"))["message"] == why


@pytest.mark.parametrize("text", ["# Code generated by a tool; do not edit.\nx = 1\n", f"{'x = 1;' * 2000}\n"])
async def test_a_file_that_no_person_wrote_is_worked_on_if_the_user_lets_it_in(editor: Editor, text: str) -> None:
    await editor.begin(text, privacy={"ignore": ["!a.py"]})
    editor.script.fill = "print(x)"
    assert await editor.inline(text.count("\n"), 0) is not None
