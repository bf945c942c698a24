"""Next edits in another open document, offered where nothing is left to be done in the one that is asked about."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import Editor, edit_params, span

A, B, C = (f"file:///shop/{name}.py" for name in ("cart", "helper", "other"))
CART = "def total(prices):\n    return sum(prices)\n"
# Too far from each other to be shown together.
HELPER = "from cart import total\n" + 30 * "\n" + "def show(prices):\n    print(total(prices))\n"
RENAMED = {"range": span(0, 4, 9), "text": "amount"}


async def begin(editor: Editor, **others: str) -> None:
    """Open documents, the edited one last, in a client that can show an edit of another one."""
    editor.script.edit, editor.script.fill = {"total": "amount"}, None
    await editor.initialize(None, {"calomel": {"extensions": True, "debug": True, "other_files": True}})
    for name, text in others.items():
        editor.open(text, f"file:///shop/{name}.py")
    editor.open(CART, A)


async def renamed(editor: Editor, *changes: Any) -> list[dict[str, Any]]:
    """The function is renamed where it is defined: the answer to the question behind that."""
    editor.change(2, *(changes or [RENAMED]), uri=A)
    return list((await editor.next_edit(0, 10, 2, A))["edits"])


async def test_it_names_the_document_its_version_and_the_place(editor: Editor) -> None:
    await begin(editor, helper=HELPER)
    (edit,) = await renamed(editor)
    assert edit["textDocument"] == {"uri": B, "version": 1}
    assert (edit["range"], edit["text"]) == (span(0, 17, 22), "amount")
    assert edit["command"]["command"] == "calomel.accept"


async def test_taken_it_is_an_acceptance_and_the_next_one_follows_in_that_document(editor: Editor) -> None:
    await begin(editor, helper=HELPER)
    (edit,) = await renamed(editor)
    editor.notify("textDocument/didFocus", {"textDocument": {"uri": B}})
    (there,) = (await editor.next_edit(0, 17, 1, B))["edits"]
    assert there == edit
    editor.notify("textDocument/didShowInlineEdit", {"item": edit})
    editor.change(2, {"range": edit["range"], "text": edit["text"]}, uri=B)
    await editor.command("calomel.accept", *edit["command"]["arguments"])
    assert (await editor.outcomes())["accepted"] == 1
    (following,) = (await editor.next_edit(0, 23, 2, B))["edits"]
    assert (following["textDocument"]["uri"], following["range"]["start"]["line"]) == (B, 32)


@pytest.mark.parametrize("options", [{}, {"calomel": {"extensions": True}}, {"editorPluginInfo": {"name": "x"}}])
async def test_a_client_that_cannot_show_it_gets_nothing(editor: Editor, options: dict[str, Any]) -> None:
    editor.script.edit, editor.script.fill = {"total": "amount"}, None
    await editor.initialize(None, options)
    editor.open(HELPER, B)
    editor.open(CART, A)
    assert await renamed(editor) == []


async def test_what_is_left_in_the_same_document_comes_first(editor: Editor) -> None:
    await begin(editor, helper=HELPER)
    editor.open(CART + "\n\nprint(total([]))\n", A)
    (edit,) = await renamed(editor)
    assert edit["textDocument"]["uri"] == A


async def test_the_document_that_the_user_was_in_last_comes_first(editor: Editor) -> None:
    await begin(editor, helper=HELPER, other=HELPER)
    editor.notify("textDocument/didFocus", {"textDocument": {"uri": B}})
    editor.notify("textDocument/didFocus", {"textDocument": {"uri": A}})
    (edit,) = await renamed(editor)
    assert edit["textDocument"]["uri"] == B


async def test_rejected_it_does_not_come_back(editor: Editor) -> None:
    await begin(editor, helper="from cart import total\n")
    (edit,) = await renamed(editor)
    await editor.command("calomel.reject", *edit["command"]["arguments"])
    assert (await editor.next_edit(0, 10, 2, A))["edits"] == []
    assert (await editor.outcomes())["rejected"] == 1


async def test_what_changed_while_the_model_was_asked_is_left_alone(editor: Editor) -> None:
    await begin(editor, helper="from cart import total\n")
    held = editor.script.hold = asyncio.Event()
    editor.change(2, RENAMED, uri=A)
    asked = editor.start("textDocument/copilotInlineEdit", edit_params(0, 10, 2, A))
    await editor.until_asked()
    while "helper" not in str(editor.script.requests[-1].parts.path):
        before, held = held, asyncio.Event()
        editor.script.hold = held
        before.set()
        await editor.until_asked(len(editor.script.requests) + 1)
    editor.change(2, {"range": span(0, 17, 22), "text": "mean"}, uri=B)
    assert "mean" in await editor.text(B)
    held.set()
    assert (await editor.answer(asked))["result"] == {"edits": []}


@pytest.mark.parametrize(
    "helper",
    [
        "from cart import total\n\n\ndef total(prices):\n    return 0\n",
        "import cart\n\n\ndef show(total):\n    print(total)\n",
        "def show(cart):\n    print(total(cart))\n",
    ],
    ids=["defined_there", "a_parameter_there", "not_imported"],
)
async def test_a_name_that_means_something_else_there_stays(editor: Editor, helper: str) -> None:
    await begin(editor, helper=helper)
    assert await renamed(editor) == []


async def test_what_was_renamed_within_a_function_is_not_renamed_elsewhere(editor: Editor) -> None:
    await begin(editor, helper="from cart import total\n\n\ndef show(goods):\n    print(prices)\n")
    editor.script.edit = {"prices": "values"}
    editor.change(2, {"range": span(0, 10, 16), "text": "values"}, {"range": span(1, 15, 21), "text": "values"}, uri=A)
    assert (await editor.next_edit(1, 21, 2, A))["edits"] == []


async def test_what_was_taken_back_is_not_gone_on_with(editor: Editor) -> None:
    await begin(editor, helper=HELPER)
    editor.script.edit = {}
    editor.change(2, RENAMED, uri=A)
    editor.change(3, {"range": span(0, 4, 10), "text": "total"}, uri=A)
    editor.script.edit = {"total": "amount"}
    assert all(edit["textDocument"]["uri"] == A for edit in (await editor.next_edit(0, 9, 3, A))["edits"])


async def test_a_file_that_is_kept_from_models_is_not_looked_at(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("helper.py\n")
    editor.script.edit, editor.script.fill = {"total": "amount"}, None
    folders = [{"uri": tmp_path.as_uri(), "name": "shop"}]
    options = {"calomel": {"extensions": True, "other_files": True}}
    await editor.initialize(None, options, workspaceFolders=folders)
    a, b = (tmp_path / f"{name}.py" for name in ("cart", "helper"))
    for path, text in ((b, HELPER), (a, CART)):
        path.write_text(text)
        editor.open(text, path.as_uri())
    editor.change(2, RENAMED, uri=a.as_uri())
    assert (await editor.next_edit(0, 10, 2, a.as_uri()))["edits"] == []
    assert not any("helper" in repr(each.parts) for each in editor.script.requests)
