from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.lsp.editor import Editor, Script, inline_params, span

from calomel.context.window import ExactCounter
from calomel.infer.completer import Completer, ModelInfo
from calomel.prompts.tokenizer import Tokenizer
from calomel.weights import nano_path
from calomel.workspace.settings import BackendSettings

EXTENSIONS = {"calomel": {"extensions": True, "configuration_filtered": True}}
PROGRESS = {"window": {"workDoneProgress": True}}


@pytest.fixture(autouse=True)
def _fits(editor: Editor) -> None:
    """What the model writes is a value, since the tests ask by key behind `x = `."""
    editor.script.fill = "a + b"


async def test_the_client_learns_how_the_model_is(editor: Editor) -> None:
    editor.script.loading = asyncio.Event()
    await editor.initialize(options=EXTENSIONS)
    assert (await editor.notice("calomel/status"))["state"] == "loading"
    assert (await editor.command("calomel.status"))["state"] == "loading"
    editor.script.loading.set()
    notice = await editor.notice("calomel/status")
    assert (notice["state"], notice["message"]) == ("ready", "scripted is ready. It runs on this machine's CPU.")


async def test_nano_has_the_name_by_which_people_choose_it(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    nano = replace(await editor.script.info(), id="calomel-nano")

    async def info() -> ModelInfo:
        return nano

    monkeypatch.setattr(editor.script, "info", info)
    await editor.initialize(options=EXTENSIONS)
    assert (await editor.state("ready"))["message"] == "nano is ready. It runs on this machine's CPU."
    assert (await editor.command("calomel.status"))["model"] == "nano"


async def test_a_client_of_copilots_protocol_learns_it_in_its_words(editor: Editor) -> None:
    await editor.initialize(options={"editorInfo": {"name": "x"}, "editorPluginInfo": {"name": "y"}})
    kinds = [(await editor.notice("didChangeStatus")) for _ in range(2)]
    assert [(each["busy"], each["kind"]) for each in kinds] == [(True, "Normal"), (False, "Normal")]


async def test_other_clients_are_told_nothing(editor: Editor) -> None:
    await editor.initialize()
    editor.open("x = \n")
    await editor.inline(0, 4)
    assert editor.messages == []


async def test_loading_is_shown_as_progress(editor: Editor) -> None:
    editor.script.loading = asyncio.Event()
    await editor.initialize(PROGRESS)
    created = await editor.notice("window/workDoneProgress/create")
    begun = await editor.notice("$/progress")
    assert created["token"] == begun["token"]
    assert begun["value"]["kind"] == "begin"
    editor.script.loading.set()
    ended = await editor.notice("$/progress")
    assert (ended["value"]["kind"], ended["value"]["message"]) == ("end", "scripted is ready")


async def test_a_question_is_answered_once_the_model_is_there(editor: Editor) -> None:
    editor.script.loading = asyncio.Event()
    await editor.initialize()
    editor.open("x = \n")
    number = editor.start("textDocument/inlineCompletion", inline_params(0, 4))
    assert await editor.alive()
    editor.script.loading.set()
    assert (await editor.answer(number))["result"]["items"]


async def test_a_model_that_does_not_load_is_an_error_with_its_sentence(editor: Editor) -> None:
    editor.script.broken = "failed"
    await editor.initialize(options=EXTENSIONS)
    await editor.notice("calomel/status")
    notice = await editor.notice("calomel/status")
    assert (notice["state"], notice["message"]) == ("error", "The weights are damaged.")
    editor.open("x = \n")
    assert await editor.inline(0, 4) is None


class Exact(Script):
    """A model whose tokenizer is on this machine."""

    async def info(self) -> ModelInfo:
        return replace(await super().info(), tokenizer=str(nano_path() / "tokenizer.json"))


async def test_tokens_are_counted_exactly_though_the_model_did_not_load_at_first(editor: Editor) -> None:
    script = Exact()
    script.broken, script.fill = "failed", "a + b"

    async def connect(_: BackendSettings) -> Completer:
        return script

    editor.script.connect = connect
    await editor.begin("lengthened_name = another_name\n" * 9 + "x = \n")
    await editor.state("error")
    script.broken, editor.later = "", 10.0
    assert await editor.inline(9, 4) is not None
    exact = ExactCounter(Tokenizer.from_file(nano_path() / "tokenizer.json"))
    async with asyncio.timeout(10):
        while True:
            parts = (await editor.command("calomel.showContext", inline_params(9, 4)))["parts"]
            (prefix,) = (each for each in parts if each["part"] == "prefix")
            if prefix["tokens"] == exact.text(prefix["text"]):
                break
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("error", ["unreachable", "loading"])
async def test_a_question_under_which_the_server_ended_is_answered_by_the_next_one(editor: Editor, error: str) -> None:
    await editor.initialize(options=EXTENSIONS)
    await editor.state("ready")
    editor.open("x = \n")
    editor.messages.clear()
    editor.script.error, editor.script.loading = error, asyncio.Event()
    number = editor.start("textDocument/inlineCompletion", inline_params(0, 4))
    await editor.state("loading")
    editor.script.error = None
    editor.script.loading.set()
    assert (await editor.answer(number))["result"] is not None
    assert not editor.shown("calomel/silence")


@pytest.mark.parametrize(
    ("broken", "reason", "sentence"),
    [
        ("unreachable", "no_model", "No model answers. The weights are damaged."),
        ("", "loading", "The model is still loading. The model's server stopped. Restarting it…"),
    ],
)
async def test_a_server_that_does_not_come_back_is_a_silence_that_says_why(
    editor: Editor, broken: str, reason: str, sentence: str
) -> None:
    await editor.begin("x = \n")
    assert await editor.inline(0, 4) is not None
    editor.script.error, editor.script.broken = "unreachable", broken
    editor.change(2, {"range": span(0, 4, 4), "text": " "})
    assert await editor.inline(0, 5) is None
    silence = await editor.notice("calomel/silence")
    assert (silence["reason"], silence["message"]) == (reason, sentence)
    editor.script.error, editor.script.broken, editor.later = None, "", 10.0
    async with asyncio.timeout(10):
        while await editor.inline(0, 5) is None:  # noqa: ASYNC110 - what is waited for happens in the server
            await asyncio.sleep(0.05)


async def test_another_server_in_the_settings_is_connected_to(editor: Editor) -> None:
    await editor.initialize(options=EXTENSIONS)
    await editor.state("ready")
    settings = {"calomel": {"backend": {"url": "http://127.0.0.1:9"}}}
    editor.notify("workspace/didChangeConfiguration", {"settings": settings})
    await editor.state("loading")
    await editor.state("ready")
    assert editor.script.closed == 1


class Slow(Script):
    """A server that takes its time to be left."""

    leave = asyncio.Event()

    async def aclose(self) -> None:
        await self.leave.wait()
        await super().aclose()


async def test_of_settings_that_change_twice_the_last_ones_count(editor: Editor) -> None:
    urls = [f"http://127.0.0.1:{port}" for port in (1, 2, 3)]
    servers = {url: Slow() for url in urls}

    async def connect(settings: BackendSettings) -> Completer:
        return servers[str(settings.url)]

    editor.script.connect = connect
    first, second, last = servers.values()
    last.fill = "a + b"
    await editor.initialize(options={"calomel": EXTENSIONS["calomel"] | {"backend": {"url": urls[0]}}})
    await editor.state("ready")
    editor.open("x = \n")
    for url in urls[1:]:
        settings = {"calomel": {"backend": {"url": url}}}
        editor.notify("workspace/didChangeConfiguration", {"settings": settings})
        assert await editor.alive()
    first.leave.set()
    await editor.state("ready")
    assert await editor.inline(0, 4) is not None
    assert (first.closed, len(second.requests), len(last.requests)) == (1, 0, 1)
