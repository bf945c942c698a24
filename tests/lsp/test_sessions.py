"""Whole sessions of several editors against the program, by a client that holds what it gets to the capabilities."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from lsprotocol.converters import get_converter
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities, make_test_lsp_client
from tests.lsp.editor import ADD, URI, edit_params
from tests.lsp.program import SCRIPTED, environment

pytestmark = pytest.mark.e2e

EDITORS = ["neovim", "visual_studio_code", "emacs", "neovim_0.12", "visual_studio_code_1.139"]


@pytest.fixture(autouse=True)
def _short_turns() -> None:
    """The only loop here is the client's, whose library makes itself ready for as long as it likes."""


def capabilities(name: str) -> types.ClientCapabilities:
    """Those of a newer editor lie beside this file; the library's know nothing of inline completion."""
    own = Path(__file__).parent / "clients" / f"{name}.json"
    if not own.is_file():
        return client_capabilities(name)
    return get_converter().structure(json.loads(own.read_text(encoding="utf-8")), types.ClientCapabilities)


@pytest.fixture(params=EDITORS)
async def editor(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LanguageClient]:
    script = {"fill": "return a + b", "edit": {"print(add)": "print(plus)"}}
    config = ClientServerConfig(
        server_command=SCRIPTED, client_factory=make_test_lsp_client, server_env=environment(tmp_path, script)
    )
    client = await config.start()
    assert isinstance(client, LanguageClient)
    params = types.InitializeParams(capabilities=capabilities(request.param), workspace_folders=[])
    await client.initialize_session(params)
    yield client
    await client.shutdown_session()
    await client.stop()  # type: ignore[no-untyped-call]


def change(version: int, line: int, start: int, end: int, text: str) -> types.DidChangeTextDocumentParams:
    where = types.Range(types.Position(line, start), types.Position(line, end))
    return types.DidChangeTextDocumentParams(
        types.VersionedTextDocumentIdentifier(version, URI), [types.TextDocumentContentChangePartial(where, text)]
    )


async def command(editor: LanguageClient, name: str, arguments: Any = None) -> Any:
    return await editor.workspace_execute_command_async(types.ExecuteCommandParams(name, arguments))


async def test_text_is_suggested_taken_and_followed_by_a_next_edit(editor: LanguageClient) -> None:
    document = types.TextDocumentItem(URI, "python", 1, ADD + "\nprint(add)\n")
    editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
    answer = await editor.text_document_inline_completion_async(
        types.InlineCompletionParams(
            types.InlineCompletionContext(types.InlineCompletionTriggerKind.Invoked),
            types.TextDocumentIdentifier(URI),
            types.Position(1, 4),
        )
    )
    assert isinstance(answer, types.InlineCompletionList)
    (item,) = answer.items
    assert item.insert_text == "return a + b"
    assert item.command is not None
    editor.text_document_did_change(change(2, 1, 4, 4, "return a + b"))
    await command(editor, item.command.command, item.command.arguments)
    editor.text_document_did_change(change(3, 0, 4, 7, "plus"))
    edits = await editor.protocol.send_request_async(  # type: ignore[no-untyped-call]
        "textDocument/copilotInlineEdit", edit_params(0, 8, 3)
    )
    (edit,) = edits.edits
    assert (edit.textDocument.uri, edit.textDocument.version) == (URI, 3)
    assert edit.range.start.line == 3
    status = await command(editor, "calomel.status")
    assert status["state"] == "ready"
    assert status["outcomes"]["accepted"] == 1
    assert not editor.messages

    settings = {"calomel": {"suggest": {"max_tokens": "many"}}}
    editor.set_configuration(settings)
    editor.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))
    await command(editor, "calomel.reloadSettings")
    assert any("max_tokens" in message.message for message in editor.messages)
