"""What shipping clients send, each in its own odd form, and what each needs to find in the answers."""

from __future__ import annotations

from typing import Any

from tests.lsp.editor import URI, Editor, at, span

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


async def test_copilot_el_completes_shows_takes_a_word_and_takes_all(editor: Editor) -> None:
    await editor.ask("initialize", COPILOT_EL)
    editor.notify("initialized", {})
    editor.notify("workspace/didChangeConfiguration", {"settings": None})
    editor.open("def add(a, b):\n    \n", version=0)
    params = {
        "textDocument": {"uri": URI},
        "position": at(1, 4),
        "context": {"triggerKind": 2},
        "formattingOptions": {"tabSize": 4, "insertSpaces": True},
    }
    editor.change(1, {"range": span(1, 0, 4), "text": "    "})
    params["context"] = {"triggerKind": 1}
    answer = await editor.ask("textDocument/inlineCompletion", params)
    (item,) = answer["items"]
    assert isinstance(item["insertText"], str)
    editor.notify("textDocument/didShowCompletion", {"item": item})
    editor.change(2, {"range": span(1, 4, 4), "text": "return"})
    editor.notify("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 6})
    editor.change(3, {"range": span(1, 10, 10), "text": " a + b"})
    await editor.ask("workspace/executeCommand", item["command"])
    outcomes = (await editor.command("calomel.status"))["outcomes"]
    assert outcomes.get("accepted") == 1


async def test_copilot_el_takes_a_next_edit_by_a_notification(editor: Editor) -> None:
    editor.script.edit = {"print(old)": "print(new)"}
    await editor.ask("initialize", COPILOT_EL)
    editor.notify("initialized", {})
    editor.open(TEXT, version=0)
    editor.change(1, {"range": span(0, 0, 3), "text": "new"})
    params = {"textDocument": {"uri": URI, "version": 1}, "position": at(0, 3)}
    (edit,) = (await editor.ask("textDocument/copilotInlineEdit", params))["edits"]
    assert edit["textDocument"] == {"uri": URI, "version": 1}
    editor.notify("textDocument/didShowInlineEdit", {"item": {"command": {"arguments": edit["command"]["arguments"]}}})
    editor.change(2, {"range": edit["range"], "text": edit["text"]})
    command = {"command": edit["command"]["command"], "arguments": edit["command"]["arguments"]}
    editor.notify("workspace/executeCommand", command)
    assert (await editor.command("calomel.status"))["outcomes"]["accepted"] == 1
    assert not [message for message in editor.messages if message.get("method") == "window/showMessage"]


async def test_copilot_lsp_counts_utf16_whatever_it_offered_and_never_says_accepted(editor: Editor) -> None:
    editor.script.edit = {"= old_name": "= new_name"}
    result = await editor.ask("initialize", NEOVIM_COPILOT)
    assert result["capabilities"]["positionEncoding"] == "utf-16"
    editor.notify("initialized", {})
    editor.open('old_name = 1\n"😀"; a = old_name\n', version=0)
    editor.notify("textDocument/didFocus", {"textDocument": {"uri": URI}})
    editor.change(1, {"range": span(0, 0, 3), "text": "new"})
    params = {"textDocument": {"uri": URI, "version": 1}, "position": at(0, 3)}
    (edit,) = (await editor.ask("textDocument/copilotInlineEdit", params))["edits"]
    units = '"😀"; a = old_name'.encode("utf-16-le")
    start, end = (2 * edit["range"][name]["character"] for name in ("start", "end"))
    assert (units[:start] + edit["text"].encode("utf-16-le") + units[end:]).decode("utf-16-le") == '"😀"; a = new_name'
    editor.notify("textDocument/didShowInlineEdit", {"item": edit})
    editor.change(2, {"range": edit["range"], "text": edit["text"]})
    assert (await editor.command("calomel.status"))["outcomes"]["accepted"] == 1


async def test_copilot_lsp_never_gets_null_or_an_error(editor: Editor) -> None:
    await editor.ask("initialize", NEOVIM_COPILOT)
    editor.notify("initialized", {})
    for document in ({"uri": URI}, {"uri": URI, "version": 7}, {"uri": "untitled:x", "version": 0}):
        answer = await editor.ask("textDocument/copilotInlineEdit", {"textDocument": document, "position": at(9, 9)})
        assert answer == {"edits": []}


async def test_sidekick_gets_one_edit_of_the_version_it_has(editor: Editor) -> None:
    editor.script.edit = {"old": "new"}
    await editor.ask("initialize", NEOVIM_COPILOT)
    editor.notify("initialized", {})
    editor.open(TEXT, version=4)
    editor.change(5, {"range": span(0, 0, 3), "text": "new"})
    params = {
        "textDocument": {"uri": URI, "version": 5},
        "position": at(0, 3),
        "context": {"triggerKind": 2},
    }
    (edit,) = (await editor.ask("textDocument/copilotInlineEdit", params))["edits"]
    assert edit["textDocument"] == {"uri": URI, "version": 5}


async def test_cursortab_repeats_the_whole_text_under_the_same_version(editor: Editor) -> None:
    await editor.ask("initialize", NEOVIM_COPILOT | {"initializationOptions": {"calomel": {"debug": True}}})
    editor.notify("initialized", {})
    editor.open(TEXT, version=3)
    everything = {"start": at(0, 0), "end": at(2147483647, 0)}
    editor.change(3, {"range": everything, "text": "new = 1\nprint(old)\n"})
    assert await editor.text() == "new = 1\nprint(old)\n"


async def test_lsp_mode_asks_about_a_document_that_it_has_not_opened(editor: Editor) -> None:
    capabilities = {"general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]}}
    result = await editor.initialize(capabilities)
    # An empty object would be nil there.
    assert result["capabilities"]["inlineCompletionProvider"]
    assert await editor.inline(0, 0) is None


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
        number = editor.start(
            "textDocument/inlineCompletion",
            {"textDocument": {"uri": URI}, "position": at(0, 7 + version), "context": {"triggerKind": 2}},
        )
        editor.notify("$/cancelRequest", {"id": number})
        editor.change(version, {"range": span(0, 6 + version, 6 + version), "text": letter})
        answer = await editor.answer(number)
        assert answer.get("error", {}).get("code") == -32800 or answer["result"] is None
    (item,) = (await editor.inline(0, 11))["items"]
    assert item["range"]["start"]["line"] == item["range"]["end"]["line"] == 0


async def test_neovim_takes_the_item_and_runs_its_command(editor: Editor) -> None:
    await editor.ask("initialize", NEOVIM_COPILOT | {"initializationOptions": {}})
    editor.notify("initialized", {})
    editor.open("def add(a, b):\n    \n", version=0)
    (item,) = (await editor.inline(1, 4))["items"]
    editor.change(4, {"range": item["range"], "text": item["insertText"]})
    command = item["command"]
    await editor.ask("workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})
    assert (await editor.command("calomel.status"))["outcomes"]["accepted"] == 1
