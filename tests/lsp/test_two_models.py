"""One model for text at the cursor and another for next edits; and rules, where there is no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import URI, Editor, Script, span
from tests.server._upstreams import Play, llama_cpp, served

from calomel.infer.completer import Completer, CompleterError
from calomel.infer.launch import connect
from calomel.workspace.settings import BackendSettings

RENAMED = "def run(count):\n    start(count)\n    return count\n"
BOTH = {"model": "one", "edit_model": "other"}


class Other(Script):
    """The model for next edits."""

    def __init__(self) -> None:
        super().__init__()
        self.edit = {"count": "total"}


@pytest.fixture
def other(editor: Editor) -> Other:
    other = Other()

    async def connect(settings: BackendSettings) -> Completer:
        return other if str(settings.model) == "other" else editor.script

    editor.script.connect = connect
    return other


async def renamed(editor: Editor, uri: str = URI) -> list[dict[str, Any]]:
    """The next edits after the parameter was renamed where it is declared."""
    editor.open(RENAMED, uri)
    editor.change(2, {"range": span(0, 8, 13), "text": "total"}, uri=uri)
    return list((await editor.next_edit(0, 13, 2, uri))["edits"])


async def shown(editor: Editor) -> str:
    return str((await editor.inline(1, 4))["items"][0]["insertText"])


def kinds(script: Script) -> set[str]:
    return {request.kind for request in script.requests}


async def test_text_and_edits_come_from_different_models(editor: Editor, other: Other) -> None:
    await editor.begin(server=BOTH, configuration_filtered=True)
    assert (await shown(editor)).endswith("return a + b")
    (edit,) = await renamed(editor, "file:///workspace/b.py")
    assert "total" in edit["text"]
    assert (kinds(editor.script), kinds(other)) == ({"fill"}, {"edit"})
    status = await editor.command("calomel.status")
    assert (status["state"], status["model"], status["edit_model"]) == ("ready", "scripted", "scripted")
    assert status["message"].count("is ready") == 2


async def test_one_that_fails_leaves_the_other_one_alone(editor: Editor, other: Other) -> None:
    other.broken = "failed"
    await editor.begin(server=BOTH, configuration_filtered=True)
    assert (await shown(editor)).endswith("return a + b")
    message = (await editor.state("error"))["message"]
    assert message.startswith("For next edits: The weights are damaged. scripted is ready.")
    (edit,) = await renamed(editor, "file:///workspace/b.py")
    assert "total" in edit["text"]
    assert kinds(other) == set()


async def test_settings_bring_the_second_model_and_take_it_away(editor: Editor, other: Other) -> None:
    await editor.begin(configuration_filtered=True)
    assert (await shown(editor)).endswith("return a + b")
    for server, asked in ((BOTH, 1), ({"model": "one"}, 0), (BOTH, 1)):
        other.requests.clear()
        editor.notify("workspace/didChangeConfiguration", {"settings": {"calomel": {"backend": server}}})
        await renamed(editor, f"file:///workspace/{asked}{len(editor.messages)}.py")
        assert bool(other.requests) == bool(asked)
    assert other.closed == 1


async def test_a_choice_moves_to_both_models_or_to_none(editor: Editor, other: Other) -> None:
    await editor.begin(configuration_filtered=True)
    await editor.state("ready")
    other.broken = "failed"
    answer = await editor.command("calomel.useModel", BOTH)
    assert answer["model"] is None
    assert "The weights are damaged" in answer["message"]
    assert (await editor.command("calomel.status"))["edit_model"] is None
    other.broken = ""
    answer = await editor.command("calomel.useModel", BOTH)
    assert answer["message"].count("is ready") == 2
    assert (answer["settings"]["model"], answer["settings"]["edit_model"]) == ("one", "other")
    await editor.command("calomel.useModel", {"model": "one"})
    assert (await editor.command("calomel.status"))["edit_model"] is None
    assert other.closed == 2  # what could not be used, and what was left


async def test_the_key_of_one_server_never_reaches_the_other(
    editor: Editor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CALOMEL_UPSTREAM_KEY", "for-the-text")
    key = tmp_path / "key"
    key.write_text("for-the-edits")
    key.chmod(0o600)
    text, edits = Play(tokens=("return ", "a - b"), key="for-the-text"), Play(key="for-the-edits")
    editor.script.connect = connect
    with served(llama_cpp(text)) as one, served(llama_cpp(edits)) as two:
        server = {"upstream": one, "edit_upstream": two}
        await editor.begin(backend=server, configuration_filtered=True)
        assert (await shown(editor)).endswith("return a - b")
        message = (await editor.state("error"))["message"]
        assert message.startswith("For next edits: ")
        assert "set edit_upstream_key_file" in message
        server["edit_upstream_key_file"] = str(key)
        editor.notify("workspace/didChangeConfiguration", {"settings": {"calomel": {"backend": server}}})
        await editor.state("ready")


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ({"edit_model": "nano", "edit_upstream": "http://127.0.0.1:9"}, "are both set: remove one of them"),
        ({"edit_upstream_model": "sweep"}, "edit_upstream_model needs a server"),
    ],
)
async def test_settings_that_contradict_each_other_are_said(
    editor: Editor, server: dict[str, str], problem: str
) -> None:
    editor.script.connect = connect
    await editor.begin(backend=server, configuration_filtered=True)
    assert problem in (await editor.state("error"))["message"]


async def test_without_any_model_rules_propose_next_edits(editor: Editor) -> None:
    async def nothing(_: BackendSettings) -> Completer:
        raise CompleterError("failed", "no model is installed: run `this`, or `that`")

    editor.script.connect = nothing
    await editor.begin(configuration_filtered=True)
    assert (await editor.state("error"))["message"] == "no model is installed: run `this`, or `that`"
    (edit,) = await renamed(editor, "file:///workspace/b.py")
    assert "total" in edit["text"]
    assert await editor.inline(1, 4) is None
    assert await editor.silence() == "no_model"
    assert not [each for each in editor.shown("calomel/status") if each["state"] == "error"]
    assert not editor.shown()


async def test_without_any_model_nothing_to_propose_is_the_models_silence(editor: Editor) -> None:
    async def nothing(_: BackendSettings) -> Completer:
        raise CompleterError("failed", "no model is installed")

    editor.script.connect = nothing
    await editor.begin(configuration_filtered=True)
    await editor.state("error")
    editor.open("x = 1\n", "file:///workspace/b.py")
    editor.change(2, {"range": span(0, 4, 5), "text": "2"}, uri="file:///workspace/b.py")
    assert (await editor.next_edit(0, 5, 2, "file:///workspace/b.py"))["edits"] == []
    assert await editor.silence() == "no_model"
