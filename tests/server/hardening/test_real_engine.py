"""The shipped weights behind the door: an engine that really dies, a model that is really closed and opened again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient
from tests.server.conftest import TOKEN, until

from calomel.server.app import create_app
from calomel.server.settings import ServerSettings
from calomel.suggest.filler import Filler
from calomel.suggest.in_process import open_filler
from calomel.weights import nano_path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (nano_path() / "model.safetensors").exists(), reason="no shipped weights"),
]
ASK = {"model": "m", "prompt": "def add(a, b):\n    return ", "suffix": "\n", "max_tokens": 8}
URL = "/v1/fim/completions"


def test_an_engine_that_dies_is_started_again_and_answers_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Filler] = []

    def factory() -> Filler:
        opened.append(open_filler())
        return opened[-1]

    app = create_app(ServerSettings(token=SecretStr(TOKEN)), factory)
    headers = {"authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        until(lambda: app.state.door.loader.state == "ready", 60)
        before = client.post(URL, json=ASK).json()

        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("def add(a, b)")

        engine: Any = opened[0].engine
        # What fails in a step beside all requests ends the engine; what one of them has caused ends that one alone.
        monkeypatch.setattr(type(engine.decoder), "step", fail)
        died = client.post(URL, json={**ASK, "prompt": "class Other:\n    "})
        monkeypatch.undo()
        after = client.post(URL, json=ASK).json()

    assert (died.status_code, died.json()["error"]["code"]) == (503, "engine_stopped")
    assert "add(a, b)" not in died.text
    assert after["choices"] == before["choices"]
    assert len(opened) == 2


def test_a_model_that_sleeps_gives_its_memory_back_and_wakes_for_the_next_request() -> None:
    app = create_app(ServerSettings(token=SecretStr(TOKEN), idle_unload=0.5 / 60), open_filler)
    headers = {"authorization": f"Bearer {TOKEN}"}
    long = {**ASK, "prompt": "x = 1\n" * 4000}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        until(lambda: app.state.door.loader.state == "ready", 60)
        sizes = []
        for _ in range(3):
            assert client.post(URL, json=long).status_code == 200
            used = _memory()
            until(lambda: app.state.door.loader.state == "unloaded", 60)
            until(lambda used=used: _memory() < used - 8 * 2**20, 20)  # type: ignore[misc]
            sizes.append(_memory())
        assert client.post(URL, json=ASK).status_code == 200
    # What PyTorch itself took at the first use stays; nothing more is added.
    assert sizes[2] - sizes[1] < 32 * 2**20


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
