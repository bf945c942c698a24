"""Another user of the machine takes the port that a model's server has left: what they learn, and what is shown."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import ADD, Editor, span
from tests.server._upstreams import Play, llama_cpp, served

from calomel.infer.listener import known_path
from calomel.infer.upstream.exchange import Exchange, Target, UpstreamError

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or not Path("/proc/net/tcp").exists(),
    reason="only root can be two users",
)
SERVICE, PERSON = 998, 54_321
TEXT = ADD.replace("add", "only_for_my_own_server")


def _listen(port: int, user: int, heard: Connection) -> None:
    """Says yes to everything, and keeps what it hears."""
    os.setgid(user)
    os.setuid(user)
    with socket.create_server(("127.0.0.1", port)) as listener:
        heard.send(b"")
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(1.0)
                try:
                    while data := connection.recv(65_536):
                        heard.send(data)
                        body = json.dumps({"status": "ok", "proof": "0" * 64, "content": "evil()"}).encode()
                        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
                except OSError:
                    continue


@contextmanager
def another_user(port: int, user: int = PERSON) -> Iterator[list[bytes]]:
    """Listens there; what was heard is in the list behind the context."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_listen, args=(port, user, theirs), daemon=True)
    process.start()
    assert ours.poll(10)
    ours.recv()
    heard: list[bytes] = []
    try:
        yield heard
    finally:
        process.kill()
        process.join()
        while ours.poll():
            heard.append(ours.recv())


@pytest.fixture
async def window(tmp_path: Path, editor: Editor) -> AsyncIterator[Editor]:
    """An editor that asks what its settings name, and has no question open."""
    real = Editor(tmp_path / "real.log", editor.script, real=True)
    yield real
    await real.aclose()


def of(url: str) -> int:
    return int(url.rpartition(":")[2])


async def typed(editor: Editor, version: int) -> list[Any]:
    """What is shown when the user has typed on, so that a new question is asked."""
    editor.change(version, {"range": span(1, 2 + version, 2 + version), "text": "x"})
    return list(((await editor.inline(1, 3 + version)) or {"items": []})["items"])


def questions(editor: Editor) -> list[str]:
    return [str(each["message"]) for each in editor.shown("window/showMessageRequest")]


async def test_who_takes_an_upstreams_port_hears_nothing_and_shows_nothing(window: Editor) -> None:
    with served(llama_cpp(Play(tokens=("return ", "a + b")))) as url:
        await window.begin(TEXT, backend={"upstream": url})
        await window.state("ready")
        assert (await window.inline(1, 4))["items"]
    with another_user(of(url)) as heard:
        assert [await typed(window, version) for version in (2, 3, 4)] == [[], [], []]
        state = await window.state("error")
    assert heard == []
    told = (
        f"the program at 127.0.0.1:{of(url)} belongs to another user of this machine ({PERSON}, before it was root's)"
    )
    assert told in state["message"]
    assert questions(window) == [f"Calomel sent nothing: {told}. Send your code to it?"]


async def test_a_port_that_another_user_has_from_the_start_is_asked_about(window: Editor) -> None:
    window.answers["window/showMessageRequest"] = lambda params: params["actions"][0]
    with served(llama_cpp(Play())) as url:
        pass
    with another_user(of(url)) as heard:
        await window.begin(TEXT, backend={"upstream": url})
        await window.until(lambda message: "no known API" in str(message))
    assert heard  # the user said yes
    assert f"127.0.0.1:{of(url)} {PERSON} {PERSON}\n" == known_path().read_text()


async def test_a_services_account_is_taken_once_for_what_was_meant(window: Editor) -> None:
    with served(llama_cpp(Play())) as url:
        pass
    with another_user(of(url), SERVICE) as first:
        await window.begin(TEXT, backend={"upstream": url})
        await window.state("error")  # it is no model's server
    assert first
    with another_user(of(url), SERVICE - 1) as second:
        window.later = 60.0
        assert await typed(window, 2) == []
        await window.until(lambda message: message.get("method") == "window/showMessageRequest")
    assert second == []


async def test_who_takes_the_port_of_ones_own_server_learns_neither_text_nor_token(window: Editor) -> None:
    with served(llama_cpp(Play())) as url:
        pass
    with another_user(of(url)) as heard:
        await window.begin(TEXT, backend={"url": url, "token": "the-owners-token"})
        state = await window.state("error")
        assert await typed(window, 2) == []
    assert "does not know the token: nothing was sent to it" in state["message"]
    assert heard
    assert all(each.startswith(b"GET /calomel/v1/proof HTTP/1.1\r\n") for each in heard)
    assert b"the-owners-token" not in b"".join(heard)
    assert b"only_for_my" not in b"".join(heard)


async def test_a_socket_that_another_user_put_in_place_of_ours_hears_nothing(tmp_path: Path) -> None:
    """llama.cpp can prove nothing: its socket has to be the user's own, in a folder of the user's own."""
    place, heard, over = tmp_path / "s", list[bytes](), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(65_536))
        writer.close()
        await writer.wait_closed()
        over.set()

    async with await asyncio.start_unix_server(listen, place):
        os.chown(place, PERSON, PERSON)
        exchange = Exchange(Target(f"unix:{place}", "llama.cpp", key="a-key"))
        with pytest.raises(UpstreamError, match="is not a socket of yours: nothing was sent to it"):
            await exchange.get("/props")
        await exchange.aclose()
        await over.wait()
    assert heard == [b""]
