"""What a broken or strange client sends, and the answer that the specification asks for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.lsp.editor import URI, Editor, at, inline_params, span


def body(data: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(data) + data


@pytest.mark.parametrize("data", [b"{", b"", b"not json", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000, b"9" * 5000])
async def test_a_body_that_is_no_json_is_a_parse_error_and_the_session_goes_on(editor: Editor, data: bytes) -> None:
    await editor.initialize()
    editor.raw(body(data))
    answer = await editor.answer(None)
    assert answer["error"]["code"] in {-32700, -32600}
    assert await editor.alive()


async def test_a_parse_error_before_initialize_is_answered_too(editor: Editor) -> None:
    editor.raw(body(b"{"))
    assert (await editor.answer(None))["error"]["code"] == -32700
    await editor.initialize()


@pytest.mark.parametrize(
    "message",
    [
        1,
        "text",
        None,
        [],
        {},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "id": None, "method": "getVersion"},
        {"jsonrpc": "2.0", "id": {"a": 1}, "method": "getVersion"},
        {"jsonrpc": "2.0", "id": True, "method": "getVersion"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "getVersion"},
    ],
)
async def test_a_message_without_the_shape_of_json_rpc_is_an_invalid_request(editor: Editor, message: Any) -> None:
    await editor.initialize()
    editor.raw(body(json.dumps(message).encode()))
    assert (await editor.answer(None))["error"]["code"] == -32600
    assert await editor.alive()


@pytest.mark.parametrize(
    "message",
    [
        {"id": 77, "method": "getVersion"},
        {"jsonrpc": "1.0", "id": 77, "method": "getVersion"},
        {"jsonrpc": "2.0", "id": 77, "method": 5},
        {"jsonrpc": "2.0", "id": 77},
    ],
)
async def test_an_invalid_request_with_an_id_is_answered_under_that_id(editor: Editor, message: Any) -> None:
    await editor.initialize()
    editor.raw(body(json.dumps(message).encode()))
    assert (await editor.answer(77))["error"]["code"] == -32600


async def test_a_batch_is_answered_one_by_one(editor: Editor) -> None:
    await editor.initialize()
    batch = [{"jsonrpc": "2.0", "id": "x", "method": "getVersion"}, 5, {"jsonrpc": "2.0", "id": "y", "method": "nope"}]
    editor.raw(body(json.dumps(batch).encode()))
    assert "result" in await editor.answer("x")
    assert (await editor.answer(None))["error"]["code"] == -32600
    assert (await editor.answer("y"))["error"]["code"] == -32601


async def test_lower_case_headers_do_not_desynchronise_the_stream(editor: Editor) -> None:
    await editor.initialize()
    data = b'{"jsonrpc":"2.0","id":"x","method":"getVersion"}'
    editor.raw(b"content-length: %d\r\n\r\n" % len(data) + data)
    assert "result" in await editor.answer("x")
    assert await editor.alive()


@pytest.mark.parametrize("length", [10, 48 + 20])
async def test_a_wrong_content_length_costs_one_message(editor: Editor, length: int) -> None:
    await editor.initialize()
    data = b'{"jsonrpc":"2.0","id":"x","method":"getVersion"}'
    editor.raw(b"Content-Length: %d\r\n\r\n" % length + data)
    assert await editor.alive()
    assert await editor.alive()


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        5,
        {},
        {"textDocument": {"uri": URI}, "position": at(0, 0)},
        {"textDocument": {"uri": 5}, "position": at(0, 0), "context": {"triggerKind": 1}},
        {"textDocument": {"uri": URI}, "position": at(-1, 0), "context": {"triggerKind": 1}},
        {"textDocument": {"uri": URI}, "position": at(0, 0), "context": {"triggerKind": 9}},
        {"textDocument": {"uri": URI}, "position": {"line": "0", "character": 0}, "context": {"triggerKind": 1}},
        {"textDocument": None, "position": at(0, 0), "context": {"triggerKind": 1}},
    ],
)
async def test_a_request_with_wrong_params_is_told_so(editor: Editor, params: Any) -> None:
    await editor.initialize()
    editor.open("a = 1\n")
    assert await editor.error("textDocument/inlineCompletion", params) == -32602
    assert await editor.alive()


@pytest.mark.parametrize(
    "params", [None, 7, [], {}, {"textDocument": {}}, {"textDocument": {"uri": URI}, "position": 3}]
)
async def test_a_custom_request_with_wrong_params_is_told_so(editor: Editor, params: Any) -> None:
    await editor.initialize()
    assert await editor.error("textDocument/copilotInlineEdit", params) == -32602


async def test_a_custom_request_without_params_is_answered(editor: Editor) -> None:
    await editor.initialize()
    assert "version" in await editor.ask("getVersion")


async def test_an_unknown_request_is_answered_and_an_unknown_notification_ignored(editor: Editor) -> None:
    await editor.initialize()
    editor.notify("$/unheardOf", {"a": 1})
    editor.notify("unheard/of")
    assert await editor.error("$/unheardOf") == -32601
    assert await editor.error("textDocument/hover", {"textDocument": {"uri": URI}, "position": at(0, 0)}) == -32601


async def test_before_initialize_requests_are_refused_and_notifications_dropped(editor: Editor) -> None:
    editor.open("a = 1\n")
    assert await editor.error("textDocument/inlineCompletion", inline_params(0, 0)) == -32002
    assert await editor.error("shutdown") == -32002
    await editor.initialize(options={"calomel": {"debug": True}})
    assert await editor.error("calomel/debug/document", {"uri": URI}) == -32602


@pytest.mark.parametrize("params", [None, [], {}, {"capabilities": None}, {"capabilities": 5}])
async def test_initialize_with_wrong_params_is_told_so_and_may_be_tried_again(editor: Editor, params: Any) -> None:
    assert await editor.error("initialize", params) == -32602
    await editor.initialize()


@pytest.mark.parametrize(
    "odd",
    [
        {"processId": "x"},
        {"processId": -1},
        {"clientInfo": 5},
        {"workspaceFolders": None},
        {"workspaceFolders": [None, 5, {"uri": 7}, {"uri": "untitled:x"}, {"uri": "http://["}]},
        {"rootUri": 5},
        {"rootPath": 5},
        {"initializationOptions": 5},
        {"initializationOptions": {"calomel": 5}},
        {"capabilities": {"general": 5, "workspace": [], "textDocument": None, "window": 1}},
    ],
)
async def test_initialize_with_a_strange_field_still_begins_a_session(editor: Editor, odd: dict[str, Any]) -> None:
    result = await editor.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}} | odd)
    assert result["capabilities"]["positionEncoding"] == "utf-16"
    assert await editor.alive()


async def test_a_second_initialize_is_refused(editor: Editor) -> None:
    await editor.initialize()
    assert await editor.error("initialize", {"capabilities": {}}) == -32600


async def test_after_shutdown_requests_are_refused_and_exit_ends_with_0(editor: Editor) -> None:
    await editor.initialize()
    assert (await editor.ask("shutdown")) is None
    assert await editor.error("getVersion") == -32600
    assert await editor.error("shutdown") == -32600
    editor.notify("textDocument/didOpen", {"nonsense": True})
    editor.notify("exit")
    assert await editor.ended() == 0


async def test_exit_without_shutdown_ends_with_1(editor: Editor) -> None:
    await editor.initialize()
    editor.notify("exit")
    assert await editor.ended() == 1


async def test_exit_before_initialize_ends_with_1(editor: Editor) -> None:
    editor.notify("exit")
    assert await editor.ended() == 1


@pytest.mark.parametrize("code", [0, 1])
async def test_the_end_of_the_stream_ends_the_server(editor: Editor, code: int) -> None:
    await editor.initialize()
    if code == 0:
        await editor.ask("shutdown")
    editor.hang_up()
    assert await editor.ended() == code


async def test_shutdown_answers_what_is_still_running(editor: Editor) -> None:
    editor.script.hold = asyncio.Event()
    await editor.initialize()
    editor.open("a = \n")
    number = editor.start("textDocument/inlineCompletion", inline_params(0, 4))
    await editor.until_asked()
    assert (await editor.ask("shutdown")) is None
    answer = await editor.answer(number)
    assert answer.get("error", {}).get("code") == -32800 or answer.get("result", 0) is None


async def test_a_cancelled_request_is_answered_as_cancelled_and_reaches_the_model(editor: Editor) -> None:
    editor.script.hold = asyncio.Event()
    await editor.initialize()
    editor.open("a = \n")
    number = editor.start("textDocument/inlineCompletion", inline_params(0, 4))
    await editor.until_asked()
    editor.notify("$/cancelRequest", {"id": number})
    assert (await editor.answer(number))["error"]["code"] == -32800
    assert await editor.alive()
    assert editor.script.cancelled == 1


@pytest.mark.parametrize("params", [None, {}, {"id": None}, {"id": 999}, {"id": [1]}, 5, {"id": "calomel-1"}])
async def test_a_cancellation_of_nothing_changes_nothing(editor: Editor, params: Any) -> None:
    await editor.initialize()
    editor.notify("$/cancelRequest", params)
    assert await editor.alive()


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": "unknown", "result": {}},
        {"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}},
        {"jsonrpc": "2.0", "id": "calomel-1", "error": 5},
    ],
)
async def test_an_answer_that_nobody_asked_for_is_ignored(editor: Editor, message: Any) -> None:
    await editor.initialize()
    editor.send(message)
    assert await editor.alive()


async def test_nothing_of_this_is_shown_to_the_user(editor: Editor) -> None:
    await editor.initialize()
    editor.raw(body(b"{"))
    editor.notify("textDocument/didOpen", {"wrong": 1})
    editor.notify("textDocument/didChange", 5)
    editor.notify("workspace/executeCommand", {"command": "unknown"})
    await editor.error("textDocument/inlineCompletion", {})
    await editor.error("nothing/like/it")
    assert [message for message in editor.messages if message.get("method") == "window/showMessage"] == []


async def test_a_command_that_comes_as_a_notification_is_executed(editor: Editor) -> None:
    await editor.initialize(options={"calomel": {"extensions": True}})
    editor.notify("workspace/executeCommand", {"command": "calomel.toggle", "arguments": [{"enabled": False}]})
    assert (await editor.command("calomel.status"))["off"] == "off_globally"


async def test_the_log_holds_no_text_of_the_user(editor: Editor, tmp_path: Any) -> None:
    secret = "xyzzy_my_secret"
    await editor.initialize()
    editor.open(f"{secret} = 1\n")
    editor.change(2, {"range": {"start": at(5, 0), "end": at(0, 0)}, "text": secret})
    editor.notify("textDocument/didChange", {"textDocument": secret, "contentChanges": secret})
    editor.raw(body(b'{"text": "xyzzy_my_secret'))
    await editor.error("textDocument/inlineCompletion", {"textDocument": {"uri": secret}, "position": secret})
    await editor.error("textDocument/copilotInlineEdit", {"textDocument": {"uri": secret}, "position": secret})
    await editor.error("workspace/executeCommand", {"command": secret})
    editor.change(3, {"range": span(0, 0, 5), "text": secret})
    assert await editor.alive()
    log = tmp_path / "lsp.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert "out of step" in log.read_text()
    assert "xyzzy" not in log.read_text()
