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


async def test_progress_counts_files_while_it_looks_for_them(editor: Editor, folder: Path) -> None:
    for number in range(600):
        (folder / f"part_{number}.py").write_text(f"value_{number} = {number}\n")
    await start(editor, folder)
    _, ended = await read(editor)
    values = [each["params"]["value"] for each in editor.messages if _is(each, ended["params"]["token"], "report")]
    assert [values[0]["percentage"], values[0]["message"]] == [0, "500 files found"]
    assert [values[-1]["percentage"], values[-1]["message"]] == [100, "602 of 602 files"]


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


async def test_a_file_that_was_deleted_is_not_shown_again(editor: Editor, folder: Path) -> None:
    await start(editor, folder)
    await read(editor)
    editor.open(TEXT, uri=(folder / "main.py").as_uri())
    assert "def area(self):" in await ask(editor, folder)
    (folder / "shapes.py").unlink()
    editor.change(2, {"range": span(2, 13, 13), "text": "("}, uri=(folder / "main.py").as_uri())
    # At once, whether or not anybody watches the folder.
    assert await ask(editor, folder, 14) == ""


async def test_each_line_of_progress_ends_even_if_settings_come_meanwhile(editor: Editor, folder: Path) -> None:
    editor.answers["workspace/configuration"] = lambda _: [{"privacy": {"ignore": ["*.sql"]}}]
    given = [{"uri": folder.as_uri(), "name": folder.name}]
    await editor.initialize(PROGRESS | {"workspace": {"configuration": True}}, workspaceFolders=given)
    await until_files(editor, 2)

    def tokens(kind: str) -> set[str]:
        return {one["token"] for one in editor.shown("$/progress") if one["value"]["kind"] == kind}

    async with asyncio.timeout(SECONDS):
        while not tokens("begin") or tokens("begin") != tokens("end"):  # noqa: ASYNC110 (another program's state)
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


CALL = 'settings.store.put(path, encoding="utf-8")\n'
SECRET_CALL = f'settings.store.put("{"gh" + "p_" + "a1B2c3D4" * 4}")\n'


async def copied(editor: Editor, folder: Path, text: str = "settings.store.put(") -> list[str]:
    """What the model is asked to verify at the end of an open document."""
    uri = (folder / "main.py").as_uri()
    editor.open(text, uri=uri)
    editor.script.fill = None
    before = len(editor.script.requests)
    await editor.inline(text.count("\n"), len(text.rpartition("\n")[2]), uri=uri)
    await editor.until_asked(before + 1)
    return [draft.text for draft in editor.script.requests[-1].drafts]


@pytest.mark.parametrize(
    ("name", "text", "drafts"),
    [
        ("b.py", CALL, ['path, encoding="utf-8")']),
        ("deep/down/b.ts", CALL, ['path, encoding="utf-8")']),
        ("secrets.yaml", CALL, []),
        ("ignored/b.py", CALL, []),
        ("excluded/b.py", CALL, []),
        ("node_modules/b.py", CALL, []),
        ("b.py", f"# @generated by a tool\n{CALL}", []),
        ("b.py", SECRET_CALL, []),
        ("b.py", CALL + SECRET_CALL, []),
        ("b.py", CALL.replace("\n", f"  {'#' * 400}\n"), []),
    ],
    ids=[
        "closed", "in_a_folder", "secret_file", "ignored", "excluded", "passed_by", "generated", "secret_in_it",
        "two_continuations", "long_line",
    ],
)  # fmt: skip
async def test_a_closed_file_is_copied_from_if_a_model_may_see_it(
    editor: Editor, folder: Path, name: str, text: str, drafts: list[str]
) -> None:
    (folder / ".gitignore").write_text("ignored/\n")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    await start(editor, folder, privacy={"ignore": ["excluded/"]})
    await read(editor)
    assert await copied(editor, folder) == drafts


async def test_a_folder_that_was_opened_is_read_even_in_one_that_is_passed_by(editor: Editor, folder: Path) -> None:
    package = folder / "node_modules" / "mine"
    package.mkdir(parents=True)
    (package / "b.py").write_text(CALL)
    await start(editor, folder, package)
    await read(editor)
    assert await copied(editor, folder) == ['path, encoding="utf-8")']


async def test_a_generated_file_is_copied_from_if_the_user_lets_it_in(editor: Editor, folder: Path) -> None:
    (folder / "b.py").write_text(f"# @generated by a tool\n{CALL}")
    await start(editor, folder, privacy={"ignore": ["!b.py"]})
    await read(editor)
    assert await copied(editor, folder) == ['path, encoding="utf-8")']


async def test_a_folder_that_the_system_refuses_does_not_have_everything_read_again(
    editor: Editor, folder: Path
) -> None:
    await start(editor, folder, folder / ("a" * 300))
    await until_files(editor, 2)


@pytest.mark.parametrize("how", ["removed", "ignored"])
async def test_a_file_that_goes_is_not_copied_from_any_more(editor: Editor, folder: Path, how: str) -> None:
    (folder / "b.py").write_text(CALL)
    await start(editor, folder)
    await read(editor)
    assert await copied(editor, folder) == ['path, encoding="utf-8")']
    if how == "removed":
        (folder / "b.py").unlink()
    else:
        (folder / ".gitignore").write_text("b.py\n")
    assert await copied(editor, folder) == []


async def test_of_a_file_that_changed_the_new_text_is_copied(editor: Editor, folder: Path) -> None:
    (folder / "b.py").write_text(CALL)
    await start(editor, folder)
    await read(editor)
    (folder / "b.py").write_text(CALL.replace("path", "new_path"))
    async with asyncio.timeout(SECONDS):
        # The watcher waits for a moment.
        while await copied(editor, folder) != ['new_path, encoding="utf-8")']:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_what_is_typed_in_an_open_document_counts_instead_of_its_file(editor: Editor, folder: Path) -> None:
    (folder / "b.py").write_text(CALL)
    await start(editor, folder)
    await read(editor)
    editor.open(CALL.replace("path", "typed_path"), uri=(folder / "b.py").as_uri())
    assert await copied(editor, folder) == ['typed_path, encoding="utf-8")']
    editor.open("\n", uri=(folder / "b.py").as_uri(), version=2)
    assert await copied(editor, folder) == []
    editor.notify("textDocument/didClose", {"textDocument": {"uri": (folder / "b.py").as_uri()}})
    assert await copied(editor, folder) == ['path, encoding="utf-8")']


async def test_a_longer_match_in_a_file_comes_before_a_shorter_one_in_a_document(editor: Editor, folder: Path) -> None:
    (folder / "b.py").write_text(f"if settings is None:\n    return\n{CALL}")
    await start(editor, folder)
    await read(editor)
    here = "settings.store.put(another)\nif settings is None:\n    return\nsettings.store.put("
    assert await copied(editor, folder, here) == ['path, encoding="utf-8")']


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
