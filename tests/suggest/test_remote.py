"""The completer behind HTTP, against small servers that misbehave in one way each, and what says where they are."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.infer import remote
from calomel.infer.client import ModelClient
from calomel.infer.completer import (
    MAX_DRAFT_CHARACTERS,
    MAX_DRAFTS,
    Candidate,
    CompleteAnswer,
    CompleteRequest,
    CompleterError,
    Draft,
    ModelInfo,
)
from calomel.infer.proof import proof
from calomel.infer.remote import Endpoint, HttpCompleter
from calomel.infer.runtime_file import RuntimeFileError, ServerRecord, published, read
from calomel.infer.wire import FieldError, decode, decode_request, encode
from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.storage import start_of

QUESTION = CompleteRequest("fill", PromptParts(prefix="def f"))


TOKEN = "t0ken"
ANSWER = CompleteAnswer((Candidate("()", (-0.5,), (0.1,), -0.2),), context_tokens=9, cached_tokens=8, model="m")


INFO = ModelInfo("m", "abc", ("fill",), 4096, 2048, None, "0.1.0")


def response(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n"
    return head.encode() + body


def refusal(status: int, code: str) -> bytes:
    return response(status, json.dumps({"error": {"message": "why", "code": code}}).encode())


@asynccontextmanager
async def serving(*answers: bytes) -> AsyncIterator[tuple[Endpoint, list[tuple[str, bytes]]]]:
    """A server that gives these answers, ending behind each, and the heads and bodies of what it was asked.

    It proves that it knows the token.
    """
    left, heard = list(answers), list[tuple[str, bytes]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if challenge := re.search(r"Proof (\w+):", head):
            assert TOKEN not in head
            writer.write(response(200, json.dumps({"proof": proof(TOKEN, "server", challenge[1])}).encode()))
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"(?i)content-length: (\d+)", head)
        heard.append((head, await reader.readexactly(int(length[1]) if length else 0)))
        writer.write(left.pop(0))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield at(server.sockets[0]), heard


def at(listener: Any) -> Endpoint:
    return Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}", TOKEN)


@asynccontextmanager
async def asking(endpoint: Endpoint) -> AsyncIterator[HttpCompleter]:
    completer = HttpCompleter(endpoint)
    yield completer
    await completer.aclose()


@asynccontextmanager
async def finding(*endpoints: Endpoint) -> AsyncIterator[ModelClient]:
    """A client that finds these, one after the other."""
    left = list(endpoints)

    async def connect(_: object) -> HttpCompleter:
        return HttpCompleter(left.pop(0))

    client = ModelClient(connect)
    yield client
    await client.aclose()


async def test_a_question_reaches_the_server_with_its_token_and_the_answer_comes_back() -> None:
    async with serving(response(200, encode(ANSWER))) as (server, heard), asking(server) as completer:
        assert await completer.complete(QUESTION) == ANSWER
    ((head, body),) = heard
    assert head.startswith("POST /calomel/v1/complete ")
    assert "authorization: bearer t0ken\r\n" in head.lower()
    assert decode_request(body) == QUESTION


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (refusal(503, "model_loading"), "loading"),
        (refusal(503, "engine_overloaded"), "overloaded"),
        (refusal(400, "invalid_parameter"), "refused"),
        (refusal(401, "invalid_api_key"), "refused"),
        (response(404, b"not json"), "refused"),
        (response(200, b"not json"), "failed"),
        (response(200, b'{"protocol": 999}'), "failed"),
    ],
)
async def test_what_goes_wrong_has_a_code(data: bytes, code: str) -> None:
    async with serving(data) as (server, _), asking(server) as completer:
        with pytest.raises(CompleterError) as caught:
            await completer.complete(QUESTION)
    assert caught.value.code == code
    assert "t0ken" not in str(caught.value)


async def test_a_server_that_dies_in_the_middle_of_an_answer_is_unreachable_and_looked_for_again() -> None:
    whole = response(200, encode(ANSWER))
    loaded = response(200, encode(INFO))
    async with serving(whole[:-20]) as (first, _), asking(first) as completer:
        with pytest.raises(CompleterError) as caught:
            await completer.complete(QUESTION)
        assert caught.value.code == "unreachable"
    async with (
        serving(loaded, whole[:-20]) as (first, _),
        serving(loaded, whole) as (second, _),
        finding(first, second) as client,
    ):
        assert await client.ready() == INFO
        assert await client.complete(QUESTION) == ANSWER


async def test_a_server_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with asking(at(silent)) as completer:
            with pytest.raises(CompleterError) as caught:
                await completer.complete(QUESTION)
    assert caught.value.code == "timeout"


async def test_cancelling_closes_the_request() -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()
        gone.set()
        writer.close()

    async with await asyncio.start_server(slow, "127.0.0.1", 0) as server, asking(at(server.sockets[0])) as completer:
        task = asyncio.create_task(completer.complete(QUESTION))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 5)


async def test_info_waits_until_the_model_is_loaded() -> None:
    loading = refusal(503, "model_loading")
    async with serving(loading, loading, response(200, encode(INFO))) as (server, heard), finding(server) as client:
        assert await client.ready() == INFO
    assert {head.split("\r\n")[0] for head, _ in heard} == {"GET /calomel/v1/info HTTP/1.1"}


async def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    async with serving(response(200, encode(ANSWER))) as (server, _), asking(server) as completer:
        assert await completer.complete(QUESTION) == ANSWER


EDIT = CompleteRequest(
    "edit",
    PromptParts(prefix="a\n", suffix="c\n", region=EditRegion("b\n", None)),
    drafts=(Draft("b2\n", "rename"), Draft("", "substitution")),
)


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=4, max_size=4),
    counts=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    line=st.integers(0, 9),
)
def test_whatever_stands_around_comes_to_the_other_side_as_it_is(
    texts: list[str], counts: tuple[int, int], line: int
) -> None:
    excerpts = [Excerpt(texts[number % 4], line + number, texts[(number + 1) % 4]) for number in range(4)]
    parts = PromptParts(
        related=tuple(excerpts[: counts[0]]),
        far=tuple(excerpts[: counts[1]]),
        edits=(Hunk(texts[0], line, texts[1], texts[2]),),
        path=texts[3],
        prefix=texts[0],
        suffix=texts[1],
    )
    question = CompleteRequest("fill", parts, drafts=(Draft(texts[2], "made"),))

    assert decode_request(encode(question)) == question


def test_an_excerpt_that_is_no_valid_unicode_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(FieldError, match="not valid Unicode"):
            encode(CompleteRequest("fill", PromptParts(related=(Excerpt("a", 0, "\ud83d"),))))


def test_a_question_of_an_older_editors_side_has_no_drafts() -> None:
    older = json.loads(encode(EDIT))
    del older["drafts"]
    assert decode_request(json.dumps(older)) == replace(EDIT, drafts=())


def test_an_answer_of_an_older_server_has_a_canvas_that_nobody_judged() -> None:
    older = json.loads(encode(CompleteAnswer((Candidate("x"),))))
    for name in ("maker", "log_prob", "keep_log_prob"):
        del older["candidates"][0][name]
    assert decode(json.dumps(older), CompleteAnswer).candidates == (Candidate("x"),)


@pytest.mark.parametrize(
    ("drafts", "field"),
    [
        ([{"text": "x" * (MAX_DRAFT_CHARACTERS + 1), "maker": "rename"}], "drafts.0.text"),
        ([{"text": "x", "maker": "m" * 300}], "drafts.0.maker"),
        ([{"text": "x", "maker": "rename"}] * (MAX_DRAFTS + 1), "drafts"),
    ],
)
def test_drafts_out_of_bounds_are_refused_by_name(drafts: object, field: str) -> None:
    body = json.loads(encode(EDIT)) | {"drafts": drafts}
    with pytest.raises(FieldError) as refused:
        decode_request(json.dumps(body))
    assert refused.value.field == field


PID = os.getpid()


RECORD = ServerRecord("http://127.0.0.1:1", "s3cret", PID, start_of(PID), None, "abc", "cpu", "0.1.0", 1)


def test_the_file_tells_how_to_reach_the_server_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "run" / "server.json"
    with published(path, RECORD):
        assert read(path) == RECORD
        assert RECORD.alive()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == []


def test_a_link_in_its_place_is_replaced_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "server.json"
    path.symlink_to(victim)
    with published(path, RECORD):
        assert not path.is_symlink()
    assert victim.read_text() == "precious"


def test_the_file_of_a_later_server_stays(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    later = replace(RECORD, url="http://127.0.0.1:2")
    with published(path, RECORD):
        path.write_text(json.dumps(asdict(later)))
    assert read(path) == later


def test_the_file_of_an_earlier_server_that_runs_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    with published(path, RECORD):
        with published(path, replace(RECORD, url="http://127.0.0.1:2")):
            assert read(path) != RECORD
        assert read(path) == RECORD
    assert not path.exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"url": 3}', "x" * 100_000])
def test_a_damaged_file_is_said_to_be_and_its_content_is_not_repeated(tmp_path: Path, content: str) -> None:
    path = tmp_path / "server.json"
    path.touch(mode=0o600)
    path.write_text(content)
    with pytest.raises(RuntimeFileError, match="damaged") as caught:
        read(path)
    assert "xxxx" not in str(caught.value)


def test_a_file_that_others_may_read_or_a_link_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    with published(path, RECORD):
        path.chmod(0o644)
        with pytest.raises(RuntimeFileError, match="open to other users"):
            read(path)
        path.chmod(0o600)
        (tmp_path / "link.json").symlink_to(path)
        with pytest.raises(RuntimeFileError, match="cannot read"):
            read(tmp_path / "link.json")


def test_a_process_id_that_was_given_out_again_is_another_process() -> None:
    assert not replace(RECORD, started=RECORD.started + 60).alive()
    assert not replace(RECORD, pid=2**22 + 1).alive()
