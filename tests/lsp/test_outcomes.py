from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.lsp.editor import Editor

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
