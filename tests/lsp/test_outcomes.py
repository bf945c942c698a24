from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

from tests.lsp.editor import Editor
from tests.lsp.program import Program

from calomel.suggest.prompt_log import read_prompts


async def decided(editor: Editor, tmp_path: Path, **settings: bool) -> list[dict[str, Any]]:
    """The outcome log behind an accepted suggestion."""
    await editor.initialize(options={"log": settings})
    editor.open("def add(a, b):\n    \n")
    name = (await editor.inline(1, 4))["items"][0]["command"]["arguments"][0]
    assert await editor.command("calomel.accept", name)
    await editor.aclose()
    logs = list((tmp_path / "xdg_state_home").rglob("outcomes.jsonl"))
    return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


def prompt_logs(tmp_path: Path) -> list[Path]:
    return list(tmp_path.rglob("prompts.jsonl*"))


async def test_an_accepted_suggestion_is_logged_without_its_text(editor: Editor, tmp_path: Path) -> None:
    found = await decided(editor, tmp_path)
    assert [entry["outcome"] for entry in found][-1] == "accepted"
    assert "return a + b" not in json.dumps(found)
    assert "/workspace/" not in json.dumps(found)


async def test_its_text_is_kept_when_the_user_wants_it(editor: Editor, tmp_path: Path) -> None:
    assert "return a + b" in json.dumps(await decided(editor, tmp_path, outcome_text=True))


async def test_nothing_is_logged_when_the_user_wants_nothing(editor: Editor, tmp_path: Path) -> None:
    assert await decided(editor, tmp_path, outcomes=False) == []


async def test_prompts_are_kept_only_when_the_user_wants_text(editor: Editor, tmp_path: Path) -> None:
    await decided(editor, tmp_path)
    assert prompt_logs(tmp_path) == []


async def test_what_the_model_was_asked_is_kept_under_the_name_of_its_outcome(editor: Editor, tmp_path: Path) -> None:
    found = await decided(editor, tmp_path, outcome_text=True)
    (log,) = prompt_logs(tmp_path)
    (prompt,) = read_prompts(log).records
    assert {(entry["session"], entry["id"]) for entry in found} == {(prompt.session, prompt.id)}
    assert prompt.text.startswith("return a + b")
    assert prompt.request.parts.prefix.endswith("def add(a, b):\n    ")


async def test_no_prompt_is_kept_where_no_outcome_is(editor: Editor, tmp_path: Path) -> None:
    await decided(editor, tmp_path, outcomes=False, outcome_text=True)
    assert prompt_logs(tmp_path) == []


async def accepted(editor: Editor) -> None:
    await editor.initialize()
    editor.open("def add(a, b):\n    \n")
    name = (await editor.inline(1, 4))["items"][0]["command"]["arguments"][0]
    assert await editor.command("calomel.accept", name)


async def test_a_state_folder_that_cannot_be_written_is_named_once_and_suggestions_come_all_the_same(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "xdg_state_home").write_text("a file where a folder should be")
    await accepted(editor)
    await accepted_again(editor)
    said = (await editor.notice("window/showMessage"))["message"]
    path = tmp_path / "xdg_state_home" / "calomel" / "outcomes.jsonl"
    assert said.startswith(f"Outcomes of suggestions cannot be written to {path} (")
    assert not any(message.get("method") == "window/showMessage" for message in editor.messages)


async def accepted_again(editor: Editor) -> None:
    editor.open("def sub(a, b):\n    \n", uri="file:///workspace/b.py")
    found = await editor.inline(1, 4, uri="file:///workspace/b.py")
    assert await editor.command("calomel.accept", found["items"][0]["command"]["arguments"][0])


def test_a_full_disk_is_named_by_the_program(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        program.initialize()
        uri = "file:///workspace/a.py"
        document = {"uri": uri, "languageId": "python", "version": 1, "text": "def add(a, b):\n    \n"}
        program.send({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}})
        asked = {
            "textDocument": {"uri": uri},
            "position": {"line": 1, "character": 4},
            "context": {"triggerKind": 1},
        }
        found = program.ask("textDocument/inlineCompletion", asked)
        resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (0, 0))
        name = found["items"][0]["command"]["arguments"][0]
        program.send(
            {
                "jsonrpc": "2.0",
                "id": "accept",
                "method": "workspace/executeCommand",
                "params": {"command": "calomel.accept", "arguments": [name]},
            }
        )
        while (message := program.read()).get("method") != "window/showMessage":
            pass
    assert message["params"]["message"].startswith("Outcomes of suggestions cannot be written to ")
    assert "(File too large)" in message["params"]["message"]
