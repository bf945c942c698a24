"""A model that takes longer than the next key: its answer is for what is typed meanwhile, if it begins with that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from tests.suggest.editor import NOW, URI, Editor, ScriptedModel, Time, editing, settle, suggestion

from calomel.infer.completer import FIRST_LINE, GROWING, Candidate, CompleteAnswer, CompleteRequest
from calomel.suggest.edit import Answer, Suggestion
from calomel.suggest.snapshot import Trigger
from calomel.workspace.settings import SuggestSettings

LINE = "total_price = sum(item.price * item.count for item in self.items_in_the_cart)"
KEY = 0.12
# Of a local server: it reads the prompt, then writes.
READS, WRITES = 0.3, 0.02


@dataclass
class Server(ScriptedModel):
    """Streams what stands behind the cursor in `line`, four characters at a time; `wrong` is what it writes instead."""

    line: str = LINE
    wrong: Callable[[str], str | None] = lambda _: None
    time: Time = field(default_factory=Time)

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        grows, before = GROWING.get(), request.parts.prefix
        text = self.wrong(before) or self.line.removeprefix(before)
        grows("")
        try:
            await self.time.sleep(READS)
            for end in range(4, len(text) + 4, 4):
                grows(text[:end])
                await self.time.sleep(WRITES)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return CompleteAnswer((Candidate(text, (-0.01,)),), context_tokens=100, model="scripted")


@asynccontextmanager
async def slow(wrong: Callable[[str], str | None] = lambda _: None) -> AsyncIterator[tuple[Editor, Server]]:
    server = Server(wrong=wrong)
    async with editing("|", model=server) as editor:
        server.time = editor.time
        yield editor, server


class Typist:
    """Asks with every key, and cancels the question of the key before, as editors do."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self.asking: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.shown: list[str | None] = []

    async def key(self, text: str) -> None:
        self.asking.cancel()
        self.editor.type(text)
        inline = self.editor.suggester.inline(URI, self.editor.cursor, Trigger.EDIT)
        self.asking = asyncio.ensure_future(inline)
        await settle()
        for _ in range(4):
            await self.editor.time.advance(KEY / 4)
        answer = self.asking.result() if self.asking.done() and not self.asking.cancelled() else None
        self.shown.append(self.editor.after(answer) if isinstance(answer, Suggestion) else None)

    async def type(self, text: str) -> None:
        for character in text:
            await self.key(character)

    async def rest(self, seconds: float = 2.0) -> str:
        """What is shown after a while without a key."""
        until = self.editor.time.now + seconds
        while self.editor.time.now < until:
            await self.editor.time.advance(WRITES)
        answer = self.asking.result() if self.asking.done() and not self.asking.cancelled() else None
        self.asking.cancel()
        await settle()
        return self.editor.after(answer) if isinstance(answer, Suggestion) else ""


async def test_keys_that_follow_the_answer_share_one_question() -> None:
    async with slow() as (editor, server):
        typist = Typist(editor)
        await typist.type(LINE[:60])
        await typist.rest()
        visible = [text for text in typist.shown if text is not None]
        assert len(visible) >= 30
        assert set(visible) == {LINE}
        assert len(server.requests) <= 24
        assert server.most_running == 1
        assert server.cancelled == 0


async def test_typing_on_without_asking_says_nothing_about_waiting() -> None:
    async with slow() as (editor, server):
        typist = Typist(editor)
        for _ in range(3):
            await typist.type(LINE[len(editor.document.text) :][:2])
            editor.type(LINE[len(editor.document.text)])
            await typist.rest()
        asked = len(server.requests)
        await typist.type(LINE[len(editor.document.text) :][:8])
        assert len(server.requests) - asked <= 2
        assert server.cancelled == 0


@dataclass
class Late(ScriptedModel):
    """Takes a second."""

    time: Time = field(default_factory=Time)

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        await self.time.sleep(1.0)
        return await super().complete(request)


async def test_the_pause_before_a_question_goes_by_the_model_that_is_asked() -> None:
    edits = Late(weights="1")
    async with editing("x = |\n", settings=SuggestSettings(), edits=edits) as editor:
        edits.time = editor.time
        editor.type("a")
        asking = asyncio.ensure_future(editor.suggester.next_edit(URI, None, editor.cursor))
        await settle()
        while not asking.done():
            await editor.time.advance(0.5)
        assert edits.requests
        await editor.time.advance(2.0)
        editor.type("b")
        asking = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        for asked, seconds in ((0, 0.1), (1, 0.2)):
            await editor.time.advance(seconds)
            assert len(editor.model.requests) == asked
        await asking


async def test_where_every_third_key_departs_nothing_wrong_is_shown() -> None:
    def wrong(before: str) -> str | None:
        return "when()" if len(before) % 3 == 0 else None

    async with slow(wrong) as (editor, server):
        typist = Typist(editor)
        for at, character in enumerate(LINE[:60]):
            await typist.key(character)
            if typist.shown[-1] is not None:
                assert typist.shown[-1] == LINE or typist.shown[-1] == LINE[: at + 1] + "when()"
        assert sum(text == LINE for text in typist.shown) >= 20
        await typist.rest()
        assert server.most_running == 1


async def test_a_wrong_first_token_delays_the_next_question_by_no_more() -> None:
    async with slow(lambda before: "when()" if len(before) == 1 else None) as (editor, server):
        typist = Typist(editor)
        await typist.key("t")
        await typist.key("o")
        assert len(server.requests) == 1
        began = editor.time.now
        while len(server.requests) == 1 and editor.time.now < began + 1.0:
            await editor.time.advance(0.01)
        assert editor.time.now - began <= READS
        assert server.cancelled == 1
        assert await typist.rest() == LINE


@pytest.mark.parametrize("leaves", ["deletion", "new line", "another place", "undo", "closing"])
async def test_a_question_ends_at_once_when_it_is_left(leaves: str) -> None:
    async with slow() as (editor, server):
        typist = Typist(editor)
        await typist.type("tot")
        assert (server.running, server.cancelled) == (1, 0)
        typist.asking.cancel()
        await settle()
        assert (server.running, server.cancelled) == (1, 0)
        if leaves == "deletion":
            editor.backspace()
        elif leaves == "new line":
            editor.type("\n")
        elif leaves == "another place":
            editor.change((0, 0, "x"))
        elif leaves == "undo":
            editor.change((1, 3, ""))
        else:
            editor.workspace.close(URI)
        await settle()
        assert (server.running, server.cancelled) == (0, 1)


async def test_a_question_that_takes_twice_as_long_as_usual_is_given_up() -> None:
    async with slow() as (editor, server):
        typist = Typist(editor)
        await typist.type(LINE[:20])
        await typist.rest()
        asked = len(server.requests)
        server.line, editor.cursor = "", len(editor.document.text)
        await typist.key("x")
        server.time = Time()  # it hangs from now on
        await typist.type("y" * 30)
        assert len(server.requests) > asked + 1
        assert server.most_running == 1


async def test_a_question_by_key_ends_the_one_that_is_kept() -> None:
    async with slow() as (editor, server):
        typist = Typist(editor)
        await typist.type("tot")
        typist.asking = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EXPLICIT))
        await settle()
        assert (server.cancelled, len(server.requests)) == (1, 2)
        assert await typist.rest() == LINE


@dataclass
class Lines(ScriptedModel):
    """Says its first line after `reads` seconds, and the rest `writes` seconds later."""

    text: str = "sum(items)\n    return total"
    said: str = ""
    reads: float = READS
    writes: float = 1.0
    time: Time = field(default_factory=Time)

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        self.requests.append(request)
        grows, shows = GROWING.get(), FIRST_LINE.get()
        grows("")
        text = self.text.removeprefix(request.parts.prefix.rpartition("= ")[2])
        try:
            await self.time.sleep(self.reads)
            line, end, _ = text.partition("\n")
            grows(line + end)
            if end:
                shows(CompleteAnswer((Candidate(line, (-0.01,)),), model="scripted"))
                await self.time.sleep(self.writes)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return CompleteAnswer((Candidate(self.said or text, (-0.01,)),), model="scripted")


@asynccontextmanager
async def writing(
    said: str = "", *, extends: bool = True, above: str = ""
) -> AsyncIterator[tuple[Editor, Lines, list[str]]]:
    model, told = Lines(source="fim", said=said), list[str]()
    async with editing(f"{above}def f(items):\n    total = |\n", model=model, settings=NOW) as editor:
        model.time = editor.time
        if extends:
            editor.suggester.extends(lambda _, shown: told.append(shown))
        yield editor, model, told


async def ask(editor: Editor) -> Answer:
    return await editor.suggester.inline(URI, editor.cursor, Trigger.EDIT)


async def test_the_first_line_comes_before_the_rest() -> None:
    async with writing() as (editor, model, told):
        asking = asyncio.ensure_future(ask(editor))
        await settle()
        await editor.time.advance(READS)
        first = suggestion(await asking)
        assert first.edits[0].text == "sum(items)"
        assert told == []
        await editor.time.advance(1.0)
        assert told == [first.id]
        whole = suggestion(await ask(editor))
        assert (whole.id, whole.edits[0].text) == (first.id, model.text)
        assert (len(model.requests), model.cancelled) == (1, 0)
        editor.type("sum(")
        whole = suggestion(await ask(editor))
        assert (whole.id, whole.edits[0].text) == (first.id, model.text.removeprefix("sum("))
        editor.suggester.accepted(whole.id)
        assert ("accepted", "by_command") in editor.outcomes.told
        assert "superseded" not in dict(editor.outcomes.told)


@pytest.mark.parametrize("typed", ["su", "sum("], ids=["typed", "taken"])
async def test_a_line_of_which_a_piece_is_put_in_is_extended(typed: str) -> None:
    async with writing() as (editor, model, told):
        asking = asyncio.ensure_future(ask(editor))
        await settle()
        await editor.time.advance(READS)
        first = suggestion(await asking)
        editor.type(typed)
        rest = suggestion(await ask(editor))
        assert (rest.id, rest.edits[0].text) == (first.id, "sum(items)".removeprefix(typed))
        await editor.time.advance(1.0)
        assert told == [first.id]
        assert suggestion(await ask(editor)).edits[0].text == model.text.removeprefix(typed)


async def test_another_text_replaces_no_first_line() -> None:
    async with writing("max(items)\n    return total") as (editor, _, told):
        asking = asyncio.ensure_future(ask(editor))
        await settle()
        await editor.time.advance(READS)
        first = suggestion(await asking)
        await editor.time.advance(1.0)
        assert told == []
        assert suggestion(await ask(editor)).edits == first.edits


async def test_an_editor_that_asks_once_gets_all_of_it() -> None:
    async with writing(extends=False) as (editor, model, told):
        asking = asyncio.ensure_future(ask(editor))
        await settle()
        await editor.time.advance(READS)
        assert not asking.done()
        await editor.time.advance(1.0)
        assert suggestion(await asking).edits[0].text == model.text
        assert told == []


async def test_the_rest_is_waited_for_where_answers_are_quick_otherwise() -> None:
    async with writing() as (editor, model, told):
        text, model.text, model.reads = model.text, "max(items)", 0.0
        assert suggestion(await ask(editor)).edits[0].text == "max(items)"
        model.text, model.reads = text, READS
        editor.type("s")
        asking = asyncio.ensure_future(ask(editor))
        await settle()
        await editor.time.advance(READS)
        first = suggestion(await asking)
        assert first.edits[0].text == "um(items)"
        editor.type("u")
        assert suggestion(await ask(editor)).id == first.id
        await editor.time.advance(1.0)
        assert told == [first.id]
        assert model.cancelled == 0


@pytest.mark.parametrize("_", range(8))
async def test_all_of_it_is_shown_though_it_comes_with_its_first_line(_: int) -> None:
    # So long a text is read in threads, which take turns as they like.
    async with writing(above="# A comment.\n" * 4000) as (editor, model, told):
        model.reads = model.writes = 0.0
        shown = suggestion(await ask(editor))
        async with asyncio.timeout(5):
            while shown.edits[0].text != model.text and not told:  # noqa: ASYNC110 (of threads)
                await asyncio.sleep(0.005)
        assert told in ([], [shown.id])
        assert suggestion(await ask(editor)).edits[0].text == model.text
