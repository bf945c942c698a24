"""A model that is not here yet is chosen in the editor: what is asked first, progress, and what can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.hub import Hub, hub_with
from tests.lsp.editor import SMALL, Editor

from calomel.families import recommended
from calomel.infer.upstream import running
from calomel.lsp import download

FILE = "small-Q8_0.gguf"
DATA = b"GGUF" + bytes(range(256)) * 96_000
ASKS = "window/showMessageRequest"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(running, "USUAL_PORTS", ())
    monkeypatch.setattr(recommended, "ROWS", (replace(recommended.ROWS[0], text=SMALL, edits=SMALL),))
    monkeypatch.setattr(download, "find_spec", lambda _: True)
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "CALOMEL_OFFLINE", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_DATA_HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    return tmp_path / "xdg_data_home" / "calomel" / "models"


@pytest.fixture
def hub(models: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_with({FILE: DATA}) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield server


async def ready(editor: Editor, answer: str | None = "Download") -> None:
    editor.answers[ASKS] = lambda _: answer and {"title": answer}
    await editor.initialize({"window": {"workDoneProgress": True}}, {"calomel": {"extensions": True}})
    await editor.state("ready")
    editor.messages.clear()


def choose(editor: Editor) -> int:
    return editor.start(
        "workspace/executeCommand", {"command": "calomel.useModel", "arguments": [{"fetch": SMALL.gguf}]}
    )


async def chosen(editor: Editor) -> dict[str, Any]:
    return dict((await editor.answer(choose(editor)))["result"])


async def test_it_is_offered_asked_about_fetched_with_progress_and_used(editor: Editor, hub: Hub, models: Path) -> None:
    await ready(editor)
    offered = (await editor.command("calomel.models"))["models"][-1]
    assert offered == {
        "label": "Small", "detail": "download, 0.5 GB, MIT; for completions", "settings": {"fetch": SMALL.gguf},
        "current": False,
    }  # fmt: skip
    answer = await chosen(editor)
    assert (answer["model"], answer["settings"]["model"]) == ("scripted", "me/small")
    (asked,) = editor.shown(ASKS)
    assert asked["message"].startswith(f"Download {FILE} from the Hugging Face hub (0.02 GB, licence mit)? ")
    assert asked["message"].endswith(" GB of disk are free.")
    told = editor.shown("$/progress")
    values = [each["value"] for each in told if each["token"] == told[-1]["token"]]
    assert (values[0]["kind"], values[0]["cancellable"], values[-1]["kind"]) == ("begin", True, "end")
    assert values[-2]["percentage"] == 100
    assert (models / "me--small" / FILE).read_bytes() == DATA
    assert "Small" not in {each["label"] for each in (await editor.command("calomel.models"))["models"]}


async def test_without_consent_nothing_is_fetched(editor: Editor, hub: Hub, models: Path) -> None:
    await ready(editor, None)
    answer = await chosen(editor)
    assert (answer["model"], answer["message"]) == (None, f"scripted stays in use: {FILE} was not downloaded.")
    assert hub.ranges == []
    assert not (models / "me--small").exists()


async def test_a_download_that_is_cancelled_ends_and_the_next_one_continues_it(
    editor: Editor, hub: Hub, models: Path
) -> None:
    await ready(editor)
    hub.breaks, hub.holds = 1, True
    number = choose(editor)
    seen = await editor.until(lambda message: message.get("params", {}).get("value", {}).get("percentage"))
    editor.notify("window/workDoneProgress/cancel", {"token": seen["params"]["token"]})
    said = (await editor.answer(number))["result"]["message"]
    assert said == f"scripted stays in use: the download of {FILE} was stopped; choose it again to continue."
    hub.holds = False
    assert (await chosen(editor))["model"] == "scripted"
    assert hub.ranges[-1] is not None
    assert (models / "me--small" / FILE).read_bytes() == DATA


@pytest.mark.parametrize("trouble", ["extra", "room", "net", "hash"])
async def test_why_it_cannot_be_fetched_is_told_with_what_to_do(
    editor: Editor, hub: Hub, models: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    wanted = {
        "extra": ("the extra llama, which runs me/small:Q8_0, is missing: run ", "calomel[llama]"),
        "room": (f"{FILE} has 1000000.00 GB, and ", f" GB are free in {models}."),
        "net": ("the hub does not answer (", "check the network, and your proxy in HTTPS_PROXY."),
        "hash": (f"{FILE} is not what the hub announced, and was deleted", "fetch it again."),
    }[trouble]
    if trouble == "extra":
        monkeypatch.setattr(download, "find_spec", lambda _: None)
    elif trouble == "room":
        hub.sizes[FILE] = 10**15
    elif trouble == "net":
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    else:
        hub.files[FILE] = DATA[:-1] + b"x"
    await ready(editor)
    answer = await chosen(editor)
    assert answer["model"] is None
    assert answer["message"].startswith(f"scripted stays in use: {wanted[0]}")
    assert wanted[1] in answer["message"]
    assert not (models / "me--small").exists()


@pytest.mark.parametrize("wanted", ["--help", "me/small", "me/small:", "me/../small:Q8_0", 5])
async def test_what_is_no_file_of_a_hub_is_refused(editor: Editor, models: Path, wanted: object) -> None:
    await editor.initialize()
    params = {"command": "calomel.useModel", "arguments": [{"fetch": wanted}]}
    assert await editor.error("workspace/executeCommand", params) == -32602
