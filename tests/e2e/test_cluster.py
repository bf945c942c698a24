"""The server on Ray Serve, as `serve run` starts it: the same answers, the same tokens."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray Serve is not installed"),
]
# Ray's processes and the replicas start next to whatever else the machine does.
START_SECONDS = 300.0
SESSIONS = ("one", "two", "three", "four")
URL = "http://127.0.0.1:8000"
TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    log = tmp_path_factory.mktemp("ray") / "log.txt"
    command = [sys.executable, "-m", "ray.serve.scripts", "run", "calomel.server.cluster:app", "replicas=2"]
    environ = {**os.environ, "CALOMEL_TOKEN": TOKEN, "CALOMEL_CACHE_TOKENS": "32768"}
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=environ) as process:
        try:
            with httpx.Client(base_url=URL, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
                _wait(client, process, log)
                yield client
        finally:
            process.terminate()
            process.wait(60)


def _wait(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    ready: set[str] = set()
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()[-2000:]
        for session in SESSIONS:
            with contextlib.suppress(httpx.TransportError):
                if client.get("/health", headers={"x-session-id": session}).status_code == httpx.codes.OK:
                    ready.add(session)
        if ready == set(SESSIONS):
            return
        time.sleep(1)
    pytest.fail(f"no replica is ready: {log.read_text()[-2000:]}")


def test_every_session_gets_the_same_answer(client: httpx.Client) -> None:
    body = {"prompt": "def add(a, b):\n    return a ", "suffix": "\n", "max_tokens": 16}
    answers = [
        client.post("/v1/completions", json=body, headers={"x-session-id": session}).raise_for_status().json()
        for session in SESSIONS
    ]
    assert len({answer["choices"][0]["text"] for answer in answers}) == 1


def test_a_stream_arrives_as_events(client: httpx.Client) -> None:
    body = {"prompt": "def add(a, b):\n    return a ", "suffix": "\n", "max_tokens": 16, "stream": True}
    headers = {"x-session-id": SESSIONS[0]}
    with client.stream("POST", "/v1/completions", json=body, headers=headers) as response:
        assert [line for line in response.iter_lines() if line][-1] == "data: [DONE]"


@pytest.mark.usefixtures("client")
def test_nobody_is_answered_without_the_token() -> None:
    assert httpx.post(f"{URL}/v1/completions", json={"prompt": "x"}).status_code == httpx.codes.UNAUTHORIZED
