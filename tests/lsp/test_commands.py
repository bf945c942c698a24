from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import URI, Editor, at, span

EXTENSIONS = {"calomel": {"extensions": True}}


async def suggestion(editor: Editor) -> str:
    editor.open("def add(a, b):\n    \n")
    return str((await editor.inline(1, 4))["items"][0]["command"]["arguments"][0])


async def test_the_status_tells_model_counts_and_times(editor: Editor) -> None:
    await editor.initialize()
    name = await suggestion(editor)
    status = await editor.command("calomel.status")
    assert (status["state"], status["model"], status["off"]) == ("ready", "scripted", None)
    assert {"p50", "p95"} == set(status["latency_ms"])
    assert {"shown": name} == status["last"]
    assert (status["last_request"]["context_tokens"], status["last_request"]["cached_tokens"]) == (100, 90)


async def test_the_status_says_what_was_held_back_and_why(editor: Editor) -> None:
    await editor.initialize(options={"suggest": {"aggressiveness_by_language": {"python": 0.6}}})
    assert (await editor.command("calomel.status"))["withheld"]["last"] is None
    editor.script.log_prob = -2.0
    editor.open("def add(a, b):\n    \n")
    assert await editor.inline(1, 4, kind=2) is None
    withheld = (await editor.command("calomel.status"))["withheld"]
    assert (withheld["by_reason"], withheld["by_maker"], withheld["typed"]) == (
        {"low_confidence": 1},
        {"canvas": 1},
        {},
    )
    last = withheld["last"]
    assert (last["reason"], last["kind"], last["maker"], last["threshold"]) == ("low_confidence", "fill", "canvas", 0.6)
    assert 0.0 < last["probability"] < 0.6


async def test_a_rejected_suggestion_does_not_come_back(editor: Editor) -> None:
    await editor.initialize()
    assert await editor.command("calomel.reject", await suggestion(editor))
    assert await editor.inline(1, 4, kind=2) is None
    assert (await editor.command("calomel.status"))["outcomes"]["rejected"] == 1


async def test_an_ignored_suggestion_keeps_its_reason(editor: Editor) -> None:
    await editor.initialize()
    name = await suggestion(editor)
    editor.later += 1
    assert await editor.command("calomel.ignore", name, "typed_against")
    assert (await editor.command("calomel.status"))["outcomes"]["ignored"] == 1


async def test_partial_acceptance_is_counted_in_utf16_units_from_the_start(editor: Editor) -> None:
    await editor.initialize()
    name = await suggestion(editor)
    item = {"insertText": "return a + b", "command": {"command": "calomel.accept", "arguments": [name]}}
    editor.notify("textDocument/didShowCompletion", {"item": item})
    editor.notify("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 6})
    assert (await editor.command("calomel.status"))["outcomes"]["partly_accepted"] == 1


async def test_a_part_of_the_item_before_the_rest_was_answered_is_no_full_acceptance(editor: Editor) -> None:
    await editor.initialize()
    name = await suggestion(editor)
    editor.change(2, {"range": span(1, 4, 4), "text": "return"})
    assert (await editor.inline(1, 10))["items"][0]["insertText"] == " a + b"
    item = {"insertText": "return a + b", "command": {"command": "calomel.accept", "arguments": [name]}}
    editor.notify("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 8})
    outcomes = (await editor.command("calomel.status"))["outcomes"]
    assert (outcomes["partly_accepted"], outcomes.get("accepted")) == (1, None)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"item": 5},
        {"item": {"command": {"arguments": []}}},
        {"item": {"command": {"arguments": [5]}}},
        {"item": None},
    ],
)
@pytest.mark.parametrize(
    "method", ["didShowCompletion", "didShowInlineEdit", "didPartiallyAcceptCompletion", "didFocus"]
)
async def test_reports_of_a_strange_form_change_nothing(editor: Editor, method: str, params: Any) -> None:
    await editor.initialize()
    editor.notify(f"textDocument/{method}", params)
    assert (await editor.command("calomel.status"))["outcomes"] == {}


async def test_unknown_ids_are_tolerated(editor: Editor) -> None:
    await editor.initialize()
    for command in ("calomel.accept", "calomel.reject", "calomel.ignore"):
        await editor.command(command, "nobody")


@pytest.mark.parametrize(
    "wish",
    [
        {"scope": "global"},
        {"scope": "language", "language": "python"},
        {"scope": "file", "uri": URI},
        {},
    ],
)
async def test_suggestions_are_turned_off_and_on(editor: Editor, wish: dict[str, Any]) -> None:
    await editor.initialize()
    await suggestion(editor)
    assert (await editor.command("calomel.toggle", wish))["enabled"] is False
    assert await editor.inline(1, 4) is None
    assert (await editor.command("calomel.toggle", wish | {"enabled": True}))["enabled"] is True
    assert await editor.inline(1, 4) is not None


async def test_turning_everything_off_is_told_to_the_client(editor: Editor) -> None:
    await editor.initialize(options=EXTENSIONS)
    await editor.until(lambda message: message.get("params", {}).get("state") == "ready")
    await editor.command("calomel.toggle", {"enabled": False})
    notice = await editor.until(lambda message: message.get("params", {}).get("state") == "off")
    assert notice["params"]["message"]
    assert (await editor.command("calomel.status"))["state"] == "off"


async def test_a_snooze_begins_and_ends(editor: Editor) -> None:
    await editor.initialize()
    await suggestion(editor)
    await editor.command("calomel.snooze", 5)
    assert await editor.inline(1, 4) is None
    assert (await editor.command("calomel.status"))["off"] == "snoozed"
    await editor.command("calomel.snooze", 0)
    assert await editor.inline(1, 4) is not None


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("calomel.accept", []),
        ("calomel.accept", [5]),
        ("calomel.toggle", [5]),
        ("calomel.toggle", [{"scope": "everywhere"}]),
        ("calomel.toggle", [{"scope": "file"}]),
        ("calomel.toggle", [{"scope": "file", "uri": 5}]),
        ("calomel.toggle", [{"enabled": "no"}]),
        ("calomel.snooze", ["long"]),
        ("calomel.snooze", [-1]),
        ("calomel.snooze", [True]),
        ("calomel.showContext", []),
        ("calomel.showContext", [{"textDocument": {"uri": URI}}]),
        ("calomel.unknown", []),
    ],
)
async def test_wrong_arguments_are_told(editor: Editor, command: str, arguments: list[Any]) -> None:
    await editor.initialize()
    assert await editor.error("workspace/executeCommand", {"command": command, "arguments": arguments}) == -32602


async def test_the_context_is_shown_part_by_part(editor: Editor) -> None:
    await editor.initialize()
    editor.open("def add(a, b):\n    \nprint(1)\n")
    place = {"textDocument": {"uri": URI}, "position": at(1, 4)}
    answer = await editor.command("calomel.showContext", place)
    parts = {part["part"]: part for part in answer["parts"]}
    assert parts["prefix"]["text"].endswith("def add(a, b):\n    ")
    assert parts["suffix"]["text"].startswith("\nprint(1)")
    assert all({"part", "tokens", "why", "text"} == set(part) for part in answer["parts"])


async def test_the_context_of_an_unknown_document_says_why_there_is_none(editor: Editor) -> None:
    await editor.initialize()
    answer = await editor.command("calomel.showContext", {"textDocument": {"uri": URI}, "position": at(0, 0)})
    assert (answer["parts"], answer["reason"]) == ([], "unknown_document")


async def test_the_log_is_found(editor: Editor, tmp_path: Path) -> None:
    await editor.initialize()
    assert (await editor.command("calomel.showLog"))["path"] == str(tmp_path / "lsp.log")


async def test_commands_of_copilots_clients_mean_ours(editor: Editor) -> None:
    await editor.initialize()
    name = await suggestion(editor)
    await editor.command("github.copilot.didAcceptCompletionItem", name)
    editor.change(2, {"range": span(1, 4, 4), "text": "return a + b"})
    assert (await editor.command("calomel.status"))["outcomes"]["accepted"] == 1
