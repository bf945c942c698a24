from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import SECONDS, Editor

OFF: dict[str, Any] = {"suggest": {"enabled": False}}


async def warning(editor: Editor) -> str:
    shown = await editor.notice("window/showMessage")
    assert shown["type"] == 2
    return str(shown["message"])


def folders(path: Path) -> list[dict[str, str]]:
    return [{"uri": path.as_uri(), "name": path.name}]


async def off(editor: Editor) -> str | None:
    status = await editor.command("calomel.status")
    return None if status["off"] is None else str(status["off"])


async def until_off(editor: Editor, wanted: str | None) -> None:
    async with asyncio.timeout(SECONDS):
        while await off(editor) != wanted:  # noqa: ASYNC110 - what is waited for happens in the server
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "options", [{"calomel": OFF}, {**OFF, "editorInfo": {"name": "x"}}, {"calomel": OFF, "suggest": {}}]
)
async def test_initialization_options_are_settings(editor: Editor, options: dict[str, Any]) -> None:
    await editor.initialize(options=options)
    assert await off(editor) == "off_globally"
    # A client that cannot be asked is not.
    assert not editor.shown("workspace/configuration")


async def test_a_wrong_setting_is_shown_once_by_its_name_and_replaced_by_its_default(editor: Editor) -> None:
    await editor.initialize(options={"calomel": {"suggest": {"max_tokens": "many", "enabled": False}}})
    message = await warning(editor)
    assert "max_tokens" in message
    assert "many" not in message
    assert await off(editor) == "off_globally"
    assert [message] == (await editor.command("calomel.reloadSettings"))["problems"]
    assert not editor.shown()


async def test_the_editors_configuration_is_pulled(editor: Editor) -> None:
    editor.answers["workspace/configuration"] = lambda params: [OFF for _ in params["items"]]
    await editor.initialize({"workspace": {"configuration": True}})
    asked = await editor.notice("workspace/configuration")
    assert [item["section"] for item in asked["items"]] == ["calomel"]
    await until_off(editor, "off_globally")
    editor.answers["workspace/configuration"] = lambda params: [None]
    editor.notify("workspace/didChangeConfiguration", {"settings": None})
    await until_off(editor, None)


async def test_pushed_configuration_is_taken(editor: Editor) -> None:
    await editor.initialize()
    editor.notify("workspace/didChangeConfiguration", {"settings": {"calomel": OFF}})
    await until_off(editor, "off_globally")
    editor.notify("workspace/didChangeConfiguration", {"settings": {"other": {"x": 1}}})
    assert await off(editor) == "off_globally"


async def test_an_answer_of_a_strange_form_changes_nothing(editor: Editor) -> None:
    given: list[Any] = [None]
    editor.answers["workspace/configuration"] = lambda _: given[0]
    await editor.initialize({"workspace": {"configuration": True}})
    for answer in (None, [], 5, [5], {"a": 1}):
        given[0] = answer
        editor.notify("workspace/didChangeConfiguration", {"settings": None})
        assert await off(editor) is None


@pytest.mark.parametrize("there", [".", "xdg_config_home", "xdg_config_home/calomel"])
async def test_a_settings_file_of_the_user_is_read_again_when_it_changes(
    editor: Editor, tmp_path: Path, there: str
) -> None:
    """However much of its folder was there when the server started."""
    file = tmp_path / "xdg_config_home" / "calomel" / "calomel.toml"
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    await editor.initialize()
    await until_off(editor, None)
    await asyncio.sleep(0)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[suggest]\nenabled = false\n")
    await until_off(editor, "off_globally")
    file.write_text("[suggest]\nenabled = true\n")
    await until_off(editor, None)


async def test_a_settings_file_of_the_workspace_counts_and_can_be_wrong(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "calomel.toml").write_text('[suggest]\nenabled = false\n[backend]\nurl = "http://evil"\n')
    await editor.initialize(workspaceFolders=folders(tmp_path))
    assert "url" in await warning(editor)
    assert await off(editor) == "off_globally"


async def test_the_client_may_have_changed_files_read_again(editor: Editor, tmp_path: Path) -> None:
    file = tmp_path / "calomel.toml"
    await editor.initialize(workspaceFolders=folders(tmp_path))
    assert await off(editor) is None
    file.write_text("not toml at all [")
    (problem,) = (await editor.command("calomel.reloadSettings"))["problems"]
    assert "calomel.toml" in problem
    file.write_text("[suggest]\nenabled = false\n")
    assert (await editor.command("calomel.reloadSettings"))["problems"] == []
    assert await off(editor) == "off_globally"


async def test_what_is_taken_back_does_not_stay_from_the_beginning(editor: Editor) -> None:
    given: list[dict[str, Any]] = [OFF]
    editor.answers["workspace/configuration"] = lambda _: given
    options = {"calomel": {"configuration_replaces": True, "configuration_filtered": True, **given[0]}}
    await editor.initialize({"workspace": {"configuration": True}}, options=options)
    await until_off(editor, "off_globally")
    given[0] = {}
    editor.notify("workspace/didChangeConfiguration", {"settings": None})
    await until_off(editor, None)
