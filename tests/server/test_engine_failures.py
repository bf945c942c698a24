"""An engine that dies."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import FakeFiller

URL = "/v1/fim/completions"
ASK = {"model": "m", "prompt": "x"}


class EngineDiedError(Exception):
    code = "engine_stopped"


@pytest.fixture
def failing() -> FakeFiller:
    filler = FakeFiller()
    filler.error = EngineDiedError("the user's text")
    return filler


@pytest.mark.parametrize("stream", [False, True])
def test_after_the_engine_died_clients_are_told_until_the_server_has_ended(
    open_client: Callable[..., TestClient], failing: FakeFiller, *, stream: bool
) -> None:
    client = open_client(factory=lambda: failing)
    failed, later = (client.post(URL, json={**ASK, "stream": stream}) for _ in range(2))

    assert (failed.status_code, failed.json()["error"]["code"]) == (503, "engine_stopped")
    assert failed.headers["retry-after"] == "2"
    assert "text" not in failed.text
    assert (later.status_code, later.json()["error"]["code"]) == (503, "model_failed")
    assert client.get("/health").json()["status"] == "failed"


def test_a_stream_that_the_engine_leaves_is_ended_with_the_error(
    open_client: Callable[..., TestClient], failing: FakeFiller
) -> None:
    failing.error_after = 1
    broken = open_client(factory=lambda: failing).post(URL, json={**ASK, "stream": True})

    assert '"code":"engine_stopped"' in broken.text
    assert "[DONE]" not in broken.text
