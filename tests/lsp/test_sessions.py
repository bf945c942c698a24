"""Whole sessions of several editors against the program, by a client that holds what it gets to the capabilities."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from lsprotocol.converters import get_converter
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities, make_test_lsp_client
from tests.lsp.program import environment

pytestmark = pytest.mark.e2e

URI = "file:///workspace/a.py"
EDITORS = ["neovim", "visual_studio_code", "emacs", "neovim_0.12", "visual_studio_code_1.139"]


def capabilities(name: str) -> types.ClientCapabilities:
    """Those of a newer editor lie beside this file; the library's know nothing of inline completion."""
    own = Path(__file__).parent / "clients" / f"{name}.json"
    if not own.is_file():
        return client_capabilities(name)
    return get_converter().structure(json.loads(own.read_text(encoding="utf-8")), types.ClientCapabilities)


@pytest.fixture(params=EDITORS)
async def editor(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LanguageClient]:
    script = {"fill": "return a + b", "edit": {"print(add)": "print(plus)"}}
    program = str(Path(__file__).parent / "scripted_server.py")
    config = ClientServerConfig(
        server_command=[sys.executable, program],
        client_factory=make_test_lsp_client,
        server_env=environment(tmp_path, script),
    )
    client = await config.start()
    assert isinstance(client, LanguageClient)
    params = types.InitializeParams(capabilities=capabilities(request.param), workspace_folders=[])
    await client.initialize_session(params)
    yield client
    await client.shutdown_session()
    await client.stop()  # type: ignore[no-untyped-call]


def position(line: int, character: int) -> types.Position:
    return types.Position(line=line, character=character)


def change(version: int, line: int, start: int, end: int, text: str) -> types.DidChangeTextDocumentParams:
    where = types.Range(start=position(line, start), end=position(line, end))
    return types.DidChangeTextDocumentParams(
        text_document=types.VersionedTextDocumentIdentifier(uri=URI, version=version),
        content_changes=[types.TextDocumentContentChangePartial(range=where, text=text)],
    )


async def command(editor: LanguageClient, name: str, *arguments: Any) -> Any:
    return await editor.workspace_execute_command_async(
        types.ExecuteCommandParams(command=name, arguments=list(arguments))
    )


async def test_text_is_suggested_taken_and_followed_by_a_next_edit(editor: LanguageClient) -> None:
    document = types.TextDocumentItem(
        uri=URI, language_id="python", version=1, text="def add(a, b):\n    \n\nprint(add)\n"
    )
    editor.text_document_did_open(types.DidOpenTextDocumentParams(text_document=document))
    answer = await editor.text_document_inline_completion_async(
        types.InlineCompletionParams(
            text_document=types.TextDocumentIdentifier(uri=URI),
            position=position(1, 4),
            context=types.InlineCompletionContext(trigger_kind=types.InlineCompletionTriggerKind.Invoked),
        )
    )
    assert isinstance(answer, types.InlineCompletionList)
    (item,) = answer.items
    assert item.insert_text == "return a + b"
    assert item.command is not None
    editor.text_document_did_change(change(2, 1, 4, 4, "return a + b"))
    await command(editor, item.command.command, *(item.command.arguments or []))
    editor.text_document_did_change(change(3, 0, 4, 7, "plus"))
    params = {
        "textDocument": {"uri": URI, "version": 3},
        "position": {"line": 0, "character": 8},
        "context": {"triggerKind": 1},
    }
    edits = await editor.protocol.send_request_async(  # type: ignore[no-untyped-call]
        "textDocument/copilotInlineEdit", params
    )
    (edit,) = edits.edits
    assert (edit.textDocument.uri, edit.textDocument.version) == (URI, 3)
    assert edit.range.start.line == 3
    status = await command(editor, "calomel.status")
    assert status["state"] == "ready"
    assert status["outcomes"]["accepted"] == 1
    assert not editor.messages


async def test_what_is_wrong_in_the_settings_is_shown(editor: LanguageClient) -> None:
    editor.set_configuration({"calomel": {"suggest": {"max_tokens": "many"}}})
    editor.workspace_did_change_configuration(
        types.DidChangeConfigurationParams(settings={"calomel": {"suggest": {"max_tokens": "many"}}})
    )
    await command(editor, "calomel.reloadSettings")
    assert any("max_tokens" in message.message for message in editor.messages)
