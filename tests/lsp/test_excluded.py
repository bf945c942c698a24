"""Files that are kept from models: what is typed in them is in no context, no request and no answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.lsp.editor import ADD, Editor, inline_params, place, span

WORD = "quarterly_customer"
LINE = f"{WORD} = load_customer(name, folder, 4711)\n"
ASKED = "name = 1\nother = load_customer(name, folder, 4711"


@pytest.fixture
async def there(editor: Editor, tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    await editor.initialize(workspaceFolders=[{"uri": folder.as_uri(), "name": "project"}])
    return folder


def edit(editor: Editor, file: Path, language: str = "python") -> None:
    file.touch()
    editor.open("\n" * 30, uri=file.as_uri(), language=language)
    editor.notify("textDocument/didFocus", {"textDocument": {"uri": file.as_uri()}})
    editor.change(2, {"range": span(0, 0, 0), "text": LINE}, uri=file.as_uri())


async def told(editor: Editor, file: Path) -> str:
    """All that the model would see at the end of the file, and all that it was asked."""
    editor.notify("textDocument/didFocus", {"textDocument": {"uri": file.as_uri()}})
    shown = await editor.command("calomel.showContext", place(1, len(ASKED) - 9, file.as_uri()))
    await editor.inline(1, len(ASKED) - 9, uri=file.as_uri())
    return repr((shown, editor.script.requests))


async def test_an_edit_of_a_secret_file_is_told_to_no_model(editor: Editor, there: Path) -> None:
    edit(editor, there / ".env", "dotenv")
    editor.open(ASKED, uri=(there / "a.py").as_uri())
    assert WORD not in await told(editor, there / "a.py")


async def test_an_edit_is_told_until_its_file_is_ignored(editor: Editor, there: Path) -> None:
    edit(editor, there / "b.py")
    editor.open(ASKED, uri=(there / "a.py").as_uri())
    assert WORD in await told(editor, there / "a.py")
    editor.script.requests.clear()
    (there / ".gitignore").write_text("b.py\n")
    assert WORD not in await told(editor, there / "a.py")


async def test_the_context_of_a_file_that_is_kept_from_models_is_empty_and_says_why(
    editor: Editor, there: Path
) -> None:
    edit(editor, there / ".env", "dotenv")
    shown = await editor.command("calomel.showContext", place(0, 0, (there / ".env").as_uri()))
    assert (shown["parts"], shown["reason"]) == ([], "ignored_path")
    assert shown["message"] == "This file may contain a secret (.env)."


async def test_a_document_that_was_never_saved_is_judged_by_its_language(editor: Editor) -> None:
    await editor.initialize()
    editor.open(LINE, uri="untitled:Untitled-1", language="dotenv")
    assert await editor.inline(0, 0, kind=2, uri="untitled:Untitled-1") is None
    assert editor.script.requests == []


async def test_an_answer_that_is_kept_goes_with_what_it_was_made_of(editor: Editor, there: Path) -> None:
    edit(editor, there / "b.py")
    uri = (there / "a.py").as_uri()
    editor.open("name = 1\nother = \n", uri=uri)
    editor.notify("textDocument/didFocus", {"textDocument": {"uri": uri}})
    editor.change(2, {"range": span(1, 8, 8), "text": "n"}, uri=uri)
    editor.script.fill = "ame + 1"
    first, again = [await editor.inline(1, 9, kind=2, uri=uri) for _ in range(2)]
    assert first is not None
    assert "ame + 1" in repr(first)
    assert "ame + 1" in repr(again)
    assert WORD in repr(editor.script.requests)
    asked = len(editor.script.requests)
    (there / ".git" / "info").mkdir(parents=True)
    (there / ".git" / "info" / "exclude").write_text("b.py\n")
    await editor.inline(1, 9, kind=2, uri=uri)
    assert asked == 1
    assert len(editor.script.requests) == 2
    assert WORD not in repr(editor.script.requests[1])


async def test_the_rules_of_a_second_folder_count(editor: Editor, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    (second / "calomel.toml").write_text('[privacy]\nignore = ["b.py"]\n[suggest]\nenabled = false\n')
    both = [{"uri": folder.as_uri(), "name": folder.name} for folder in (first, second)]
    await editor.initialize(workspaceFolders=both)
    edit(editor, second / "b.py")
    editor.open(ASKED, uri=(first / "a.py").as_uri())
    assert WORD not in await told(editor, first / "a.py")
    edit(editor, second / "c.py")
    assert WORD in await told(editor, first / "a.py")


async def test_a_git_that_hangs_keeps_nobody_waiting_and_until_it_rests_no_file_is_told(
    editor: Editor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fixture of this folder sees whether the event loop waits."""
    folder, program = tmp_path / "project", tmp_path / "bin" / "git"
    (folder / ".git").mkdir(parents=True)
    (folder / ".gitignore").write_text("b.py\n")
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    await editor.initialize(workspaceFolders=[{"uri": folder.as_uri(), "name": "project"}])
    for name in ("a.py", "b.py"):
        (folder / name).touch()
        editor.open(ADD, uri=(folder / name).as_uri())
        number = editor.start("textDocument/inlineCompletion", inline_params(1, 4, 2, (folder / name).as_uri()))
        assert await editor.alive()
        assert editor.script.requests == []
        answer = (await editor.answer(number))["result"]
        # Our own reading of the patterns decides now.
        assert (answer is not None) == (name == "a.py")
        editor.script.requests.clear()
