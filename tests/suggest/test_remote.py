"""The completer behind HTTP, against small servers that misbehave in one way each."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from calomel.prompts.parts import PromptParts
from calomel.suggest import remote
from calomel.suggest.completer import Candidate, CompleteAnswer, CompleteRequest, CompleterError, ModelInfo
from calomel.suggest.remote import Endpoint, HttpCompleter
from calomel.suggest.wire import decode_request, encode_answer, encode_info

QUESTION = CompleteRequest("fill", PromptParts(prefix="def f"))
ANSWER = CompleteAnswer((Candidate("()", (-0.5,), (0.1,), -0.2),), context_tokens=9, cached_tokens=8, model="m")
INFO = ModelInfo("m", "abc", ("fill",), 4096, 2048, None, "0.1.0")

Handler = Callable[[str, dict[str, str], bytes, asyncio.StreamWriter], Awaitable[None]]


def response(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n"
    return head.encode() + body


def refusal(status: int, code: str) -> bytes:
    return response(status, json.dumps({"error": {"message": "why", "code": code}}).encode())


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[Endpoint]:
    tasks = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *fields = head.strip().split("\r\n")
                headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in fields)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                await handler(line.split()[1], headers, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Endpoint(f"http://127.0.0.1:{port}", "t0ken")
    finally:
        server.close()
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)


def always(data: bytes) -> Handler:
    async def handler(_: str, __: dict[str, str], ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return handler


async def asked(handler: Handler, question: CompleteRequest = QUESTION) -> CompleteAnswer:
    async with serving(handler) as endpoint:
        completer = HttpCompleter(lambda: found(endpoint))
        try:
            return await completer.complete(question)
        finally:
            await completer.aclose()


async def found(endpoint: Endpoint) -> Endpoint:
    return endpoint


async def code_of(handler: Handler) -> str:
    with pytest.raises(CompleterError) as caught:
        await asked(handler)
    return caught.value.code


async def test_a_question_reaches_the_server_with_its_token_and_the_answer_comes_back() -> None:
    seen: list[tuple[str, str | None, CompleteRequest]] = []

    async def handler(path: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> None:
        seen.append((path, headers.get("authorization"), decode_request(body)))
        writer.write(response(200, encode_answer(ANSWER)))

    assert await asked(handler) == ANSWER
    assert seen == [("/calomel/v1/complete", "Bearer t0ken", QUESTION)]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (refusal(503, "model_loading"), "loading"),
        (refusal(503, "engine_overloaded"), "overloaded"),
        (refusal(503, "model_failed"), "failed"),
        (refusal(500, "server_error"), "failed"),
        (refusal(400, "invalid_parameter"), "refused"),
        (refusal(401, "invalid_api_key"), "refused"),
        (response(404, b"not json"), "refused"),
        (response(200, b"not json"), "failed"),
        (response(200, b'{"protocol": 999}'), "failed"),
        (response(302, b""), "refused"),
    ],
)
async def test_what_goes_wrong_has_a_code(data: bytes, code: str) -> None:
    assert await code_of(always(data)) == code


async def test_a_wrong_token_says_what_to_check() -> None:
    with pytest.raises(CompleterError, match="token_file") as caught:
        await asked(always(refusal(401, "invalid_api_key")))
    assert "t0ken" not in str(caught.value)


async def test_a_server_that_dies_in_the_middle_of_an_answer_is_unreachable_and_looked_for_again() -> None:
    async def dying(_: str, __: dict[str, str], ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(response(200, encode_answer(ANSWER))[:-20])
        writer.close()

    async with serving(dying) as first, serving(always(response(200, encode_answer(ANSWER)))) as second:
        places = [first, second]

        async def resolve() -> Endpoint:
            return places.pop(0)

        completer = HttpCompleter(resolve)
        with pytest.raises(CompleterError) as caught:
            await completer.complete(QUESTION)
        assert caught.value.code == "unreachable"
        assert await completer.complete(QUESTION) == ANSWER
        await completer.aclose()


async def test_nobody_listening_is_unreachable() -> None:
    async with serving(always(b"")) as endpoint:
        pass
    completer = HttpCompleter(lambda: found(endpoint))
    with pytest.raises(CompleterError) as caught:
        await completer.complete(QUESTION)
    assert caught.value.code == "unreachable"
    await completer.aclose()


async def test_a_server_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 0.05)

    async def hanging(_: str, __: dict[str, str], ___: bytes, ____: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    assert await code_of(hanging) == "timeout"


async def test_cancelling_closes_the_request() -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_server(slow, "127.0.0.1", 0)
    endpoint = Endpoint(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    completer = HttpCompleter(lambda: found(endpoint))
    task = asyncio.create_task(completer.complete(QUESTION))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(gone.wait(), 5)
    await completer.aclose()
    server.close()


async def test_info_waits_until_the_model_is_loaded() -> None:
    answers = [refusal(503, "model_loading"), refusal(503, "model_loading"), response(200, encode_info(INFO))]

    async def loading(path: str, _: dict[str, str], __: bytes, writer: asyncio.StreamWriter) -> None:
        assert path == "/calomel/v1/info"
        writer.write(answers.pop(0))

    async with serving(loading) as endpoint:
        completer = HttpCompleter(lambda: found(endpoint))
        assert await completer.info() == INFO
        await completer.aclose()


async def test_a_model_that_failed_to_load_says_so_at_once() -> None:
    async with serving(always(refusal(503, "model_failed"))) as endpoint:
        completer = HttpCompleter(lambda: found(endpoint))
        with pytest.raises(CompleterError, match="why"):
            await completer.info()
        await completer.aclose()


async def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert await asked(always(response(200, encode_answer(ANSWER)))) == ANSWER


async def test_a_second_question_looks_for_no_module_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for: list[str] = []

    class Watcher:
        def find_spec(self, name: str, *_: object) -> None:
            looked_for.append(name)

    async with serving(always(response(200, encode_answer(ANSWER)))) as endpoint:
        completer = HttpCompleter(lambda: found(endpoint))
        await completer.complete(QUESTION)
        monkeypatch.setattr(sys, "meta_path", [Watcher(), *sys.meta_path])
        await completer.complete(QUESTION)
        await completer.aclose()

    assert looked_for == []
