"""Small servers of completions, in a thread of their own: one that behaves like vLLM, and whatever else a test says."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from calomel.prompts.tokenizer import TextTokenizer

MODEL = "org/model"


@dataclass
class Asked:
    """One request as it arrived; `gone` says whether the client has closed the connection since."""

    path: str
    headers: dict[str, str]
    body: Any
    gone: Callable[[], bool]


Handler = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


def head(status: int, size: int | None = None, **more: str) -> bytes:
    fields = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in more.items()}}
    fields["content-length" if size is not None else "connection"] = "close" if size is None else str(size)
    return (
        f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    ).encode() + b"\r\n"


def reply(status: int, said: Any = None, **more: str) -> bytes:
    body = json.dumps(said or {}).encode()
    return head(status, len(body), **more) + body


@contextmanager
def serving(handler: Handler) -> Iterator[str]:
    """The address of a server that `handler` answers for."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    found: dict[str, Any] = {}
    tasks: set[Any] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            while not writer.is_closing():
                text = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *fields = text.strip().split("\r\n")
                headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in fields)}
                data = await reader.readexactly(int(headers.get("content-length", "0")))
                await handler(Asked(line.split()[1], headers, json.loads(data or b"null"), reader.at_eof), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def start() -> None:
        found["server"] = await asyncio.start_server(serve, "127.0.0.1", 0)
        started.set()

    async def stop() -> None:
        found["server"].close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def run() -> None:
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(stop())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield f"http://127.0.0.1:{found['server'].sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


@dataclass
class Vllm:
    """Says `says`, then the end token, whatever it is asked; as vLLM says it.

    Attributes:
        ids: it takes and gives token ids; else text alone.
        judges: it gives log-probabilities.
        asked: the completions that it was asked for.
    """

    tokenizer: TextTokenizer
    says: str = "a + b"
    ids: bool = True
    judges: bool = True
    names: Sequence[str] = (MODEL,)
    asked: list[Asked] = field(default_factory=list)

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.path == "/v1/models":
            writer.write(reply(200, {"object": "list", "data": [{"id": name} for name in self.names]}))
            return
        self.asked.append(asked)
        body = asked.body
        if not self.ids and not isinstance(body["prompt"], str):
            writer.write(reply(400, {"error": {"message": "prompt must be a string"}}))
            return
        pieces = self.pieces(body)
        if not body.get("stream"):
            writer.write(reply(200, self._joined(pieces)))
            return
        writer.write(head(200))
        for piece in pieces:
            writer.write(f"data: {json.dumps(piece)}\n\n".encode())
            await writer.drain()
        writer.write(b"data: " + json.dumps({"choices": [], "usage": self.usage(body)}).encode() + b"\n\n")
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()

    def usage(self, body: Any) -> dict[str, Any]:
        return {"prompt_tokens": len(body["prompt"]), "prompt_tokens_details": {"cached_tokens": 4}}

    def pieces(self, body: Any) -> list[dict[str, Any]]:
        tokens = [*self.tokenizer.encode(self.says), self.tokenizer.end]
        cut = tokens[: body["max_tokens"]]
        found = []
        for place, token in enumerate(cut):
            text = self.tokenizer.decode([token])
            choice: dict[str, Any] = {"index": 0, "text": text, "finish_reason": None}
            if self.judges:
                shown = text if token != self.tokenizer.end else "<|im_end|>"
                choice["logprobs"] = {"tokens": [shown], "token_logprobs": [-0.25]}
            if self.ids:
                choice["token_ids"] = [token]
            if place == len(cut) - 1:
                choice["finish_reason"] = "stop" if token == self.tokenizer.end else "length"
            found.append({"object": "text_completion", "choices": [choice]})
        return found

    def _joined(self, pieces: Sequence[dict[str, Any]]) -> dict[str, Any]:
        choices = [piece["choices"][0] for piece in pieces]
        whole = dict(choices[-1], text="".join(choice["text"] for choice in choices))
        if self.judges:
            whole["logprobs"] = {
                name: [each for choice in choices for each in choice["logprobs"][name]]
                for name in ("tokens", "token_logprobs")
            }
        if self.ids:
            whole["token_ids"] = [each for choice in choices for each in choice["token_ids"]]
        return {"choices": [whole], "usage": {"prompt_tokens": 9, "prompt_tokens_details": None}}
