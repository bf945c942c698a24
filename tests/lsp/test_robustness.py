"""What a broken or strange client sends, and the answer that the specification asks for."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lsp import messages
from tests.lsp.editor import SECONDS, URI, Editor, at, inline_params, place, span

from calomel.lsp.client import local_path, read_client
from calomel.lsp.connection import CHUNK_BYTES, MAX_PENDING_BYTES, Framer, Transport


def frame(body: bytes, name: bytes = b"Content-Length") -> bytes:
    return name + b": %d\r\n\r\n" % len(body) + body


def read(*chunks: bytes) -> list[bytes]:
    framer, found = Framer(), []
    for chunk in chunks:
        framer.feed(chunk)
        while (one := framer.next()) is not None:
            found.append(one)
    return found


@pytest.mark.parametrize(
    "data",
    [
        frame(b"{}"),
        frame(b"{}", b"content-length"),
        frame(b"{}", b"CONTENT-LENGTH"),
        b"Content-Length:2\r\n\r\n{}",
        b"Content-Length : 2 \r\n\r\n{}",
        b"Content-Length: 2\n\n{}",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: 2\r\nContent-Type: x\r\nX-Other: y\r\n\r\n{}",
        b"\r\n\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_headers_of_every_form_announce_a_body(data: bytes) -> None:
    assert read(data) == [b"{}"]


@pytest.mark.parametrize(
    "junk",
    [
        b"Content-Length: two\r\n\r\n",
        b"Content-Length: -2\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Type: x\r\n\r\n",
        b"this is no header\r\n",
        b'{"a": 1}\n{"b": 2}\n',
        b"}}}",
        b"\x00\xff\xfe" * 20_000,
    ],
)
def test_what_begins_with_no_header_is_no_stream_of_messages(junk: bytes) -> None:
    with pytest.raises(ValueError, match=r"header|256 MiB"):
        read(junk + frame(b"[1]"))


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(1, 17))
def test_messages_survive_any_division_into_chunks(bodies: list[bytes], size: int) -> None:
    data = b"".join(map(frame, bodies))
    assert bodies == read(*(data[at : at + size] for at in range(0, len(data), size)))


@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        read(data)


async def test_what_comes_faster_than_it_is_handled_waits_outside_of_memory() -> None:
    most, sent, came = MAX_PENDING_BYTES // CHUNK_BYTES, [b"x"] * 3000, list[bytes]()
    transport = Transport(lambda _: sent.pop() if sent else b"", lambda _: None)
    transport.start(came.append)
    async with asyncio.timeout(SECONDS):
        while len(came) < most:  # noqa: ASYNC110 (another thread's state)
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert len(came) == most
        for _ in range(3001):
            transport.handled()
        while b"" not in came:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert came == [*[b"x"] * 3000, b""]


async def test_a_body_that_is_no_json_is_a_parse_error_and_the_session_goes_on(editor: Editor) -> None:
    await editor.initialize()
    for data in (b"{", b"", b"not json", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000, b"9" * 5000):
        editor.raw(frame(data))
        assert (await editor.answer(None))["error"]["code"] in {-32700, -32600}
        assert await editor.alive()


CALL = {"jsonrpc": "2.0", "method": "getVersion"}


async def test_a_message_without_the_shape_of_json_rpc_is_an_invalid_request(editor: Editor) -> None:
    await editor.initialize()
    strange: list[Any] = [None, {"a": 1}, True, 1.5]
    message: Any
    for message in (1, "text", None, [], {}, {"jsonrpc": "2.0"}, *(CALL | {"id": number} for number in strange)):
        editor.raw(frame(json.dumps(message).encode()))
        assert (await editor.answer(None))["error"]["code"] == -32600, message
    assert await editor.alive()


@pytest.mark.parametrize("wrong", [{"jsonrpc": None}, {"jsonrpc": "1.0"}, {"method": 5}, {"method": None}], ids=str)
async def test_an_invalid_request_with_an_id_is_answered_under_that_id(editor: Editor, wrong: dict[str, Any]) -> None:
    await editor.initialize()
    editor.send({name: value for name, value in (CALL | {"id": 77} | wrong).items() if value is not None})
    assert (await editor.answer(77))["error"]["code"] == -32600


async def test_a_batch_is_answered_one_by_one(editor: Editor) -> None:
    await editor.initialize()
    batch = [{"jsonrpc": "2.0", "id": "x", "method": "getVersion"}, 5, {"jsonrpc": "2.0", "id": "y", "method": "nope"}]
    editor.raw(frame(json.dumps(batch).encode()))
    assert "result" in await editor.answer("x")
    assert (await editor.answer(None))["error"]["code"] == -32600
    assert (await editor.answer("y"))["error"]["code"] == -32601


async def test_a_wrong_content_length_ends_the_server(editor: Editor) -> None:
    await editor.initialize()
    editor.raw(b'Content-Length: 10\r\n\r\n{"jsonrpc":"2.0","id":"x","method":"getVersion"}\n\n')
    assert await editor.ended() == 1


async def test_an_unknown_request_is_answered_and_an_unknown_notification_ignored(editor: Editor) -> None:
    await editor.initialize()
    editor.notify("$/unheardOf", {"a": 1})
    editor.notify("unheard/of")
    assert await editor.error("$/unheardOf") == -32601
    assert await editor.error("textDocument/hover", place(0, 0)) == -32601


async def test_before_initialize_requests_are_refused_and_notifications_dropped(editor: Editor) -> None:
    editor.open("a = 1\n")
    assert await editor.error("textDocument/inlineCompletion", inline_params(0, 0)) == -32002
    assert await editor.error("shutdown") == -32002
    await editor.initialize(options={"calomel": {"debug": True}})
    assert await editor.error("calomel/debug/document", {"uri": URI}) == -32602


@pytest.mark.parametrize(
    "odd",
    [
        {"processId": "x", "clientInfo": 5, "workspaceFolders": None, "rootUri": 5, "initializationOptions": 5},
        {"processId": -1, "workspaceFolders": [None, 5, {"uri": 7}, {"uri": "untitled:x"}, {"uri": "http://["}]},
        {"rootPath": 5},
        {"initializationOptions": {"calomel": 5}},
        {"capabilities": {"general": 5, "workspace": [], "textDocument": None, "window": 1}},
    ],
)
async def test_initialize_with_a_strange_field_still_begins_a_session(editor: Editor, odd: dict[str, Any]) -> None:
    result = await editor.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}} | odd)
    assert result["capabilities"]["positionEncoding"] == "utf-16"
    assert await editor.alive()


async def test_after_shutdown_requests_are_refused_and_exit_ends_with_0(editor: Editor) -> None:
    await editor.initialize()
    assert await editor.error("initialize", {"capabilities": {}}) == -32600
    assert (await editor.ask("shutdown")) is None
    assert await editor.error("getVersion") == -32600
    assert await editor.error("shutdown") == -32600
    editor.notify("textDocument/didOpen", {"nonsense": True})
    editor.notify("exit")
    assert await editor.ended() == 0


@pytest.mark.parametrize("polite", [True, False])
@pytest.mark.parametrize("begun", ["initialized", "shut down", "not at all"])
async def test_exit_or_the_end_of_the_stream_ends_the_server(editor: Editor, *, begun: str, polite: bool) -> None:
    if begun != "not at all":
        await editor.initialize()
    if begun == "shut down":
        await editor.ask("shutdown")
    if polite:
        editor.notify("exit")
    else:
        editor.hang_up()
    assert await editor.ended() == (0 if begun == "shut down" else 1)


async def test_shutdown_answers_what_is_still_running(editor: Editor) -> None:
    editor.script.hold = asyncio.Event()
    await editor.begin("a = \n")
    number = editor.start("textDocument/inlineCompletion", inline_params(0, 4))
    await editor.until_asked()
    assert (await editor.ask("shutdown")) is None
    answer = await editor.answer(number)
    assert answer.get("error", {}).get("code") == -32800 or answer.get("result", 0) is None


async def test_a_cancelled_request_is_answered_as_cancelled_and_reaches_the_model(editor: Editor) -> None:
    editor.script.hold = asyncio.Event()
    await editor.begin("a = \n")
    number = editor.start("textDocument/inlineCompletion", inline_params(0, 4))
    await editor.until_asked()
    editor.notify("$/cancelRequest", {"id": number})
    assert (await editor.answer(number))["error"]["code"] == -32800
    assert await editor.alive()
    assert editor.script.cancelled == 1


async def test_an_answer_that_nobody_asked_for_is_ignored(editor: Editor) -> None:
    await editor.initialize()
    for number, answer in (("x", {"result": {}}), (99, {"error": {"code": 1, "message": "x"}}), ("y", {"error": 5})):
        editor.send({"jsonrpc": "2.0", "id": number, **answer})
    assert await editor.alive()


async def test_the_log_holds_no_text_of_the_user(editor: Editor, tmp_path: Any) -> None:
    secret = "xyzzy_my_secret"
    await editor.initialize()
    editor.open(f"{secret} = 1\n")
    editor.change(2, {"range": {"start": at(5, 0), "end": at(0, 0)}, "text": secret})
    editor.notify("textDocument/didChange", {"textDocument": secret, "contentChanges": secret})
    editor.raw(frame(b'{"text": "xyzzy_my_secret'))
    await editor.error("textDocument/inlineCompletion", {"textDocument": {"uri": secret}, "position": secret})
    await editor.error("textDocument/copilotInlineEdit", {"textDocument": {"uri": secret}, "position": secret})
    await editor.error("workspace/executeCommand", {"command": secret})
    editor.change(3, {"range": span(0, 0, 5), "text": secret})
    assert await editor.alive()
    assert secret not in repr(editor.shown())
    log = tmp_path / "lsp.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert "out of step" in log.read_text()
    assert "xyzzy" not in log.read_text()


@pytest.fixture
async def ready(editor: Editor) -> Editor:
    await editor.begin("a = 1\n", completion_item=True)
    return editor


@pytest.mark.parametrize("method", [*messages.REQUESTS, *messages.CUSTOM_REQUESTS])
async def test_every_wrong_request_is_answered(ready: Editor, method: str) -> None:
    params = messages.valid(method)
    ready.script.fill = None
    codes = set()
    for what, value in messages.wrong(params):
        answer = await ready.answer(ready.start(method, value))
        code = answer.get("error", {}).get("code", 0)
        assert code in {0, -32602}, (what, answer)
        codes.add(code)
    assert await ready.alive()
    assert {0, -32602} == codes


@pytest.mark.parametrize("method", [*messages.NOTIFICATIONS, *messages.CUSTOM_NOTIFICATIONS])
async def test_no_wrong_notification_breaks_anything(ready: Editor, method: str) -> None:
    params = messages.valid(method)
    for number, (_, value) in enumerate(messages.wrong(params)):
        ready.notify(method, value)
        if number % 50 == 0:
            assert await ready.alive()
    assert await ready.alive()
    ready.open("b = 2\n", uri="file:///workspace/b.py")
    assert await ready.text("file:///workspace/b.py") == "b = 2\n"


async def test_no_wrong_initialize_breaks_anything(editor: Editor) -> None:
    """Each is answered; those that are refused may be tried again."""
    params = {
        "processId": None,
        "clientInfo": {"name": "x", "version": "1"},
        "rootUri": "file:///workspace",
        "workspaceFolders": [{"uri": "file:///workspace", "name": "x"}],
        "capabilities": 5,
        "initializationOptions": {"calomel": {"suggest": {"enabled": True}}, "editorPluginInfo": {"name": "x"}},
    }
    for _, value in messages.wrong(params):
        if isinstance(value, dict) and isinstance(value.get("capabilities"), dict):
            continue
        assert await editor.error("initialize", value) == -32602
    await editor.initialize()


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b.py", "/a/b.py"),
        ("file://localhost/a", "/a"),
        ("file:///a%20b/%C3%A9", "/a b/é"),
        ("file:///a?x#y", "/a"),
        ("file://server/share", None),
        ("file:///a%00b", None),
        ("file://", None),
        ("untitled:Untitled-1", None),
        ("http://a/b", None),
        (None, None),
        (5, None),
    ],
)
def test_only_uris_of_local_files_have_a_path(uri: Any, path: str | None) -> None:
    assert local_path(uri) == (None if path is None else Path(path))


def test_folders_come_from_the_newest_field_that_is_filled() -> None:
    folder = {"uri": "file:///one", "name": "one"}
    assert read_client({"workspaceFolders": [folder, folder], "rootUri": "file:///two"}).folders == (Path("/one"),)
    assert read_client({"workspaceFolders": None, "rootUri": "file:///two"}).folders == (Path("/two"),)
    assert read_client({"rootUri": None, "rootPath": "/three"}).folders == (Path("/three"),)
    assert read_client({"workspaceFolders": [], "rootUri": None, "rootPath": None}).folders == ()
