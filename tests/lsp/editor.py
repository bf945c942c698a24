"""An editor for the tests: the real server in the same process, over a pipe of the operating system."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.suggest.editor import Reply, ScriptedModel

from calomel.families.recommended import Recommended
from calomel.infer.completer import Candidate, Completer, CompleteRequest, CompleterError, ModelInfo
from calomel.lsp.connection import Framer, Transport
from calomel.lsp.server import Server

URI = "file:///workspace/a.py"
# Where `at(1, 4)` is, a line is to be typed.
ADD = "def add(a, b):\n    \n"
SECONDS = 10.0
# A model that may be downloaded.
SMALL = Recommended("Small", "me/small", "me/small:Q8_0", "", "text", 0.5, 1.5, "MIT", "nothing")


class Script(ScriptedModel):
    """A model that says what it is told to, in fields that a file may have too."""

    def __init__(self) -> None:
        super().__init__(self._told, log_prob=-0.01)
        self.fill: str | None = "return a + b"
        self.also: tuple[str, ...] = ()  # other texts for holes, each less likely than the one before
        self.edit: dict[str, str] = {}
        self.error: str | None = None
        self.broken = ""
        # Where the model is somewhere else, as the settings say.
        self.connect: Callable[[Any], Awaitable[Completer]] | None = None

    def _told(self, request: CompleteRequest) -> Reply:
        if self.error:
            return CompleterError(self.error, "as the script says")
        texts = () if self.fill is None else (self.fill, *self.also)
        if request.kind == "edit":
            text = request.parts.region.text if request.parts.region else ""
            for before, after in self.edit.items():
                text = text.replace(before, after)
            texts = (text,)
        return tuple(
            Candidate(text, log_probs=(self.log_prob * (1 + at),), entropies=(0.01,), end_log_prob=-0.01)
            for at, text in enumerate(texts)
        )

    async def info(self) -> ModelInfo:
        found = await super().info()
        if self.broken:
            raise CompleterError(self.broken, "The weights are damaged.")
        return found


class Editor:
    """Sends what it is told to, answers the server's own requests, and remembers everything that came."""

    def __init__(self, log: Path, script: Script, *, real: bool = False) -> None:
        """`real`: the model is the one that the settings name."""
        self.script = script
        self.messages: list[dict[str, Any]] = []
        self.exit_code: int | None = None
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self._came = asyncio.Event()
        self._numbers = itertools.count(1)
        self._framer = Framer()
        self._reading, self._writing = os.pipe()

        async def factory(settings: object) -> Completer:
            return script if script.connect is None else await script.connect(settings)

        self.later = 0.0
        server = Server(None if real else factory, log=log, clock=lambda: time.monotonic() + self.later)
        self._task = asyncio.create_task(server.serve(Transport(lambda size: os.read(self._reading, size), self._take)))

    def raw(self, data: bytes) -> None:
        os.write(self._writing, data)

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}))

    def start(self, method: str, params: Any = None) -> int:
        number = next(self._numbers)
        self.send({"jsonrpc": "2.0", "id": number, "method": method} | ({} if params is None else {"params": params}))
        return number

    async def answer(self, number: int | str | None) -> dict[str, Any]:
        return await self.until(lambda message: "method" not in message and message.get("id") == number)

    async def ask(self, method: str, params: Any = None) -> Any:
        answer = await self.answer(self.start(method, params))
        assert "error" not in answer, answer
        return answer["result"]

    async def error(self, method: str, params: Any = None) -> int:
        answer = await self.answer(self.start(method, params))
        assert "error" in answer, answer
        return int(answer["error"]["code"])

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(SECONDS):
            while True:
                for message in self.messages:
                    if wanted(message):
                        self.messages.remove(message)
                        return message
                self._came.clear()
                await self._came.wait()

    async def notice(self, method: str) -> Any:
        return (await self.until(lambda message: message.get("method") == method)).get("params")

    async def state(self, wanted: str) -> dict[str, Any]:
        """The notice that says that the model is so."""
        return dict((await self.until(lambda message: message.get("params", {}).get("state") == wanted))["params"])

    async def until_asked(self, times: int = 1) -> None:
        async with asyncio.timeout(SECONDS):
            while len(self.script.requests) < times:
                await self.script.asked.wait()
                self.script.asked.clear()

    async def initialize(self, capabilities: Any = None, options: Any = None, **more: Any) -> Any:
        params = {"processId": None, "rootUri": None, "capabilities": capabilities or {}, **more}
        if options is not None:
            params["initializationOptions"] = options
        result = await self.ask("initialize", params)
        self.notify("initialized", {})
        return result

    async def begin(self, text: str = ADD, capabilities: Any = None, **options: Any) -> Any:
        """Initialize, as a client that is told everything, and open a document."""
        result = await self.initialize(capabilities, {"calomel": {"extensions": True, "debug": True} | options})
        self.open(text)
        return result

    def open(self, text: str, uri: str = URI, language: str = "python", version: int = 1) -> None:
        self.notify("textDocument/didOpen", open_params(text, uri, language, version))

    def change(self, version: int, *changes: dict[str, Any], uri: str = URI) -> None:
        self.notify("textDocument/didChange", change_params(version, *changes, uri=uri))

    async def inline(self, line: int, character: int, kind: int = 1, uri: str = URI) -> Any:
        return await self.ask("textDocument/inlineCompletion", inline_params(line, character, kind, uri))

    async def next_edit(self, line: int, character: int, version: int | None = 1, uri: str = URI) -> Any:
        return await self.ask("textDocument/copilotInlineEdit", edit_params(line, character, version, uri))

    async def suggestion(self, line: int = 1, character: int = 4, uri: str = URI) -> str:
        """The name of what is suggested at a place."""
        (item,) = (await self.inline(line, character, uri=uri))["items"]
        return str(item["command"]["arguments"][0])

    async def outcomes(self) -> dict[str, int]:
        """What became of suggestions."""
        return dict((await self.command("calomel.status"))["outcomes"])

    async def silence(self) -> str:
        """Why there was no suggestion."""
        return str((await self.notice("calomel/silence"))["reason"])

    def shown(self, method: str = "window/showMessage") -> list[Any]:
        """What the user was told, or another notice, and nobody waited for."""
        return [each["params"] for each in self.messages if each.get("method") == method]

    async def command(self, name: str, *arguments: Any) -> Any:
        return await self.ask("workspace/executeCommand", {"command": name, "arguments": list(arguments)})

    async def text(self, uri: str = URI) -> str:
        return str((await self.ask("calomel/debug/document", {"uri": uri}))["text"])

    async def alive(self) -> bool:
        return "version" in await self.ask("getVersion")

    def hang_up(self) -> None:
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1

    async def ended(self) -> int:
        async with asyncio.timeout(SECONDS):
            self.exit_code = await self._task
        return self.exit_code

    async def aclose(self) -> None:
        self.hang_up()
        await self.ended()
        if self._reading >= 0:
            os.close(self._reading)
            self._reading = -1

    def _take(self, data: bytes) -> None:
        self._framer.feed(data)
        while isinstance(body := self._framer.next(), bytes):
            message = json.loads(body)
            if "method" in message and "id" in message:
                reply = self.answers.get(message["method"], _nothing)(message.get("params"))
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": reply})
            self.messages.append(message)
            self._came.set()


def _nothing(_: Any) -> Any:
    return None


def at(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": at(line, start), "end": at(line, end)}


def open_params(text: str, uri: str = URI, language: str = "python", version: int | None = 1) -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "languageId": language, "version": version, "text": text}}


def change_params(version: Any, *changes: Any, uri: str = URI) -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)}


def place(line: int, character: int, uri: str = URI) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": at(line, character)}


def inline_params(line: int, character: int, kind: int = 1, uri: str = URI) -> dict[str, Any]:
    return place(line, character, uri) | {"context": {"triggerKind": kind}}


def edit_params(line: int, character: int, version: int | None = 1, uri: str = URI) -> dict[str, Any]:
    document = {"uri": uri} if version is None else {"uri": uri, "version": version}
    return {"textDocument": document, "position": at(line, character)}
