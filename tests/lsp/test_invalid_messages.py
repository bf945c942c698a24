"""Wrong params of every method that is served, derived from the types of the specification."""

from __future__ import annotations

import pytest
from tests.lsp import messages
from tests.lsp.editor import Editor

OPTIONS = {"calomel": {"debug": True, "completion_item": True}}


@pytest.fixture
async def ready(editor: Editor) -> Editor:
    await editor.initialize(options=OPTIONS)
    editor.open("a = 1\n", uri=messages.URI)
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


@pytest.mark.parametrize("method", messages.REQUESTS)
async def test_a_request_without_a_required_field_is_told_so(ready: Editor, method: str) -> None:
    required = {
        "textDocument/inlineCompletion": ("textDocument", "position", "context"),
        "textDocument/completion": ("textDocument", "position"),
        "textDocument/codeAction": ("textDocument", "range", "context"),
        "workspace/executeCommand": ("command",),
    }
    for name in required[method]:
        params = dict(messages.valid(method))
        del params[name]
        assert await ready.error(method, params) == -32602


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
