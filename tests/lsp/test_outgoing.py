"""Everything that the server sends has the form that the specification (3.18) gives it."""

from __future__ import annotations

from typing import Any

import pytest
from lsprotocol import types
from tests.lsp.editor import URI, Editor, at, inline_params, place, span

from calomel.lsp.protocol import strict_converter

CAPABILITIES: dict[str, Any] = {
    "window": {"workDoneProgress": True},
    "workspace": {"configuration": True, "workspaceEdit": {"documentChanges": True}},
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}},
}


def check(method: str, answer: dict[str, Any]) -> None:
    """The answer as the specification types it, and back to the same JSON: nothing is left over."""
    converter = strict_converter()
    if method == "textDocument/codeAction":
        # lsprotocol takes everything with a `command` for a Command.
        for action in answer["result"]:
            assert action == converter.unstructure(converter.structure(action, types.CodeAction))
        return
    kind: Any = types.METHOD_TO_TYPES[method][1]
    typed: Any = converter.structure(answer, kind)
    assert answer == converter.unstructure(typed) | ({"result": None} if answer.get("result") is None else {})


@pytest.mark.parametrize("options", [None, {"calomel": {"completion_item": True}}])
async def test_the_answer_to_initialize(editor: Editor, options: Any) -> None:
    params = {"processId": None, "rootUri": None, "capabilities": CAPABILITIES, "initializationOptions": options}
    check("initialize", await editor.answer(editor.start("initialize", params)))


async def test_answers_with_and_without_suggestions(editor: Editor) -> None:
    await editor.initialize(CAPABILITIES, {"calomel": {"completion_item": True, "extensions": True}})
    questions = {
        "textDocument/inlineCompletion": inline_params(1, 4),
        "textDocument/completion": place(1, 4),
        "textDocument/codeAction": {
            "textDocument": {"uri": URI}, "range": span(0, 0, 0), "context": {"diagnostics": [], "triggerKind": 1}
        },
        "workspace/executeCommand": {"command": "calomel.status"},
    }  # fmt: skip
    for method, params in questions.items():
        check(method, await editor.answer(editor.start(method, params)))
    editor.script.edit = {"a, b": "a, c"}
    editor.open("def add(a, b):\n    \n")
    editor.change(2, {"range": span(0, 4, 4), "text": "x"})
    for method, params in questions.items():
        answer = await editor.answer(editor.start(method, params))
        assert answer["result"], method
        check(method, answer)
    check("shutdown", await editor.answer(editor.start("shutdown")))


async def test_requests_and_notifications_of_the_server(editor: Editor) -> None:
    await editor.initialize(CAPABILITIES, {"calomel": {"suggest": {"max_tokens": "x"}}}, workspaceFolders=[])
    editor.open("one\n")
    editor.change(2, {"range": {"start": at(0, 3), "end": at(0, 0)}, "text": "x"})
    await editor.until(lambda message: message.get("params", {}).get("value", {}).get("kind") == "end")
    assert await editor.alive()
    converter = strict_converter()
    seen = set()
    for message in editor.messages:
        if message["method"] in types.METHOD_TO_TYPES:
            kind = types.METHOD_TO_TYPES[message["method"]][0]
            converter.structure(message, kind)
            seen.add(message["method"])
    assert {"window/showMessage", "workspace/configuration", "window/workDoneProgress/create", "$/progress"} <= seen


async def test_errors(editor: Editor) -> None:
    await editor.initialize()
    answer = await editor.answer(editor.start("nothing/like/it"))
    strict_converter().structure(answer, types.ResponseErrorMessage)
    assert answer["error"]["message"]
