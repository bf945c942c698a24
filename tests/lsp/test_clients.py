"""What shipping clients send, each in its own odd form, and what each needs to find in the answers."""

from __future__ import annotations

from typing import Any

from tests.lsp.editor import URI, Editor, at, inline_params, span

COPILOT_EL = {
    "processId": None,
    "capabilities": {"workspace": {"workspaceFolders": True}},
    "rootUri": None,
    "initializationOptions": {
        "editorInfo": {"name": "Emacs", "version": "30.2"},
        "editorPluginInfo": {"name": "copilot.el", "version": "0.4.0"},
    },
}
NEOVIM_COPILOT = {
    "processId": None,
    "clientInfo": {"name": "Neovim", "version": "0.12.4"},
    "rootPath": None,
    "rootUri": None,
    "workspaceFolders": None,
    "trace": "off",
    "capabilities": {
        "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
        "textDocument": {"inlineCompletion": {"dynamicRegistration": False}},
        "window": {
            "workDoneProgress": True,
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
        },
        "workspace": {"configuration": True, "didChangeWatchedFiles": {"dynamicRegistration": False}},
    },
    "initializationOptions": {
        "editorInfo": {"name": "Neovim", "version": "0.12.4"},
        "editorPluginInfo": {"name": "Neovim", "version": "0.12.4"},
    },
}
TEXT = "old = 1\nprint(old)\n"


async def greeted(editor: Editor, params: dict[str, Any]) -> Any:
    result = await editor.ask("initialize", params)
    editor.notify("initialized", {})
    return result


async def test_copilot_el_completes_shows_takes_a_word_and_takes_all(editor: Editor) -> None:
    await greeted(editor, COPILOT_EL)
    editor.notify("workspace/didChangeConfiguration", {"settings": None})
    editor.open("def add(a, b):\n    \n", version=0)
    params = inline_params(1, 4) | {"formattingOptions": {"tabSize": 4, "insertSpaces": True}}
    editor.change(1, {"range": span(1, 0, 4), "text": "    "})
    answer = await editor.ask("textDocument/inlineCompletion", params)
    (item,) = answer["items"]
    assert isinstance(item["insertText"], str)
    editor.notify("textDocument/didShowCompletion", {"item": item})
    editor.change(2, {"range": span(1, 4, 4), "text": "return"})
    editor.notify("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 6})
    editor.change(3, {"range": span(1, 10, 10), "text": " a + b"})
    await editor.ask("workspace/executeCommand", item["command"])
    assert (await editor.outcomes())["accepted"] == 1


async def test_copilot_el_takes_a_next_edit_by_a_notification(editor: Editor) -> None:
    editor.script.edit = {"print(old)": "print(new)"}
    await greeted(editor, COPILOT_EL)
    editor.open(TEXT, version=0)
    editor.change(1, {"range": span(0, 0, 3), "text": "new"})
    (edit,) = (await editor.next_edit(0, 3))["edits"]
    assert edit["textDocument"] == {"uri": URI, "version": 1}
    editor.notify("textDocument/didShowInlineEdit", {"item": {"command": {"arguments": edit["command"]["arguments"]}}})
    editor.change(2, {"range": edit["range"], "text": edit["text"]})
    command = {"command": edit["command"]["command"], "arguments": edit["command"]["arguments"]}
    editor.notify("workspace/executeCommand", command)
    assert (await editor.outcomes())["accepted"] == 1
    assert not editor.shown()


async def test_copilot_lsp_counts_utf16_whatever_it_offered_and_never_says_accepted(editor: Editor) -> None:
    editor.script.edit = {"= old_name": "= new_name"}
    assert (await greeted(editor, NEOVIM_COPILOT))["capabilities"]["positionEncoding"] == "utf-16"
    editor.open('old_name = 1\n"😀"; a = old_name\n', version=0)
    editor.notify("textDocument/didFocus", {"textDocument": {"uri": URI}})
    editor.change(1, {"range": span(0, 0, 3), "text": "new"})
    (edit,) = (await editor.next_edit(0, 3))["edits"]
    units = '"😀"; a = old_name'.encode("utf-16-le")
    start, end = (2 * edit["range"][name]["character"] for name in ("start", "end"))
    assert (units[:start] + edit["text"].encode("utf-16-le") + units[end:]).decode("utf-16-le") == '"😀"; a = new_name'
    editor.notify("textDocument/didShowInlineEdit", {"item": edit})
    editor.change(2, {"range": edit["range"], "text": edit["text"]})
    assert (await editor.outcomes())["accepted"] == 1


async def test_copilot_lsp_never_gets_null_or_an_error(editor: Editor) -> None:
    await greeted(editor, NEOVIM_COPILOT)
    for document in ({"uri": URI}, {"uri": URI, "version": 7}, {"uri": "untitled:x", "version": 0}):
        answer = await editor.ask("textDocument/copilotInlineEdit", {"textDocument": document, "position": at(9, 9)})
        assert answer == {"edits": []}


async def test_cursortab_repeats_the_whole_text_under_the_same_version(editor: Editor) -> None:
    await greeted(editor, NEOVIM_COPILOT | {"initializationOptions": {"calomel": {"debug": True}}})
    editor.open(TEXT, version=3)
    everything = {"start": at(0, 0), "end": at(2147483647, 0)}
    editor.change(3, {"range": everything, "text": "new = 1\nprint(old)\n"})
    assert await editor.text() == "new = 1\nprint(old)\n"


async def test_clients_that_ask_for_an_account_are_satisfied(editor: Editor) -> None:
    await editor.ask("initialize", COPILOT_EL)
    assert (await editor.ask("checkStatus", {"localChecksOnly": True}))["status"] == "OK"
    assert (await editor.ask("checkStatus", {"_": True}))["user"]
    for method in ("signIn", "signInInitiate", "signOut", "setEditorInfo", "getVersion"):
        await editor.ask(method)
        await editor.ask(method, {"_": True})
    assert (await editor.ask("getVersion", {}))["version"]


async def test_vscode_cancels_each_question_and_applies_the_smallest_change(editor: Editor) -> None:
    editor.script.fill = "new_name"
    capabilities: dict[str, Any] = {
        "general": {"positionEncodings": ["utf-16"]},
        "textDocument": {"inlineCompletion": {"dynamicRegistration": True}},
        "workspace": {"configuration": True, "workspaceFolders": True},
    }
    editor.answers["workspace/configuration"] = lambda params: [None] * len(params["items"])
    await editor.initialize(capabilities, clientInfo={"name": "Visual Studio Code", "version": "1.139.1"})
    editor.open("value = \n")
    for version, letter in enumerate("abc", 2):
        number = editor.start("textDocument/inlineCompletion", inline_params(0, 7 + version, 2))
        editor.notify("$/cancelRequest", {"id": number})
        editor.change(version, {"range": span(0, 6 + version, 6 + version), "text": letter})
        answer = await editor.answer(number)
        assert answer.get("error", {}).get("code") == -32800 or answer["result"] is None
    (item,) = (await editor.inline(0, 11))["items"]
    assert item["range"]["start"]["line"] == item["range"]["end"]["line"] == 0
