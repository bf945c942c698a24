"""Servers that people run, played: one small application for each wire format, written from its documentation.

llama.cpp's tools/server/README.md, Ollama's docs/api.md, vLLM's and LM Studio's `/v1/completions`, and the OpenAPI
document of Mercury. Each answers with the tokens of its `Play`, and remembers what it was asked.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from calomel.prompts.fim_tokens import format_named


@dataclass
class Play:
    """What a played server says.

    Attributes:
        tokens: of every answer.
        log_probs: of each token; None for a server that gives none.
        rivals: for each token, the likeliest ones in its place and their log-probabilities; none behind the last.
        most_rivals: a question for more of them is refused.
        region: what Mercury makes of a region.
        models: their names there.
        path: of llama.cpp's model.
        refuses: the status that a question for log-probabilities gets where there are none.
        reading: milliseconds that a token of a prompt takes; unknown where it is None.
        counts: it says how many tokens a prompt had.
        window: a prompt of more characters, each a token, is refused.
        mute: where an answer is streamed, nothing is streamed in the place of a refusal (`llama_cpp.server`).
        router: llama.cpp has a server for each of them.
        capabilities, template: of Ollama's models.
        remote: where they run, if not here.
        marks: the texts that are one token of the model; None for those that its name tells.
        special: of its tokens, those that vLLM leaves out of a text unless it is told not to.
        key: that it wants.
        failing: path to the status, or to the JSON document of a status, that it answers with.
        half: an answer breaks off behind so many tokens.
        nonsense: what it sends in the place of its first document.
        heartbeats: empty events stand between its documents.
        gate: tokens behind the first one wait for it.
        asked: path and body of every question.
        gone: the client closed the connection before the end.
    """

    tokens: Sequence[str] = ("n ", "* ", "2")
    log_probs: Sequence[float | None] | None = (-0.1, -0.2, -0.3)
    rivals: Sequence[dict[str, float]] = ()
    most_rivals: int = 20
    region: str = ""
    models: Sequence[str] = ("qwen2.5-coder:1.5b-base",)
    path: str = "/models/Qwen2.5-Coder-1.5B-Q8_0.gguf"
    refuses: int | None = None
    reading: float | None = None
    counts: bool = True
    window: int = 1_000_000
    mute: bool = False
    router: bool = False
    capabilities: Sequence[str] = ("completion", "insert")
    template: str = "{{ .Prompt }}"
    remote: str = ""
    marks: Sequence[str] | None = None
    special: Sequence[str] = ()
    key: str | None = None
    failing: dict[str, tuple[int, Any]] = field(default_factory=dict)
    half: int | None = None
    nonsense: str | None = None
    heartbeats: bool = False
    gate: threading.Event | None = None
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)

    def last(self, path: str) -> dict[str, Any]:
        return [body for at, body in self.asked if at == path][-1]

    def tokens_of(self, text: str) -> int:
        """How many tokens a text has: one for each mark, one for each other character."""
        named = format_named(self.models[0])
        for mark in self.marks if self.marks is not None else () if named is None else named.marks:
            text = text.replace(mark, "\0")
        return len(text)

    def written(self, stop: Sequence[str], most: int, *, special: bool = True) -> tuple[list[str], bool]:
        """The texts of an answer's tokens up to the first stop string, and whether it was cut off before its end."""
        texts = ["" if not special and text in self.special else text for text in self.tokens[:most]]
        whole = "".join(texts)
        end = min((at for each in stop if (at := whole.find(each)) >= 0), default=None)
        if end is None:
            return texts, most < len(self.tokens)
        starts = [sum(map(len, texts[:at])) for at in range(len(texts))]
        return [text[: max(0, end - start)] for start, text in zip(starts, texts, strict=True) if start < end], False

    def log_prob(self, at: int) -> float | None:
        return None if self.log_probs is None else self.log_probs[at]

    def rivals_at(self, at: int, most: int) -> dict[str, float]:
        found = self.rivals[at] if at < len(self.rivals) else {}
        return dict(sorted(found.items(), key=lambda each: -each[1])[:most])

    def listed(self, at: int, most: int) -> list[dict[str, Any]]:
        """As llama.cpp and Ollama list the likeliest tokens."""
        found = self.rivals_at(at, most).items()
        return [{"token": text, "bytes": [*text.encode()], "logprob": value} for text, value in found]


# The document behind each token, and the last one.
Worded = Callable[[int, str], dict[str, Any]]


class Played:
    """The routes of one format, behind its key."""

    def __init__(self, play: Play, **routes: Callable[[dict[str, Any]], Any]) -> None:
        self.play = play
        self.routes = {f"/{name.replace('__', '/')}": answer for name, answer in routes.items()}

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.answer, methods=["GET", "POST"])])

    async def answer(self, request: Request) -> Response:
        play, path = self.play, request.url.path
        body = json.loads(await request.body() or b"{}")
        play.asked.append((path, body))
        if play.key is not None and request.headers.get("authorization") != f"Bearer {play.key}":
            return JSONResponse({"error": {"message": f"no such key: {request.headers.get('authorization')}"}}, 401)
        if path in play.failing:
            status, said = play.failing[path]
            return RedirectResponse(said, status) if 300 <= status < 400 else JSONResponse(said, status)
        if path not in self.routes:
            return JSONResponse({"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}, 404)
        found = self.routes[path](body)
        return found if isinstance(found, Response) else JSONResponse(found)

    def stream(
        self, texts: Sequence[str], token: Worded, last: Sequence[dict[str, Any] | str], *, sse: bool
    ) -> Response:
        """The answer's tokens, each as an event or on a line."""
        play = self.play

        def worded(document: dict[str, Any] | str) -> bytes:
            text = document if isinstance(document, str) else json.dumps(document)
            return f"data: {text}\n\n".encode() if sse else f"{text}\n".encode()

        async def parts() -> AsyncIterator[bytes]:
            whole = False
            try:
                if play.nonsense is not None:
                    yield worded(play.nonsense)
                for at, text in enumerate(texts):
                    if play.half == at:
                        raise ConnectionResetError
                    while at and play.gate is not None and not play.gate.is_set():  # noqa: ASYNC110 (of the test's thread)
                        await asyncio.sleep(0.005)
                    if play.heartbeats:
                        yield b"data:\n\n: still here\n\ndata: \n\n"
                    yield worded(token(at, text))
                for document in last:
                    yield worded(document)
                whole = True
            finally:
                if not whole:
                    play.gone.set()

        return StreamingResponse(parts(), media_type="text/event-stream" if sse else "application/x-ndjson")


def llama_cpp(play: Play) -> Starlette:
    def token(most: int, at: int, text: str) -> dict[str, Any]:
        known, top = play.log_prob(at), play.listed(at, most)
        probabilities = [{"id": at, "token": text, "logprob": known, "top_logprobs": top}]
        found = {"index": 0, "content": text, "tokens": [at], "stop": False, "tokens_predicted": at + 1}
        if play.reading is not None:
            found["timings"] = {"cache_n": 30, "prompt_n": 100, "prompt_ms": 100 * play.reading}
        return found if play.log_probs is None else {**found, "completion_probabilities": probabilities}

    def complete(body: dict[str, Any]) -> Response:
        size = len(body["prompt"] + body.get("input_prefix", "") + body.get("input_suffix", ""))
        if size > play.window:
            said = (
                f"request ({size} tokens) exceeds the available context size ({play.window} tokens), try increasing it"
            )
            kind = {"type": "exceed_context_size_error", "n_prompt_tokens": size, "n_ctx": play.window}
            return JSONResponse({"error": {"code": 400, "message": said, **kind}}, 400)
        texts, cut = play.written(body["stop"], body["n_predict"])
        end = {
            "content": "",
            "stop": True,
            "stop_type": "limit" if cut else "eos",
            "tokens_evaluated": 40,
            "timings": {"cache_n": 30},
        }
        return played.stream(texts, partial(token, body["n_probs"]), [end], sse=True)

    props = {
        "default_generation_settings": {"id": 0, "n_ctx": 8192, "params": {}}, "total_slots": 1,
        "model_path": play.path, "build_info": "b6000-abc",
    }  # fmt: skip
    played = Played(
        play,
        props=lambda _: {**props, "role": "router"} if play.router else props,
        v1__models=lambda _: {"data": [{"id": name} for name in play.models]},
        tokenize=lambda body: {"tokens": list(range(play.tokens_of(body["content"])))},
        infill=complete,
        completion=complete,
    )
    return played.app()


def ollama(play: Play) -> Starlette:
    def token(most: int, at: int, text: str) -> dict[str, Any]:
        found = {"model": play.models[0], "created_at": "2026-01-01T00:00:00Z", "response": text, "done": False}
        scored = {"token": text, "logprob": play.log_prob(at), "top_logprobs": play.listed(at, most)}
        return found if play.log_probs is None else {**found, "logprobs": [scored]}

    def generate(body: dict[str, Any]) -> Response:
        options = body["options"]
        texts, cut = play.written(options["stop"], options["num_predict"])
        end = {"response": "", "done": True, "done_reason": "length" if cut else "stop", "prompt_eval_count": 26}
        if play.reading is not None:
            end["prompt_eval_duration"] = int(26e6 * play.reading)
        return played.stream(texts, partial(token, body["top_logprobs"]), [end], sse=False)

    played = Played(
        play,
        api__version=lambda _: {"version": "0.12.11"},
        api__tags=lambda _: {"models": [{"name": name, "model": name} for name in play.models]},
        api__show=lambda _: {
            "template": play.template, "capabilities": list(play.capabilities),
            "parameters": 'num_ctx    8192\nstop "x"', **({"remote_host": play.remote} if play.remote else {}),
        },
        api__generate=generate,
    )  # fmt: skip
    return played.app()


def openai(play: Play, *, vllm: bool = False) -> Starlette:
    counted = {"usage": {"prompt_tokens": 33, "prompt_tokens_details": {"cached_tokens": 16}}}

    def complete(body: dict[str, Any]) -> Any:
        always = vllm and body.get("stream_options", {}).get("continuous_usage_stats")

        def token(at: int, text: str) -> dict[str, Any]:
            numbers = {"tokens": [text], "token_logprobs": [play.log_prob(at)], "text_offset": [0]}
            if play.rivals:
                # The token itself comes along.
                numbers["top_logprobs"] = [{**play.rivals_at(at, body["logprobs"]), text: play.log_prob(at)}]
            choice = {"index": 0, "text": text, "finish_reason": None}
            choice |= {"logprobs": None if play.log_probs is None else numbers}
            return {"id": "cmpl-1", "choices": [choice], **(counted if always else {})}

        refused = None
        if play.refuses is not None and "logprobs" in body:
            refused = JSONResponse({"error": {"message": "logprobs is not supported"}}, play.refuses)
        if body.get("logprobs", 0) > play.most_rivals:
            said = f"Requested sample logprobs of {body['logprobs']}, which is greater than max allowed"
            refused = JSONResponse({"error": {"message": said}}, 400)
        if len(body["prompt"]) > play.window:
            said = f"This model's maximum context length is {play.window} tokens, however you requested more."
            refused = JSONResponse({"error": {"message": said}}, 400)
        if refused is not None:
            return Response(media_type="text/event-stream") if play.mute and body["stream"] else refused
        if len(body.get("stop", "x")) not in range(1, 5):
            return JSONResponse({"error": {"message": "stop has more than 4 strings"}}, 400)
        special = not vllm or not body.get("skip_special_tokens", True)
        texts, cut = play.written(body.get("stop", ()), body["max_tokens"], special=special)
        end = {"choices": [{"index": 0, "text": "", "finish_reason": "length" if cut else "stop"}]}
        usage = [{"choices": [], **counted}] if play.counts else []
        return played.stream(texts, token, [end, *usage, "[DONE]"], sse=True)

    window = {"max_model_len": 16384, "owned_by": "vllm"} if vllm else {"owned_by": "organization_owner"}
    routes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "v1__models": lambda _: {"object": "list", "data": [{"id": name, **window} for name in play.models]},
        "v1__completions": complete,
    }
    if vllm:
        routes["version"] = lambda _: {"version": "0.11.0"}
        routes["tokenize"] = lambda body: {"count": play.tokens_of(body["prompt"]), "max_model_len": 16384}
    played = Played(play, **routes)
    return played.app()


def vllm(play: Play) -> Starlette:
    return openai(play, vllm=True)


def mercury(play: Play) -> Starlette:
    def token(at: int, text: str) -> dict[str, Any]:
        return {
            "id": "cmpl-1",
            "object": "text_completion",
            "choices": [{"index": 0, "text": text, "finish_reason": None}],
        }

    def edit(_: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": play.region, "tool_calls": []}
        return {"id": "cmpl-2", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    def fim(body: dict[str, Any]) -> Response:
        texts, cut = play.written(body["stop"], body["max_tokens"])
        finish = "length" if cut else "stop"
        end = {"choices": [{"index": 0, "text": "", "finish_reason": finish}], "usage": {"prompt_tokens": 21}}
        return played.stream(texts, token, [end, "[DONE]"], sse=True)

    played = Played(
        play,
        v1__models=lambda _: {"data": [{"id": "mercury-edit-2"}, {"id": "mercury-2"}]},
        v1__fim__completions=fim,
        v1__edit__completions=edit,
    )
    return played.app()


def resolved(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a name of another machine lead to this one."""
    look_up = socket.getaddrinfo

    def found(host: Any, *more: Any, **options: Any) -> Any:
        return look_up("127.0.0.1" if host in {name, name.encode()} else host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", found)


@contextmanager
def served(app: Starlette, port: int = 0, certificate: tuple[Path, Path] | None = None) -> Iterator[str]:
    """Its address, while it runs; its connections are cut in the end."""
    cert, key = certificate or (None, None)
    config = uvicorn.Config(
        app, http="h11", ws="none", loop="asyncio", log_config=None, log_level="critical", lifespan="off",
        timeout_graceful_shutdown=0, ssl_certfile=cert, ssl_keyfile=key,
    )  # fmt: skip
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http{'s' if cert else ''}://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
