"""Commands, what becomes of suggestions, and what is kept of that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import ADD, URI, Editor, place, span

from calomel.lsp.client import COMMANDS
from calomel.suggest.silence import SilenceReason

PLACE = place(1, 4)


async def suggested(editor: Editor) -> str:
    await editor.begin()
    return await editor.suggestion()


def item(name: str) -> dict[str, Any]:
    return {"insertText": "return a + b", "command": {"command": "calomel.accept", "arguments": [name]}}


def test_every_silence_and_every_command_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "lsp.md").read_text(encoding="utf-8")
    assert [reason for reason in SilenceReason if f"| `{reason.value}` | {reason.message} |" not in page] == []
    assert [command for command in COMMANDS if f"| `{command}` |" not in page] == []


async def test_the_status_tells_model_counts_and_times(editor: Editor) -> None:
    name = await suggested(editor)
    status = await editor.command("calomel.status")
    assert (status["state"], status["model"], status["off"]) == ("ready", "scripted", None)
    assert {"p50", "p95"} == set(status["latency_ms"])
    assert {"shown": name} == status["last"]
    assert (status["last_request"]["context_tokens"], status["last_request"]["cached_tokens"]) == (100, 90)


async def test_the_status_says_what_was_held_back_and_why(editor: Editor) -> None:
    await editor.begin(suggest={"aggressiveness_by_language": {"python": 0.6}})
    assert (await editor.command("calomel.status"))["withheld"]["last"] is None
    editor.script.log_prob = -2.0
    assert await editor.inline(1, 4, kind=2) is None
    withheld = (await editor.command("calomel.status"))["withheld"]
    counts = withheld["by_reason"], withheld["by_maker"], withheld["typed"]
    assert counts == ({"low_confidence": 1}, {"canvas": 1}, {})
    last = withheld["last"]
    assert (last["reason"], last["kind"], last["maker"], last["threshold"]) == ("low_confidence", "fill", "canvas", 0.6)
    assert 0.0 < last["probability"] < 0.6


async def test_an_ignored_suggestion_keeps_its_reason(editor: Editor) -> None:
    await editor.initialize()
    editor.open(ADD)
    name = await editor.suggestion()
    editor.later += 1
    assert await editor.command("calomel.ignore", name, "typed_against")
    assert (await editor.outcomes())["ignored"] == 1


async def test_commands_of_copilots_clients_mean_ours(editor: Editor) -> None:
    await editor.command("github.copilot.didAcceptCompletionItem", await suggested(editor))
    editor.change(2, {"range": span(1, 4, 4), "text": "return a + b"})
    assert (await editor.outcomes())["accepted"] == 1


async def test_a_part_of_the_item_before_the_rest_was_answered_is_no_full_acceptance(editor: Editor) -> None:
    name = await suggested(editor)
    editor.change(2, {"range": span(1, 4, 4), "text": "return"})
    assert (await editor.inline(1, 10))["items"][0]["insertText"] == " a + b"
    editor.notify("textDocument/didPartiallyAcceptCompletion", {"item": item(name), "acceptedLength": 8})
    outcomes = await editor.outcomes()
    assert (outcomes["partly_accepted"], outcomes.get("accepted")) == (1, None)


async def test_ids_that_nobody_knows_and_reports_of_a_strange_form_change_nothing(editor: Editor) -> None:
    await editor.initialize()
    for command in ("calomel.accept", "calomel.reject", "calomel.ignore"):
        await editor.command(command, "nobody")
    for method in ("didShowCompletion", "didShowInlineEdit", "didPartiallyAcceptCompletion", "didFocus"):
        params: Any
        for params in ({"item": 5}, {"item": {"command": {"arguments": []}}}, {"item": None}):
            editor.notify(f"textDocument/{method}", params)
    assert await editor.outcomes() == {}


@pytest.mark.parametrize(
    "wish", [{"scope": "global"}, {"scope": "language", "language": "python"}, {"scope": "file", "uri": URI}, {}]
)
async def test_suggestions_are_turned_off_and_on(editor: Editor, wish: dict[str, Any]) -> None:
    await suggested(editor)
    assert (await editor.command("calomel.toggle", wish))["enabled"] is False
    assert await editor.inline(1, 4, kind=2) is None
    assert await editor.inline(1, 4) is not None, "who asks is answered"
    assert (await editor.command("calomel.toggle", wish | {"enabled": True}))["enabled"] is True
    assert await editor.inline(1, 4) is not None


async def test_turning_everything_off_is_told_to_the_client(editor: Editor) -> None:
    await editor.begin()
    await editor.state("ready")
    editor.notify("workspace/executeCommand", {"command": "calomel.toggle", "arguments": [{"enabled": False}]})
    assert (await editor.state("off"))["message"]
    status = await editor.command("calomel.status")
    assert (status["state"], status["off"]) == ("off", "off_globally")


async def test_a_snooze_begins_and_ends(editor: Editor) -> None:
    await suggested(editor)
    await editor.command("calomel.snooze", 5)
    assert await editor.inline(1, 4, kind=2) is None
    assert (await editor.command("calomel.status"))["off"] == "snoozed"
    await editor.command("calomel.snooze", 0)
    assert await editor.inline(1, 4) is not None


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("accept", []),
        ("accept", [5]),
        ("toggle", [5]),
        ("toggle", [{"scope": "everywhere"}]),
        ("toggle", [{"scope": "file"}]),
        ("toggle", [{"scope": "file", "uri": 5}]),
        ("toggle", [{"enabled": "no"}]),
        ("snooze", ["long"]),
        ("snooze", [-1]),
        ("snooze", [True]),
        ("showContext", []),
        ("showContext", [{"textDocument": {"uri": URI}}]),
        ("unknown", []),
    ],
)
async def test_wrong_arguments_are_told(editor: Editor, command: str, arguments: list[Any]) -> None:
    await editor.initialize()
    params = {"command": f"calomel.{command}", "arguments": arguments}
    assert await editor.error("workspace/executeCommand", params) == -32602


async def test_the_context_is_shown_part_by_part(editor: Editor) -> None:
    await editor.begin(ADD + "print(1)\n")
    answer = await editor.command("calomel.showContext", PLACE)
    parts = {part["part"]: part for part in answer["parts"]}
    assert parts["prefix"]["text"].endswith("def add(a, b):\n    ")
    assert parts["suffix"]["text"].startswith("\nprint(1)")
    assert all({"part", "tokens", "why", "text"} == set(part) for part in answer["parts"])


async def test_the_context_of_an_unknown_document_says_why_there_is_none(editor: Editor) -> None:
    await editor.initialize()
    answer = await editor.command("calomel.showContext", PLACE)
    assert (answer["parts"], answer["reason"]) == ([], "unknown_document")


async def decided(editor: Editor, tmp_path: Path, **settings: bool) -> list[dict[str, Any]]:
    """The outcome log behind an accepted suggestion."""
    await editor.begin(log=settings)
    assert await editor.command("calomel.accept", await editor.suggestion())
    await editor.aclose()
    logs = list((tmp_path / "xdg_state_home").rglob("outcomes.jsonl"))
    return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


async def test_an_accepted_suggestion_is_logged_without_its_text(editor: Editor, tmp_path: Path) -> None:
    found = await decided(editor, tmp_path)
    assert [entry["outcome"] for entry in found][-1] == "accepted"
    assert "return a + b" not in json.dumps(found)
    assert "/workspace/" not in json.dumps(found)


async def test_nothing_is_logged_when_the_user_wants_nothing(editor: Editor, tmp_path: Path) -> None:
    assert await decided(editor, tmp_path, outcomes=False) == []


async def test_a_state_folder_that_cannot_be_written_is_named_once_and_suggestions_come_all_the_same(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "xdg_state_home").write_text("a file where a folder should be")
    await editor.begin()
    assert await editor.command("calomel.accept", await editor.suggestion())
    other = "file:///workspace/b.py"
    editor.open("def sub(a, b):\n    \n", uri=other)
    assert await editor.command("calomel.accept", await editor.suggestion(uri=other))
    said = (await editor.notice("window/showMessage"))["message"]
    path = tmp_path / "xdg_state_home" / "calomel" / "outcomes.jsonl"
    assert said.startswith(f"Calomel cannot write the outcomes of suggestions to {path} (")
    assert not editor.shown()
