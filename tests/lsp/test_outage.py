"""A server that others started is away: it is said once, nano may stand in, and it is moved to once it answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import ADD, Editor
from tests.server._upstreams import Play, llama_cpp, served

from calomel.infer import client, outage
from calomel.infer.completer import Completer
from calomel.infer.upstream.completer import UpstreamCompleter
from calomel.infer.upstream.exchange import Target
from calomel.suggest import candidates
from calomel.workspace.settings import BackendSettings

ASKS = "window/showMessageRequest"
MODEL = "Qwen2.5-Coder-1.5B-Q8_0"


class Llama:
    """A llama.cpp that can be stopped, and started again where it was."""

    def __init__(self) -> None:
        self.play, self.url, self._stack = Play(tokens=("return ", "a - b")), "", ExitStack()
        self.start()

    def start(self) -> None:
        port = int(self.url.rpartition(":")[2] or 0)
        self.url = self._stack.enter_context(served(llama_cpp(self.play), port))

    def stop(self) -> None:
        self._stack.close()

    @property
    def away(self) -> str:
        return f"llama.cpp at {self.url} stopped answering: start it again, choose another model, or use nano meanwhile"


@pytest.fixture
def llama() -> Iterator[Llama]:
    llama = Llama()
    yield llama
    llama.stop()


@pytest.fixture(autouse=True)
def connected(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "LOOK_SECONDS", 0.05)

    async def connect(settings: BackendSettings) -> Completer:
        return editor.script if settings.upstream is None else UpstreamCompleter(Target(settings.upstream))

    editor.script.connect = connect


async def begin(editor: Editor, llama: Llama, **options: Any) -> None:
    await editor.begin(backend={"upstream": llama.url}, configuration_filtered=True, **options)
    assert (await editor.inline(1, 4))["items"]
    if options.get("extensions", True):
        assert MODEL in (await editor.state("ready"))["message"]


async def ask(editor: Editor, number: int = 2) -> list[Any]:
    """What is shown in a new document."""
    uri = f"file:///workspace/{number}.py"
    editor.open(ADD, uri)
    return list(((await editor.inline(1, 4, uri=uri)) or {"items": []})["items"])


async def test_a_server_that_dies_is_an_error_at_the_next_question_and_is_back_by_itself(
    editor: Editor, llama: Llama
) -> None:
    await begin(editor, llama)
    editor.messages.clear()
    llama.stop()
    assert await ask(editor) == []
    states = editor.shown("calomel/status")
    assert states == [{"state": "error", "message": llama.away, "outage": 1}]
    assert await ask(editor, 3) == []
    assert editor.shown("calomel/status") == states
    assert not editor.shown()
    editor.messages.clear()
    llama.start()
    assert (await editor.state("ready"))["message"] == f"{MODEL} is ready. It answers through llama.cpp at {llama.url}."
    assert await ask(editor, 4)
    llama.stop()
    await ask(editor, 5)
    assert (await editor.state("error"))["outage"] == 2


async def test_nano_stands_in_until_the_server_is_back(editor: Editor, llama: Llama) -> None:
    await begin(editor, llama)
    llama.stop()
    await ask(editor)
    await editor.state("error")
    answer = await editor.command("calomel.useModel", {"model": "nano", "meanwhile": True})
    said = f"scripted answers until llama.cpp at {llama.url} is back."
    assert answer == {"model": "scripted", "message": said}
    assert (await editor.state("ready"))["message"] == said
    (item,) = await ask(editor, 3)
    assert item["insertText"].endswith("return a + b")
    llama.start()
    assert MODEL in (await editor.state("ready"))["message"]
    (item,) = await ask(editor, 4)
    assert item["insertText"].endswith("return a - b")
    assert (
        "No server has stopped."
        in (await editor.command("calomel.useModel", {"model": "nano", "meanwhile": True}))["message"]
    )


async def test_the_server_that_is_away_is_listed_by_its_address(editor: Editor, llama: Llama) -> None:
    await begin(editor, llama)
    llama.stop()
    await ask(editor)
    models = (await editor.command("calomel.models"))["models"]
    assert [(each["label"], each["detail"]) for each in models if each["current"]] == [
        (f"the model at {llama.url}", "from your settings")
    ]


async def test_a_model_that_is_chosen_meanwhile_stays(editor: Editor, llama: Llama) -> None:
    await begin(editor, llama)
    llama.stop()
    await ask(editor)
    assert (await editor.command("calomel.useModel", {"model": "nano"}))["model"] == "scripted"
    llama.start()
    asked = len(llama.play.asked)
    await asyncio.sleep(0.3)
    assert (await editor.command("calomel.status"))["model"] == "scripted"
    assert len(llama.play.asked) == asked


async def test_a_server_that_loads_again_is_said_to_load(editor: Editor, llama: Llama) -> None:
    await begin(editor, llama)
    llama.stop()
    await ask(editor)
    await editor.state("error")
    llama.play.failing["/props"] = 503, {"error": {"message": "Loading model"}}
    llama.start()
    await editor.state("loading")
    llama.play.failing.clear()
    assert MODEL in (await editor.state("ready"))["message"]


async def test_other_clients_are_asked_once_whether_nano_is_to_answer(editor: Editor, llama: Llama) -> None:
    editor.answers[ASKS] = lambda params: params["actions"][0]
    await begin(editor, llama, extensions=False)
    editor.messages.clear()
    llama.stop()
    await ask(editor)
    question = await editor.notice(ASKS)
    assert (question["message"], question["actions"]) == (f"Calomel: {llama.away}.", [{"title": "Use nano meanwhile"}])
    async with asyncio.timeout(10):
        while (await editor.command("calomel.status"))["model"] != "scripted":  # noqa: ASYNC110 (it happens in the server)
            await asyncio.sleep(0.02)
    (item,) = await ask(editor, 3)
    assert item["insertText"].endswith("return a + b")
    assert not editor.shown(ASKS)
    assert not editor.shown()


async def test_a_server_that_is_chosen_before_it_runs_is_found_though_nobody_types(
    editor: Editor, llama: Llama
) -> None:
    llama.stop()
    await editor.begin(backend={"upstream": llama.url}, configuration_filtered=True)
    away = {
        "state": "error",
        "message": f"no server answers at {llama.url}: start it, or correct upstream",
        "outage": 1,
    }
    assert await editor.state("error") == away
    editor.messages.clear()
    await asyncio.sleep(0.3)
    assert not editor.shown("calomel/status")
    llama.start()
    assert MODEL in (await editor.state("ready"))["message"]
    assert await ask(editor)


async def test_nano_stands_in_for_a_server_that_does_not_run_yet(editor: Editor, llama: Llama) -> None:
    llama.stop()
    editor.answers[ASKS] = lambda params: params["actions"][0]
    await editor.begin(backend={"upstream": llama.url}, configuration_filtered=True, extensions=False)
    question = (await editor.notice(ASKS))["message"]
    assert question == f"Calomel: no server answers at {llama.url}: start it, or correct upstream."
    async with asyncio.timeout(10):
        while (status := await editor.command("calomel.status"))["model"] != "scripted":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert status["message"] == f"scripted answers until the server at {llama.url} is back."
    llama.start()
    async with asyncio.timeout(10):
        while MODEL not in (await editor.command("calomel.status"))["message"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert not editor.shown("window/showMessage")


async def test_a_server_that_is_chosen_in_a_running_editor_is_waited_for(editor: Editor, llama: Llama) -> None:
    llama.stop()
    await editor.begin(configuration_filtered=True)
    await editor.state("ready")
    chosen = {"calomel": {"backend": {"upstream": llama.url}}}
    editor.notify("workspace/didChangeConfiguration", {"settings": chosen})
    assert (await editor.state("error"))["outage"] == 1
    llama.start()
    assert MODEL in (await editor.state("ready"))["message"]


TOO_SLOW = "Calomel: answers are too slow on this machine; run `calomel doctor`."
# A llama.cpp that is a process of its own.
PROGRAM = """
from threading import Event
from tests.server._upstreams import Play, llama_cpp, served

with served(llama_cpp(Play(tokens=("return ", "a - b")))) as url:
    print(url, flush=True)
    Event().wait()
"""


@contextmanager
def process() -> Iterator[tuple[str, int]]:
    """Address and id of a llama.cpp that can be stopped as a process is."""
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, cwd=root) as running:
        assert running.stdout is not None
        yield running.stdout.readline().strip(), running.pid
        running.kill()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question has no answer soon, and a server is silent soon."""
    monkeypatch.setattr(candidates, "_PATIENT_DEADLINE", 0.2)
    monkeypatch.setattr(client, "_GRACE", 0.2)
    monkeypatch.setattr(outage, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(outage, "ANSWER_SECONDS", 1.0)


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_is_stopped_is_away_after_a_few_questions_and_back_by_itself(editor: Editor) -> None:
    with process() as (url, number):
        await editor.begin(backend={"upstream": url}, configuration_filtered=True)
        assert (await editor.inline(1, 4))["items"]
        await editor.state("ready")
        editor.messages.clear()
        os.kill(number, signal.SIGSTOP)
        for uri in range(3):
            assert await ask(editor, uri) == []
        assert f"llama.cpp at {url} stopped answering" in (await editor.state("error"))["message"]
        assert await ask(editor, 3) == []
        assert not editor.shown("calomel/status")
        os.kill(number, signal.SIGCONT)
        await editor.state("ready")
        assert await ask(editor, 4)


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_is_only_slow_stays_and_is_said_to_be_slow(editor: Editor, llama: Llama) -> None:
    await begin(editor, llama)
    # The first token has no text, the others do not come.
    llama.play.tokens, llama.play.log_probs, llama.play.gate = ("", "return ", "a - b"), None, threading.Event()
    for uri in range(2, 8):
        assert await ask(editor, uri) == []
    assert TOO_SLOW in [each["message"] for each in editor.shown("calomel/status") + editor.shown()]
    assert llama.play.asked[-1]
    assert (await editor.command("calomel.status"))["state"] == "ready"
    llama.play.gate.set()
    llama.play.gate = None
    assert await ask(editor, 8)
