"""Another model is chosen in the editor: which there are, and moving to one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from tests.lsp.editor import ADD, Editor, Script, inline_params
from tests.server._upstreams import Play, llama_cpp, ollama, served

from calomel.cli.main import main
from calomel.families import recommended
from calomel.infer.completer import Completer
from calomel.infer.upstream import running
from calomel.infer.upstream.completer import UpstreamCompleter
from calomel.infer.upstream.exchange import Target
from calomel.workspace.settings import CHOICE, BackendSettings

NANO = {"model": "nano"}


class Servers:
    """A llama.cpp and an Ollama at ports that count as the usual ones."""

    def __init__(self, llama: str, several: str) -> None:
        self.llama, self.several = llama, several
        self.play = Play(tokens=("return ", "a - b"))


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    with ExitStack() as stack:
        play = Play(tokens=("return ", "a - b"))
        llama = stack.enter_context(served(llama_cpp(play)))
        models = ("qwen2.5-coder:1.5b-base", "nomic-embed-text:latest", "mine:7b")
        several = stack.enter_context(served(ollama(Play(models=models, capabilities=("completion",)))))
        ports = [(title, int(url.rpartition(":")[2])) for title, url in (("llama.cpp", llama), ("Ollama", several))]
        monkeypatch.setattr(running, "USUAL_PORTS", [*ports, ("vLLM", 9)])
        found = Servers(llama, several)
        found.play = play
        yield found


@pytest.fixture(autouse=True)
def others_on_this_machine(editor: Editor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models behind a server are asked there, without a server of our own between; and none of the user counts."""
    monkeypatch.setattr(recommended, "ROWS", recommended.ROWS[:1])
    for name in ("XDG_DATA_HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))

    async def connect(settings: BackendSettings) -> Completer:
        if settings.upstream is None:
            return editor.script
        return UpstreamCompleter(Target(settings.upstream, settings.upstream_format, settings.upstream_model))

    editor.script.connect = connect


async def ready(editor: Editor) -> None:
    await editor.begin(configuration_filtered=True)
    await editor.state("ready")
    editor.messages.clear()


async def listed(editor: Editor) -> list[dict[str, Any]]:
    return list((await editor.command("calomel.models"))["models"])


async def test_the_list_has_what_is_here_and_what_runs_here(editor: Editor, servers: Servers, tmp_path: Path) -> None:
    folder = tmp_path / "xdg_data_home" / "calomel" / "models" / "Coder-1B"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"\0" * 100_000_000)
    (huge := folder.with_name("Huge")).mkdir()
    (huge / "config.json").write_text("{}")
    with (huge / "model.safetensors").open("wb") as file:
        file.truncate(2**42)
    await editor.initialize()
    models = await listed(editor)
    cpu = "this machine's CPU"
    assert [(each["label"], each["detail"]) for each in models[:-1]] == [
        ("nano", f"comes with Calomel, runs on {cpu}"),
        ("Qwen2.5-Coder-1.5B-Q8_0", f"llama.cpp at {servers.llama}"),
        ("qwen2.5-coder:1.5b-base", f"Ollama at {servers.several}"),
        ("mine:7b", f"Ollama at {servers.several}, probably chat only: slower and less exact"),
        ("Coder-1B", f"in the models folder, runs on {cpu}: 0.1 GB, fits"),
    ]
    assert "4398.0 GB, more than the " in models[-1]["detail"]
    assert [each["label"] for each in models if each["current"]] == ["nano"]
    assert models[1]["settings"] == {"upstream": servers.llama}
    assert models[3]["settings"] == {"upstream": servers.several, "upstream_model": "mine:7b"}


async def test_the_ports_of_editor_plugins_and_a_second_server_are_tried(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: set[tuple[str, int]] = set()

    async def refused(host: str, port: int) -> None:
        tried.add((host, port))
        raise ConnectionRefusedError

    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    monkeypatch.setattr(asyncio, "open_connection", refused)
    await editor.initialize()
    assert [each["label"] for each in await listed(editor)] == ["nano"]
    assert tried == {("127.0.0.1", port) for port in (8080, 8012, 8081, 11434, 1234, 8000)}


@pytest.mark.parametrize(
    "said",
    ["127.0.0.1:PORT", "http://127.0.0.1:PORT", "http://localhost:PORT/", "0.0.0.0:PORT", ":PORT", "[::]:PORT", "::"],
)
async def test_an_ollama_elsewhere_on_this_machine_is_found_by_its_variable(
    editor: Editor, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    with served(ollama(Play())) as url:
        port = url.rpartition(":")[2]
        monkeypatch.setattr(running, "USUAL_PORTS", ())
        monkeypatch.setattr(running, "OLLAMA_PORT", int(port))
        monkeypatch.setenv("OLLAMA_HOST", said.replace("PORT", port))
        await editor.initialize()
        assert [(each["label"], each["detail"]) for each in (await listed(editor))[1:]] == [
            ("qwen2.5-coder:1.5b-base", f"Ollama at {url}")
        ]


@pytest.mark.parametrize("said", ["192.0.2.7:PORT", "https://127.0.0.1:PORT", "ollama.example", "127.0.0.1:x", ""])
async def test_an_ollama_of_another_machine_is_not_looked_for(
    editor: Editor, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    with served(ollama(Play())) as url:
        monkeypatch.setattr(running, "USUAL_PORTS", ())
        monkeypatch.setenv("OLLAMA_HOST", said.replace("PORT", url.rpartition(":")[2]))
        await editor.initialize()
        assert [each["label"] for each in await listed(editor)] == ["nano"]


async def test_a_server_that_still_loads_is_in_the_list_and_may_be_chosen(editor: Editor, servers: Servers) -> None:
    servers.play.failing["/props"] = 503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable"}}
    await editor.initialize()
    loading = (await listed(editor))[1]
    assert loading["label"] == "the model of llama.cpp"
    assert loading["detail"] == f"llama.cpp at {servers.llama}, still loading"
    moving = editor.start(
        "workspace/executeCommand", {"command": "calomel.useModel", "arguments": [loading["settings"]]}
    )
    assert await editor.alive()
    servers.play.failing.clear()
    assert (await editor.answer(moving))["result"]["model"] == "Qwen2.5-Coder-1.5B-Q8_0"


async def test_another_program_out_of_service_is_no_model_server(editor: Editor, servers: Servers) -> None:
    servers.play.failing["/props"] = 503, {"error": "down for maintenance"}
    await editor.initialize()
    assert f"llama.cpp at {servers.llama}" not in {each["detail"] for each in await listed(editor)}


async def test_a_model_that_is_chosen_answers_and_says_through_what(editor: Editor, servers: Servers) -> None:
    await editor.begin()
    assert (await editor.state("ready"))["message"] == "scripted is ready. It runs on this machine's CPU."
    wanted = (await listed(editor))[1]
    answer = await editor.command("calomel.useModel", wanted["settings"])
    said = f"Qwen2.5-Coder-1.5B-Q8_0 is ready. It answers through llama.cpp at {servers.llama}."
    assert (answer["model"], answer["message"]) == ("Qwen2.5-Coder-1.5B-Q8_0", said)
    # All that an editor has to write, so that nothing of another choice stays.
    assert answer["settings"] == dict.fromkeys(CHOICE) | {"upstream": servers.llama}
    assert (await editor.state("ready"))["message"] == said
    (item,) = (await editor.inline(1, 4))["items"]
    assert item["insertText"].endswith("return a - b")
    assert [each["label"] for each in await listed(editor) if each["current"]] == [wanted["label"]]
    assert (await editor.command("calomel.useModel", NANO))["model"] == "scripted"


async def test_the_old_model_answers_until_the_new_one_does(editor: Editor, servers: Servers) -> None:
    loading = Script()
    loading.loading, loading.fill = asyncio.Event(), "return b"

    async def connect(settings: BackendSettings) -> Completer:
        return editor.script if settings.upstream is None else loading

    editor.script.connect = connect
    await ready(editor)
    moving = editor.start("workspace/executeCommand", {"command": "calomel.useModel", "arguments": [{"upstream": "x"}]})
    (item,) = (await editor.inline(1, 4))["items"]
    assert item["insertText"].endswith("return a + b")
    assert not editor.shown("calomel/status")
    loading.loading.set()
    assert (await editor.answer(moving))["result"]["model"] == "scripted"
    assert editor.script.closed == 1
    editor.change(2, {"text": ADD + "\n"})
    (item,) = (await editor.inline(1, 4))["items"]
    assert item["insertText"].endswith("return b")


async def test_a_question_while_the_old_model_is_left_goes_to_the_new_one(editor: Editor) -> None:
    class Slow(Script):
        left, leave = asyncio.Event(), asyncio.Event()

        async def aclose(self) -> None:
            self.left.set()
            await self.leave.wait()

    old, new, connected = Slow(), Script(), list[str | None]()
    new.fill = "return b"

    async def connect(settings: BackendSettings) -> Completer:
        connected.append(settings.upstream)
        return old if settings.upstream is None else new

    editor.script.connect = connect
    await ready(editor)
    moving = editor.start("workspace/executeCommand", {"command": "calomel.useModel", "arguments": [{"upstream": "x"}]})
    await old.left.wait()
    asking = editor.start("textDocument/inlineCompletion", inline_params(1, 4))
    assert await editor.alive()
    old.leave.set()
    assert (await editor.answer(moving))["result"]["model"] == "scripted"
    (item,) = (await editor.answer(asking))["result"]["items"]
    assert item["insertText"].endswith("return b")
    assert connected == [None, "x"]


async def test_a_model_that_is_chosen_while_another_loads_ends_its_progress(editor: Editor) -> None:
    editor.script.loading = asyncio.Event()

    async def connect(settings: BackendSettings) -> Completer:
        return editor.script if settings.upstream is None else Script()

    editor.script.connect = connect
    await editor.initialize({"window": {"workDoneProgress": True}})
    assert (await editor.notice("$/progress"))["value"]["kind"] == "begin"
    assert (await editor.command("calomel.useModel", {"upstream": "x"}))["model"] == "scripted"
    ended = (await editor.notice("$/progress"))["value"]
    assert (ended["kind"], ended["message"]) == ("end", "scripted is ready")


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        ({"upstream": "http://127.0.0.1:9"}, "no server answers at http://127.0.0.1:9: start it, or correct upstream"),
        ({"upstream": "SEVERAL"}, "the server at SEVERAL has several models: set upstream_model to one of them"),
        ({"upstream": "SEVERAL", "upstream_model": "yours"}, "the server at SEVERAL has no yours: it has qwen2.5"),
    ],
)
async def test_one_that_does_not_answer_is_told_with_its_reason_and_the_old_one_stays(
    editor: Editor, servers: Servers, choice: dict[str, str], why: str
) -> None:
    def named(text: str) -> str:
        return text.replace("SEVERAL", servers.several)

    await ready(editor)
    answer = await editor.command("calomel.useModel", {name: named(value) for name, value in choice.items()})
    assert answer["model"] is None
    assert answer["message"].startswith(f"scripted stays in use: {named(why)}")
    assert [each["label"] for each in await listed(editor) if each["current"]] == ["nano"]
    assert (await editor.inline(1, 4))["items"]
    assert not editor.shown("calomel/status")


async def test_an_address_that_answers_otherwise_is_told_and_the_old_model_stays(editor: Editor) -> None:
    with served(Starlette()) as url:
        await ready(editor)
        address = url.removeprefix("http://")
        answer = await editor.command("calomel.useModel", {"upstream": address})
        assert answer["message"].startswith(f"scripted stays in use: the server at {url} speaks no known API: ")
    assert (await editor.inline(1, 4))["items"]
    assert not editor.shown("calomel/status")


async def test_an_address_may_come_without_its_scheme(editor: Editor, servers: Servers) -> None:
    await ready(editor)
    answer = await editor.command("calomel.useModel", {"upstream": servers.llama.removeprefix("http://")})
    assert answer["settings"]["upstream"] == servers.llama
    assert (await editor.state("ready"))["message"].endswith(f"llama.cpp at {servers.llama}.")


async def test_an_address_where_nobody_listens_is_refused_before_anything_is_asked_there(editor: Editor) -> None:
    there = Script()

    async def connect(settings: BackendSettings) -> Completer:
        there.address = settings.upstream
        return editor.script if settings.upstream is None else there

    editor.script.connect = connect
    await ready(editor)
    answer = await editor.command("calomel.useModel", {"upstream": "localhost:9"})
    assert (answer["model"], there.address, there.requests, there.closed) == (None, "http://localhost:9", [], 1)
    assert "no server answers at http://localhost:9: start it, or correct upstream" in answer["message"]


async def test_the_choice_holds_until_the_settings_name_another_model(editor: Editor, servers: Servers) -> None:
    await ready(editor)
    model = (await editor.command("calomel.useModel", {"upstream": servers.llama}))["model"]
    await editor.state("ready")

    async def pushed(**settings: Any) -> None:
        editor.notify("workspace/didChangeConfiguration", {"settings": {"calomel": settings}})
        assert await editor.alive()

    # Other settings, and those that the editor writes of the choice.
    for settings in ({"suggest": {"max_tokens": 32}}, {"backend": {"upstream": servers.llama}}):
        await pushed(**settings)
        assert (await editor.command("calomel.status"))["model"] == model
    assert not editor.shown("calomel/status")
    await pushed(backend={"model": "nano"})
    assert (await editor.state("ready"))["message"].startswith("scripted is ready.")


async def test_of_two_choices_the_last_one_counts(editor: Editor, servers: Servers) -> None:
    slow = Script()
    slow.loading, connected = asyncio.Event(), asyncio.Event()
    usual = editor.script.connect
    assert usual is not None

    async def connect(settings: BackendSettings) -> Completer:
        if settings.upstream != servers.several:
            return await usual(settings)
        connected.set()
        return slow

    editor.script.connect = connect
    await editor.initialize()
    arguments = [{"upstream": servers.several}]
    first = editor.start("workspace/executeCommand", {"command": "calomel.useModel", "arguments": arguments})
    await connected.wait()
    assert (await editor.command("calomel.useModel", {"upstream": servers.llama}))["model"] is not None
    answer = await editor.answer(first)
    assert answer["result"] == {"model": None, "message": "You chose another model in the meantime."}
    assert slow.closed == 1


@pytest.mark.parametrize(
    "argument", [None, {"upstream_fim": "gwen"}, {"device": "cuda"}, {"upstream": 5}, {"idle_minutes": 1}]
)
async def test_what_is_no_choice_is_refused(editor: Editor, argument: Any) -> None:
    await editor.initialize()
    params = {"command": "calomel.useModel", "arguments": [argument]}
    assert await editor.error("workspace/executeCommand", params) == -32602


async def test_the_choice_of_the_command_line_is_followed(editor: Editor, servers: Servers, tmp_path: Path) -> None:
    (tmp_path / "xdg_config_home" / "calomel").mkdir(parents=True)
    await ready(editor)
    before = (await editor.command("calomel.status"))["model"]
    with pytest.raises(SystemExit) as left:
        await asyncio.to_thread(main, ["models", "use", "--upstream", servers.llama])
    assert not left.value.code
    async with asyncio.timeout(10):
        while (await editor.command("calomel.status"))["model"] in {before, None}:  # noqa: ASYNC110 (nothing is sent)
            await asyncio.sleep(0.05)
    await editor.state("ready")
    assert (await editor.command("calomel.status"))["model"] == "Qwen2.5-Coder-1.5B-Q8_0"
