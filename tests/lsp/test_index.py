"""The code around: read in the background, forgotten when it is none of the workspace's any more."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import SECONDS, Editor, Script, span

PROGRESS = {"window": {"workDoneProgress": True}}
TEXT = "from shapes import Rectangle\n\nx = Rectangle\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shapes.py").write_text("class Rectangle:\n    sides = 4\n\n    def area(self):\n        return 1\n")
    (folder / "main.py").write_text(TEXT)
    return folder


async def read(editor: Editor) -> list[dict[str, Any]]:
    """Wait until the workspace is read; what was said of it."""
    while True:
        created = await editor.notice("window/workDoneProgress/create")
        begun = await editor.until(lambda one, token=created["token"]: _is(one, token, "begin"))  # type: ignore[misc]
        if "reading" in begun["params"]["value"]["title"]:
            break
    ended = await editor.until(lambda one: _is(one, created["token"], "end"))
    return [begun, ended]


def _is(message: dict[str, Any], token: str, kind: str) -> bool:
    params = message.get("params") or {}
    return message.get("method") == "$/progress" and params["token"] == token and params["value"]["kind"] == kind


async def ask(editor: Editor, folder: Path, column: int = 13) -> str:
    """The code of other files in the request at the end of the last line."""
    uri = (folder / "main.py").as_uri()
    before = len(editor.script.requests)
    await editor.inline(2, column, uri=uri)
    await editor.until_asked(before + 1)
    return "".join(excerpt.text for excerpt in editor.script.requests[-1].parts.related)


async def start(editor: Editor, *folders: Path, **options: Any) -> None:
    given = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
    await editor.initialize(PROGRESS, options, workspaceFolders=given)


async def test_a_definition_in_another_file_reaches_the_model(editor: Editor, folder: Path) -> None:
    await start(editor, folder)
    await read(editor)
    editor.open(TEXT, uri=(folder / "main.py").as_uri())
    assert "def area(self):" in await ask(editor, folder)


async def test_what_is_in_a_folder_that_was_removed_is_forgotten(editor: Editor, folder: Path, script: Script) -> None:
    await start(editor, folder)
    await read(editor)
    editor.notify(
        "workspace/didChangeWorkspaceFolders",
        {"event": {"added": [], "removed": [{"uri": folder.as_uri(), "name": "project"}]}},
    )
    editor.open(TEXT, uri=(folder / "main.py").as_uri())
    async with asyncio.timeout(SECONDS):
        # The reader forgets in its own thread; another text, so that no earlier answer is shown again.
        while "area" in await ask(editor, folder):
            script.fill = f"{script.fill} "
            await asyncio.sleep(0.05)


async def test_nothing_is_read_when_the_user_wants_nothing_read(editor: Editor, folder: Path) -> None:
    await start(editor, folder, workspace={"index": False})
    editor.open(TEXT, uri=(folder / "main.py").as_uri())
    assert await ask(editor, folder) == ""


async def test_what_is_known_only_later_reaches_the_model_too(editor: Editor, folder: Path) -> None:
    """The first question is asked before the workspace is read; its context does not stay as poor as it was."""
    await start(editor, folder)
    editor.open(TEXT, uri=(folder / "main.py").as_uri())
    await ask(editor, folder)
    await read(editor)
    editor.change(2, {"range": span(2, 13, 13), "text": "("}, uri=(folder / "main.py").as_uri())
    assert "def area(self):" in await ask(editor, folder, 14)


async def test_a_folder_that_is_deleted_ends_nothing(editor: Editor, folder: Path) -> None:
    package = folder / "package"
    package.mkdir()
    (package / "one.py").write_text("class One:\n    pass\n")
    await start(editor, folder)
    await read(editor)
    await asyncio.to_thread(shutil.rmtree, package)
    await until_files(editor, 2)
    for number in range(3):
        (folder / f"new{number}.py").write_text("class New:\n    pass\n")
    await until_files(editor, 5)


async def until_files(editor: Editor, count: int) -> None:
    wanted = {"files": count, "ready": True, "restarts": 0}
    async with asyncio.timeout(SECONDS):
        while (await editor.command("calomel.status"))["index"] != wanted:  # noqa: ASYNC110 (another program's state)
            await asyncio.sleep(0.05)
