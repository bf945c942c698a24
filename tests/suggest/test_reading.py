"""What the model is given to read before anybody asks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest
from tests.suggest.editor import NOW, URI, Editor, ScriptedModel, editing, settle

from calomel.context.builder import ContextBuilder
from calomel.context.window import EstimateCounter
from calomel.infer.completer import FillRequest
from calomel.infer.filler import Filler
from calomel.prompts.parts import Excerpt, PromptParts
from calomel.suggest.snapshot import Trigger
from calomel.workspace.documents import Document
from calomel.workspace.privacy import Privacy
from calomel.workspace.related import Related
from calomel.workspace.settings import SuggestSettings
from calomel.workspace.syntax import SyntaxTrees


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


class Found(Related):
    """Finds one excerpt, as soon as there is an index."""

    def __init__(self) -> None:
        super().__init__(SyntaxTrees(), watch=False)
        self.found: tuple[Excerpt, ...] = ()

    def excerpts(self, document: Document, offset: int, *, budget_seconds: float = 0.0) -> tuple[Excerpt, ...]:
        del document, offset, budget_seconds
        return self.found


async def test_code_that_is_found_between_keys_changes_no_prompt_until_the_typing_pauses() -> None:
    builder = ContextBuilder(EstimateCounter())
    async with editing("x = |\n", settings=NOW, builder=builder) as editor:
        editor.workspace.related = related = Found()
        shown: list[tuple[Excerpt, ...]] = []

        async def key(after: float) -> None:
            await editor.time.advance(after)
            editor.type("a")
            await editor.inline(wait=0.0)
            shown.append(editor.model.requests[-1].parts.related)

        await key(0.0)
        related.found = (Excerpt(URI.rpartition("/")[2], 0, "def area(self): ...\n"),)
        builder.renew()
        for _ in range(12):
            await key(0.2)
        assert {*shown} == {()}
        await key(2.0)
        await key(0.2)
        assert shown[-2:] == [related.found] * 2


async def test_code_that_is_found_is_read_as_soon_as_the_cursor_rests() -> None:
    builder = ContextBuilder(EstimateCounter())
    async with editing("x = |\n", model=reader(), settings=NOW, builder=builder) as editor:
        editor.workspace.related = related = Found()
        await rests(editor)
        related.found = (Excerpt(URI.rpartition("/")[2], 0, "def area(self): ...\n"),)
        builder.renew()
        editor.suggester.reading.again()
        await rests(editor)
        assert [each.parts.related for each in editor.model.requests] == [(), related.found]
