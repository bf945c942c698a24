"""llama.cpp inside: one process with a GGUF model for all windows, which ends when nobody needs it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.lsp.editor import ADD
from tests.lsp.program import REAL, Program
from tests.server._llama_cpp import SPECIAL, write_model

from calomel.infer import launch, outage, runtime_file
from calomel.infer.client import ModelClient
from calomel.infer.completer import CompleteRequest, CompleterError
from calomel.infer.launch import connect
from calomel.infer.runtime_file import ServerRecord
from calomel.prompts.parts import PromptParts
from calomel.workspace.settings import BackendSettings

pytest.importorskip("xllamacpp")
pytestmark = [pytest.mark.e2e, pytest.mark.slow]

QUESTION = CompleteRequest("fill", PromptParts(path="a.py", prefix="x = ", suffix="\n"), max_tokens=8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, short in (("XDG_RUNTIME_DIR", "r"), ("XDG_STATE_HOME", "s"), ("XDG_CACHE_HOME", "c")):
        (tmp_path / short).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(tmp_path / short))
    yield tmp_path
    for record in records():
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)


@pytest.fixture
def model(folder: Path) -> Path:
    write_model(folder / "tiny.gguf", SPECIAL, "sum")
    return folder / "tiny.gguf"


def records() -> list[ServerRecord]:
    found = [runtime_file.read(path) for path in runtime_file.runtime_folder().glob("llama-*.json")]
    return [record for record in found if record is not None]


def ended(record: ServerRecord) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(record.pid).wait(30)


def settings(model: Path, idle_minutes: float = 2.0) -> BackendSettings:
    return BackendSettings(model=model, idle_minutes=idle_minutes)


async def asked(client: ModelClient) -> str:
    await client.ready()
    return (await client.complete(QUESTION)).candidates[0].text


def damage(file: Path, kind: str) -> None:
    data = file.read_bytes()
    file.write_bytes(data[:2000] if kind == "cut" else data[:8] + b"\xff" * 16 + data[24:])


async def test_windows_that_open_at_once_share_one_process(model: Path) -> None:
    windows = [ModelClient(connect, settings(model)) for _ in range(3)]
    assert await asyncio.gather(*map(asked, windows)) == ["sum"] * 3
    (record,) = records()
    assert {child.pid for child in psutil.Process().children()} >= {record.pid}
    assert windows[0].message == "tiny is ready. It answers through llama.cpp on this machine."
    assert os.stat(record.url.removeprefix("unix:")).st_mode & 0o077 == 0  # noqa: PTH116
    assert not psutil.Process(record.pid).net_connections("tcp")
    for window in windows:
        await window.aclose()


async def test_a_process_that_is_killed_is_replaced_and_the_window_goes_on(model: Path) -> None:
    window = ModelClient(connect, settings(model))
    assert await asked(window) == "sum"
    (first,) = records()
    os.kill(first.pid, signal.SIGKILL)
    await asyncio.to_thread(ended, first)
    assert await asked(window) == "sum"
    (second,) = records()
    assert second.pid != first.pid
    await window.aclose()


async def test_a_process_that_is_killed_under_a_question_is_replaced_and_the_question_is_answered(model: Path) -> None:
    window = ModelClient(connect, settings(model))
    assert await asked(window) == "sum"
    (first,) = records()
    os.kill(first.pid, signal.SIGSTOP)
    asking = asyncio.create_task(asked(window))
    await asyncio.sleep(0.5)
    assert not asking.done()
    os.kill(first.pid, signal.SIGKILL)
    assert await asking == "sum"
    assert records()[0].pid != first.pid
    await window.aclose()


async def test_a_process_that_hangs_is_ended_and_replaced(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(outage, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(launch, "_HUNG_SECONDS", 1.0)
    window = ModelClient(connect, settings(model))
    assert await asked(window) == "sum"
    (first,) = records()
    os.kill(first.pid, signal.SIGSTOP)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(window.complete(QUESTION), 0.3)
    await asyncio.to_thread(ended, first)
    assert await asked(window) == "sum"
    await window.aclose()


async def test_it_ends_while_a_window_asks_nothing_and_is_started_again_by_a_question(model: Path) -> None:
    window = ModelClient(connect, settings(model, idle_minutes=0.1))
    assert await asked(window) == "sum"
    (first,) = records()
    await asyncio.to_thread(ended, first)
    assert records() == []
    assert await asked(window) == "sum"
    assert records()[0].pid != first.pid
    await window.aclose()


def test_it_ends_when_every_window_was_killed(model: Path, folder: Path) -> None:
    (folder / "editor").mkdir()
    with Program(folder / "editor", REAL) as editor:
        editor.initialize(backend={"model": str(model), "idle_minutes": 0.1})
        until = time.monotonic() + 60
        while (
            editor.ask("workspace/executeCommand", {"command": "calomel.status", "arguments": []})["state"] != "ready"
        ):
            assert time.monotonic() < until
            time.sleep(0.1)
        (path,) = (folder / "editor" / "runtime").rglob("llama-*.json")
        record = runtime_file.read(path)
        assert record is not None
        editor.process.kill()
        ended(record)
        assert list(path.parent.glob("llama-*.[js]*")) == []


async def test_it_stays_while_somebody_asks(model: Path) -> None:
    window = ModelClient(connect, settings(model, idle_minutes=0.1))
    for _ in range(10):
        assert await asked(window) == "sum"
        await asyncio.sleep(1)
    assert records()[0].alive()
    await window.aclose()


@pytest.mark.parametrize("kind", ["cut", "counts"])
async def test_a_damaged_file_is_an_error_that_names_it(model: Path, kind: str) -> None:
    damage(model, kind)
    window = ModelClient(connect, settings(model))
    with pytest.raises(CompleterError) as caught:
        await asked(window)
    assert str(model) in str(caught.value)
    assert records() == []
    await window.aclose()


def test_text_reaches_it_as_it_is(model: Path, folder: Path) -> None:
    """It is a process of the user's own, so that nothing has to be hidden from it; its log has no text."""
    (folder / "editor").mkdir()
    with Program(folder / "editor", REAL) as editor:
        editor.initialize(backend={"model": str(model)})
        editor.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": "file:///w/a.py", "languageId": "python", "version": 1, "text": ADD}},
        )
        until, found = time.monotonic() + 60, None
        while not found and time.monotonic() < until:
            place = {"textDocument": {"uri": "file:///w/a.py"}, "position": {"line": 1, "character": 4}}
            found = editor.ask("textDocument/inlineCompletion", place | {"context": {"triggerKind": 1}})
            time.sleep(0.1)
        assert found
        for path in (folder / "editor").rglob("*.log"):
            assert "def add" not in path.read_text()
        for path in (folder / "editor").rglob("llama-*.json"):
            os.kill(runtime_file.read(path).pid, signal.SIGTERM)  # type: ignore[union-attr]
