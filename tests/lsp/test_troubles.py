"""What can be wrong is said to the user in one sentence, once, whatever the client can show."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import SECONDS, Editor, at
from tests.server.program import NO_HTTP, REFUSED, another_program

from calomel.infer.launch import connect
from calomel.infer.remote import Endpoint, HttpCompleter
from calomel.storage.failures import dead_threads_logged

LANGUAGES = {"languages": {"python": False}}
ENDING = "; for details, run `calomel doctor`."
TOKEN = "the server does not accept the token: check backend.token or backend.token_file"
OTHER = b"HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nhello"
NONE_OF_CALOMEL = "this server is not Calomel, or is an older version"


def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


async def told(
    editor: Editor, *, extensions: bool = False, asks: int = 3, uri: str | None = None, **settings: Any
) -> list[str]:
    """The sentences that a user reads who opens a file and types on in it, long enough for all to be tried again."""
    options = {"calomel": {"extensions": extensions, "suggest": {"debounce_seconds": 0.0}} | settings}
    await editor.initialize(options=options)
    where = uri or "file:///workspace/a.py"
    editor.open("x = \n", uri=where)
    for number in range(asks):
        await editor.inline(0, 4, uri=where)
        await editor.next_edit(0, 4, None, uri=where)
        editor.later += 10
        editor.change(number + 2, {"range": {"start": at(0, 4), "end": at(0, 4)}, "text": " "}, uri=where)
        await settled(editor)
    kind = "calomel/status" if extensions else "window/showMessage"
    return [each["message"] for each in editor.shown(kind) if each.get("state", "error") == "error"]


async def settled(editor: Editor) -> None:
    """What was begun in the background had its time."""
    async with asyncio.timeout(SECONDS):
        while (await editor.command("calomel.status"))["state"] == "loading":  # noqa: ASYNC110 (happens in the server)
            await asyncio.sleep(0.01)


UNENCRYPTED = (
    "backend.url would send your code unencrypted to another machine: use https, or a tunnel (ssh -L), or write "
    'allow_http = ["192.0.2.1"] under [backend] in your own calomel.toml if you trust everybody on that network'
)


@pytest.mark.parametrize("trouble", ["no_model", "no_address", "unencrypted"])
async def test_a_server_that_is_set_up_wrongly_is_named(editor: Editor, tmp_path: Path, trouble: str) -> None:
    editor.script.connect = connect
    model = tmp_path / "nothing"
    missing = f"{model / 'config.json'} does not exist; a checkpoint folder needs config.json"
    server, sentence = {
        "no_model": ({"model": str(model)}, missing),
        "unencrypted": ({"url": "http://192.0.2.1:8017"}, UNENCRYPTED),
        "no_address": ({"url": "localhost:8017"}, "backend.url is not an address such as http://127.0.0.1:8017"),
    }[trouble]
    assert await told(editor, backend=server) == [f"Calomel: {sentence}{ENDING}"]


@pytest.mark.parametrize("answer", [OTHER, NO_HTTP], ids=["http", "no_http"])
async def test_a_port_that_another_program_has_is_named(editor: Editor, answer: bytes) -> None:
    editor.script.connect = connect
    with another_program(answer) as url:
        said = await told(editor, backend={"url": url})
        other = f"the program at {url} is not Calomel"
    assert said == [f"Calomel: {NONE_OF_CALOMEL if answer is OTHER else other}{ENDING}"]


async def test_a_wrong_token_is_named(editor: Editor) -> None:
    editor.script.connect = connect
    with another_program(REFUSED) as url:
        assert await told(editor, backend={"url": url, "token": "wrong"}) == [f"Calomel: {TOKEN}{ENDING}"]


async def test_a_token_file_that_others_can_read_is_named_and_not_sent(editor: Editor, tmp_path: Path) -> None:
    editor.script.connect = connect
    path = tmp_path / "token"
    path.write_text("t0ken\n", encoding="ascii")
    path.chmod(0o644)
    said = await told(editor, backend={"url": nobody(), "token_file": str(path)})
    assert said == [f"Calomel: backend.token_file {path} is open to other users: chmod 600 it{ENDING}"]


async def test_what_stands_before_an_address_is_kept_to_oneself() -> None:
    completer = HttpCompleter(Endpoint(nobody().replace("//", "//me:secret@")))
    with pytest.raises(Exception, match="no server answers at http://127") as caught:
        await completer.info()
    await completer.aclose()
    assert "secret" not in str(caught.value)


async def test_a_file_that_is_ignored_is_named(editor: Editor) -> None:
    said = await told(editor, uri="file:///workspace/.env")
    assert said == ["Calomel: This file may contain a secret (.env)."]
    assert editor.script.requests == []


async def test_a_language_that_is_off_is_named(editor: Editor) -> None:
    said = await told(editor, suggest=LANGUAGES | {"debounce_seconds": 0.0})
    assert said == ["Calomel: Suggestions are off for this language."]


async def test_a_machine_that_is_too_slow_is_named(editor: Editor) -> None:
    editor.script.error = "timeout"
    assert await told(editor, asks=6) == ["Calomel: answers are too slow on this machine; run `calomel doctor`."]


async def test_a_few_late_answers_are_not_worth_a_word(editor: Editor) -> None:
    editor.script.error = "timeout"
    assert await told(editor, asks=2) == []


async def test_a_client_with_a_place_for_it_is_told_there(editor: Editor) -> None:
    editor.script.connect = connect
    url = nobody()
    said = await told(editor, extensions=True, backend={"url": url})
    assert set(said) == {f"no server answers at {url}"}
    assert not editor.shown()


def test_a_thread_that_dies_is_logged_by_name_and_place_without_its_words(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ValueError("the customer's name")

    before = threading.excepthook
    with dead_threads_logged(logging.getLogger("tests.dead_threads")):
        thread = threading.Thread(target=fail, name="calomel-reader")
        thread.start()
        thread.join()
    assert threading.excepthook is before
    assert f"the thread calomel-reader ended with ValueError at {Path(__file__).name}:" in caplog.text
    assert "customer" not in caplog.text + capsys.readouterr().err
