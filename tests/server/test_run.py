from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

# `serve` with a model that is made of nothing, so that no test here waits for torch.
PROGRAM = """
import asyncio, json, sys, types

class Filler:
    async def afill(self, request):
        await asyncio.sleep(60)

def open_filler(model, device, threads):
    if model is not None:
        raise FileNotFoundError("no such checkpoint")
    return Filler()

class Any:
    def __init__(self, **fields): pass

sys.modules["calomel.suggest.fill"] = types.SimpleNamespace(open_filler=open_filler, FillRequest=Any)
sys.modules["calomel.engine"] = types.SimpleNamespace(SamplingParams=Any)
from calomel.server.errors import StartError
from calomel.server.run import serve
from calomel.server.settings import ServerSettings
try:
    serve(ServerSettings(**json.loads(sys.argv[1])))
except StartError as error:
    sys.exit(f"StartError: {error}")
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def runtime_file(tmp_path: Path) -> Path:
    return tmp_path / "run" / "server.json"


@pytest.fixture
def start(runtime_file: Path) -> Iterator[Start]:
    running: list[subprocess.Popen[str]] = []

    def start_(**settings: Any) -> subprocess.Popen[str]:
        own = {"port": 0, "runtime_file": str(runtime_file)}
        if not settings.keys() & {"no_auth", "token", "token_file"}:
            own["token_file"] = str(runtime_file.with_name("token"))
        arguments = json.dumps({**own, **settings})
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        running.append(process)
        return process

    yield start_
    for process in running:
        process.kill()
        process.communicate()


def first_lines(process: subprocess.Popen[str]) -> tuple[str, str]:
    assert process.stdout is not None
    return process.stdout.readline(), process.stdout.readline()


def healthy(url: str) -> None:
    end = time.monotonic() + 20
    while httpx.get(f"{url}/health").status_code != 200:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_server_says_where_its_token_is_serves_and_cleans_up(
    start: Start, runtime_file: Path, end: signal.Signals
) -> None:
    process = start()
    address, token_line = first_lines(process)
    left = json.loads(runtime_file.read_text())

    assert address == f"Calomel listens on {left['url']}\n"
    # What is no terminal may be kept in a log.
    assert token_line == f"Token: in {runtime_file.with_name('token')}\n"
    assert runtime_file.with_name("token").read_text().strip() == left["token"]
    assert oct(runtime_file.with_name("token").stat().st_mode & 0o777) == "0o600"
    assert len(left["token"]) >= 43
    assert left["pid"] == process.pid
    assert oct(runtime_file.stat().st_mode & 0o777) == "0o600"
    healthy(left["url"])
    assert httpx.get(f"{left['url']}/v1/models").status_code == 401
    answer = httpx.get(f"{left['url']}/v1/models", headers={"authorization": f"Bearer {left['token']}"})
    assert answer.status_code == 200
    assert "server" not in answer.headers

    process.send_signal(end)
    rest, errors = process.communicate(timeout=20)
    assert left["token"] not in address + token_line + rest + errors
    assert "Traceback" not in errors or end == signal.SIGINT
    assert not runtime_file.exists()


def test_the_next_start_takes_the_same_token(start: Start, runtime_file: Path) -> None:
    tokens = []
    for _ in range(2):
        process = start()
        first_lines(process)
        tokens.append(json.loads(runtime_file.read_text())["token"])
        process.terminate()
        process.communicate(timeout=20)
    assert tokens[0] == tokens[1]


def test_a_given_token_is_not_printed(start: Start) -> None:
    process = start(token="given-token")
    assert all("given-token" not in line for line in first_lines(process))


def test_a_header_of_200_kilobytes_is_not_taken(start: Start) -> None:
    url = first_lines(start(no_auth=True))[0].split()[-1]
    try:
        status = httpx.get(f"{url}/health", headers={"x-filler": "x" * 200_000}).status_code
    except httpx.TransportError:  # refused before it was sent to its end
        status = 400
    assert status == 400


def test_a_model_that_cannot_be_loaded_ends_the_server_with_the_reason(start: Start, runtime_file: Path) -> None:
    _, errors = (process := start(model="/nowhere")).communicate(timeout=20)

    assert process.returncode == 1
    assert "StartError: the model could not be loaded: no such checkpoint" in errors
    assert not runtime_file.exists()


def test_a_taken_port_is_named(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        _, errors = (process := start(port=port)).communicate(timeout=20)
    assert process.returncode == 1
    assert f"StartError: cannot listen on 127.0.0.1 port {port}" in errors
    assert "Choose another port" in errors


def test_a_running_request_does_not_keep_a_stopped_server_alive(start: Start) -> None:
    process = start(no_auth=True, shutdown_seconds=0)
    url = first_lines(process)[0].split()[-1]
    healthy(url)
    host, port = url.removeprefix("http://").split(":")
    body = b'{"model":"m","prompt":"x"}'
    with socket.create_connection((host, int(port))) as client:
        client.sendall(
            b"POST /v1/fim/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(body), body)
        )
        time.sleep(0.2)
        process.terminate()
        process.communicate(timeout=20)


def test_importing_the_server_does_not_import_torch() -> None:
    code = "import sys, calomel.server.run; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 0


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head() -> None:
    from calomel.server.run import listen

    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()) as client:
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            client.close()
