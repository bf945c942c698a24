"""What the model is given to read before anybody asks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest
from tests.suggest.editor import NOW, URI, Editor, ScriptedModel, editing, settle

from calomel.infer.completer import FillRequest
from calomel.infer.filler import Filler
from calomel.prompts.parts import PromptParts
from calomel.suggest.snapshot import Trigger
from calomel.workspace.privacy import Privacy
from calomel.workspace.settings import SuggestSettings


def reader() -> ScriptedModel:
    return ScriptedModel(reads_ahead=True)


async def rests(editor: Editor) -> None:
    """The cursor, long enough for what stands around it to be read."""
    editor.suggester.reading.rests(URI, editor.cursor)
    await settle()
    await editor.time.advance(1.0)


async def test_what_stands_around_a_resting_cursor_is_read_once() -> None:
    async with editing("x = |\n", model=reader(), settings=NOW) as editor:
        for _ in range(3):
            await rests(editor)
        (asked,) = editor.model.requests
        assert (asked.kind, asked.ahead, asked.parts.prefix) == ("fill", True, "x = ")


async def test_typing_is_waited_for_and_read_then() -> None:
    async with editing("x = |\n", model=reader(), settings=NOW) as editor:
        for character in "comp":
            editor.type(character)
            await settle()
            await editor.time.advance(0.1)
        assert editor.model.requests == []
        await editor.time.advance(0.2)
        assert [(each.ahead, each.parts.prefix) for each in editor.model.requests] == [(True, "x = comp")]


async def test_whoever_asks_does_not_wait_for_it() -> None:
    model = reader()
    model.hold = asyncio.Event()
    async with editing("x = |\n", model=model, settings=NOW) as editor:
        await rests(editor)
        assert model.running == 1
        asking = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EXPLICIT))
        await settle()
        assert (model.cancelled, model.running, model.requests[-1].ahead) == (1, 1, False)
        model.hold.set()
        await asking


@pytest.mark.parametrize(
    ("model", "settings", "battery", "times"),
    [
        (reader(), NOW, SimpleNamespace(power_plugged=True), 1),
        (reader(), NOW, SimpleNamespace(power_plugged=False), 0),
        (reader(), replace(NOW, read_ahead="always"), SimpleNamespace(power_plugged=False), 1),
        (reader(), replace(NOW, read_ahead="never"), None, 0),
        (reader(), replace(NOW, enabled=False), None, 0),
        (ScriptedModel(), NOW, None, 0),
    ],
    ids=["plugged in", "on battery", "always", "never", "off", "a model that keeps nothing"],
)
async def test_nothing_is_read_where_nobody_wants_it(
    model: ScriptedModel, settings: SuggestSettings, battery: object, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery, raising=False)
    async with editing("x = |\n", model=model, settings=settings) as editor:
        await rests(editor)
        assert len(model.requests) == times
        model.requests.clear()


async def test_secrets_are_masked_in_what_is_read() -> None:
    key = "ghp_" + "a1B2c3D4e5F6" * 3
    async with editing(f'token = "{key}"\nx = |\n', model=reader(), privacy=Privacy([])) as editor:
        await rests(editor)
        (asked,) = editor.model.requests
        assert asked.parts.prefix.startswith("token = ")
        assert key not in asked.parts.prefix


async def test_a_question_behind_what_was_read_finds_it(filler: Filler) -> None:
    parts = PromptParts(prefix="def total(values):\n    result = 0\n" * 8 + "x = ", suffix="\nprint(x)\n")
    asked = FillRequest("fill", parts, max_tokens=8)

    ahead = await filler.complete(replace(asked, ahead=True))
    answer = await filler.complete(asked)

    assert (ahead.candidates, ahead.cached_tokens) == ((), 0)
    assert answer.candidates
    assert answer.context_tokens == ahead.context_tokens
    assert answer.cached_tokens > 0.8 * answer.context_tokens
