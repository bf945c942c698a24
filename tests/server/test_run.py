"""`calomel serve` as a process of its own, with a model made of nothing: how it starts, what it says, how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from tests.server.conftest import until

from calomel import storage
from calomel.infer.completer import CompleterError
from calomel.infer.launch import connect
from calomel.infer.runtime_file import ServerRecord, published, read
from calomel.server import tokens
from calomel.storage import write_whole
from calomel.workspace.settings import BackendSettings as EditorSettings

ASK = {"model": "m", "prompt": "x"}


PROGRAM = """
import asyncio, json, sys, time, types
SECONDS, LOADING = map(float, sys.argv[2:])

from calomel.engine import EngineStoppedError
from calomel.infer.completer import Occupancy

class Filler:
    generation = types.SimpleNamespace(policy="any")
    reads_ahead = False
    note = None

    def fill(self, request):
        pass

    def for_client(self, client):
        return self

    def occupancy(self):
        return Occupancy()

    def close(self):
        pass

    async def afill(self, request):
        if request.max_tokens == 13:
            raise EngineStoppedError
        await asyncio.sleep(SECONDS)
        return types.SimpleNamespace(text="done", finish_reason="stop", prompt_tokens=1, completion_tokens=1,
                                     cached_tokens=0, steps=1, forwards=1, seconds=0.1, confidence=1.0,
                                     trimmed=False, estimated=False,
                                     result=types.SimpleNamespace(prefill_seconds=0.0, denoise_seconds=0.1))

    async def stream(self, request):
        yield "do"
        yield await self.afill(request)

def open_folder(folder, options):
    if folder.name != "nano":
        raise FileNotFoundError("no such checkpoint")
    time.sleep(LOADING)
    return Filler()

class Any:
    def __init__(self, **fields): pass

import calomel.infer.in_process
calomel.infer.in_process.open_folder = open_folder
sys.modules["calomel.families.family"] = types.SimpleNamespace(OpenOptions=Any)
from calomel.server.errors import StartError
from calomel.server.run import serve
from calomel.server.settings import load
try:
    serve(load(json.loads(sys.argv[1]), use_config=False).settings)
except StartError as error:
    sys.exit(f"StartError: {error}")
"""


OFFLINE_PROGRAM = """
import asyncio, os, socket
from calomel.server.run import OfflineError, refuse_connections, turn_off_libraries
turn_off_libraries()
refuse_connections()
with socket.create_server(("127.0.0.1", 0)) as listener:
    port = listener.getsockname()[1]
    socket.create_connection(("127.0.0.1", port)).close()
    socket.create_connection(("localhost", port)).close()
attempts = {
    "connect": lambda: socket.create_connection(("192.0.2.1", 80), timeout=1),
    "connect6": lambda: socket.create_connection(("2001:db8::1", 80), timeout=1),
    "connect_ex": lambda: socket.socket().connect_ex(("192.0.2.1", 80)),
    "name": lambda: socket.getaddrinfo("example.com", 80),
    "old name": lambda: socket.gethostbyname("example.com"),
    "datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)),
    "loop": lambda: asyncio.run(asyncio.open_connection("192.0.2.1", 80)),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except OfflineError:
        continue
    raise SystemExit(f"{name} reached out")
assert os.environ["HF_HUB_OFFLINE"] == "1"
"""


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def runtime_file(tmp_path: Path) -> Path:
    return tmp_path / "run" / "server.json"


@pytest.fixture
def start(runtime_file: Path) -> Iterator[Start]:
    running: list[subprocess.Popen[str]] = []

    def start_(
        *, seconds: float = 60, loading: float = 0, stderr: int = subprocess.PIPE, **settings: Any
    ) -> subprocess.Popen[str]:
        own = {"port": 0, "runtime_file": str(runtime_file)}
        if not settings.keys() & {"no_auth", "token", "token_file"}:
            own["token_file"] = str(runtime_file.with_name("token"))
        arguments = json.dumps({**own, **settings})
        command = [sys.executable, "-c", PROGRAM, arguments, str(seconds), str(loading)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
        running.append(process)
        return process

    yield start_
    for process in running:
        process.kill()
        process.communicate()


def first_lines(process: subprocess.Popen[str]) -> tuple[str, str]:
    assert process.stdout is not None
    return process.stdout.readline(), process.stdout.readline()


def healthy(process: subprocess.Popen[str]) -> str:
    """The address of a server, once its model is there."""
    url = first_lines(process)[0].split()[-1]
    until(lambda: httpx.get(f"{url}/health").status_code == 200, 20)
    return url


# `serve` with a model that is made of nothing, so that no test here waits for torch.


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
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
    until(lambda: httpx.get(f"{left['url']}/health").status_code == 200, 20)
    assert httpx.get(f"{left['url']}/v1/models").status_code == 401
    answer = httpx.get(f"{left['url']}/v1/models", headers={"authorization": f"Bearer {left['token']}"})
    assert answer.status_code == 200
    assert "server" not in answer.headers

    process.send_signal(end)
    rest, errors = process.communicate(timeout=20)
    assert left["token"] not in address + token_line + rest + errors
    assert "Traceback" not in errors or end == signal.SIGINT
    assert not runtime_file.exists()
    assert end == signal.SIGINT or process.returncode == 0


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_server_that_still_loads_its_model_ends_at_once(
    start: Start, runtime_file: Path, end: signal.Signals
) -> None:
    """A large checkpoint loads for minutes: whoever starts programs kills those that end ten seconds later."""
    process = start(loading=60)
    url = first_lines(process)[0].split()[-1]
    assert httpx.get(f"{url}/health").json()["status"] == "loading"
    process.send_signal(end)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == (130 if end == signal.SIGINT else 0)
    assert "Traceback" not in errors
    assert list(runtime_file.parent.iterdir()) == [runtime_file.with_name("token")]


def test_a_server_that_has_just_said_where_it_is_ends_in_order(start: Start, runtime_file: Path) -> None:
    process = start(loading=60)
    while not runtime_file.exists():
        time.sleep(0.001)
    process.terminate()
    _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")
    assert list(runtime_file.parent.iterdir()) == [runtime_file.with_name("token")]


def test_a_given_token_is_not_printed(start: Start) -> None:
    process = start(token="given-token")
    assert all("given-token" not in line for line in first_lines(process))


def test_a_model_that_cannot_be_loaded_ends_the_server_with_the_reason(start: Start, runtime_file: Path) -> None:
    _, errors = (process := start(model="/nowhere")).communicate(timeout=20)

    assert process.returncode == 1
    assert "StartError: the model did not load: no such checkpoint" in errors
    assert not runtime_file.exists()


def test_a_server_whose_engine_dies_ends_so_that_it_is_started_again(start: Start, runtime_file: Path) -> None:
    process = start(no_auth=True)
    url = healthy(process)
    died = httpx.post(f"{url}/v1/fim/completions", json={**ASK, "max_tokens": 13})
    assert (died.status_code, died.json()["error"]["code"]) == (503, "engine_stopped")
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "StartError: the model's engine has failed" in errors
    assert not runtime_file.exists()


@pytest.mark.slow
def test_a_server_that_is_told_to_stop_finishes_what_it_has_begun(start: Start) -> None:
    process = start(seconds=1.5, no_auth=True, shutdown_seconds=20)
    url = healthy(process)
    with httpx.Client(base_url=url, timeout=20) as client, ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.post, "/v1/fim/completions", json=ASK)
        time.sleep(0.4)
        process.terminate()
        time.sleep(0.3)
        health = client.get("/health")
        refused = client.post("/v1/fim/completions", json=ASK)
        finished = running.result(20)
    began = time.monotonic()
    process.communicate(timeout=20)

    assert (health.status_code, health.json()["status"]) == (503, "draining")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "server_draining")
    assert refused.headers["retry-after"] == "5"
    assert (finished.status_code, finished.json()["choices"][0]["text"]) == (200, "done")
    assert time.monotonic() - began < 5


def test_what_does_not_end_in_time_is_told_so(start: Start) -> None:
    process = start(no_auth=True, shutdown_seconds=0)
    url = healthy(process)
    bodies = ("/v1/fim/completions", ASK), ("/v1/fim/completions", {**ASK, "stream": True}), ("/api/generate", ASK)
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(httpx.post, url + path, json=body, timeout=20) for path, body in bodies]
        until(lambda: httpx.get(f"{url}/calomel/v1/status").json()["queue"]["running"] == len(bodies), 20)
        process.terminate()
        process.communicate(timeout=20)
        plain, stream, lines = (each.result(20) for each in running)

    assert (plain.status_code, plain.json()["error"]["code"]) == (503, "server_draining")
    assert plain.headers["retry-after"] == "5"
    assert stream.status_code == 200
    first, last = stream.text.strip().split("\n\n")
    assert json.loads(first.removeprefix("data: "))["choices"][0]["text"] == "do"
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "server_draining"
    assert json.loads(lines.text.splitlines()[-1])["error"] == json.loads(last.removeprefix("data: "))["error"]


def test_a_second_server_on_the_same_port_leaves_the_first_alone(start: Start, runtime_file: Path) -> None:
    url = healthy(start(no_auth=True))
    _, errors = (second := start(no_auth=True, port=int(url.rpartition(":")[2]))).communicate(timeout=20)

    assert second.returncode == 1
    assert "StartError: cannot listen on 127.0.0.1 port" in errors
    assert "another program does; stop it, or choose another port" in errors
    assert json.loads(runtime_file.read_text())["url"] == url
    assert httpx.get(f"{url}/health").status_code == 200


@pytest.mark.slow
def test_one_port_is_open_and_nobody_is_called(start: Start) -> None:
    process = start(no_auth=True, seconds=0, offline=True)
    url = healthy(process)
    assert httpx.post(f"{url}/v1/fim/completions", json=ASK).status_code == 200

    sockets = psutil.Process(process.pid).net_connections("inet")
    listening = [each.laddr for each in sockets if each.status == psutil.CONN_LISTEN]
    assert listening == [("127.0.0.1", int(url.rpartition(":")[2]))]
    assert {end.ip for each in sockets for end in (each.laddr, each.raddr) if end} == {"127.0.0.1"}


@pytest.mark.slow
def test_a_server_with_a_certificate_speaks_https_alone_to_clients_that_trust_it(
    start: Start, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate
    url = first_lines(start(no_auth=True, tls_cert=str(cert), tls_key=str(key)))[0].split()[-1]
    trusting = ssl.create_default_context(cafile=str(cert))

    assert url.startswith("https://127.0.0.1:")
    with httpx.Client(base_url=url, verify=trusting, trust_env=False) as client:
        until(lambda: client.get("/health").status_code == 200)
    with pytest.raises(httpx.HTTPError):
        httpx.get(url.replace("https", "http") + "/health")

    async def editor() -> str:
        completer = await connect(EditorSettings(url=url))
        async with aclosing(completer):
            return (await completer.info()).id

    with pytest.raises(CompleterError, match=rf"{url} has no trusted certificate .*: set SSL_CERT_FILE"):
        asyncio.run(editor())
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    assert asyncio.run(editor()) == "calomel-nano"


@pytest.mark.slow
def test_a_token_that_others_could_guess_is_refused(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"ann {'a' * 40}\nbob 123456789012345\n")
    path.chmod(0o600)
    _, errors = start(host="0.0.0.0", allow_remote=True, token_file=str(path)).communicate(timeout=20)
    assert f"StartError: {path}: a host that other machines can reach needs tokens of at least 16" in errors


@pytest.mark.slow
def test_a_certificate_that_cannot_be_used_is_named(
    start: Start, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = certificate
    (tmp_path / "bad.pem").write_text("no certificate")
    for tls_cert, tls_key, message in (
        (cert, tmp_path / "nothing.pem", "tls-key: cannot read .*nothing.pem"),
        (tmp_path / "bad.pem", key, "bad.pem .*do not match, are damaged"),
    ):
        _, errors = start(no_auth=True, tls_cert=str(tls_cert), tls_key=str(tls_key)).communicate(timeout=20)
        assert re.search("StartError: .*" + message, errors)


@pytest.mark.slow
def test_of_several_people_each_has_a_token_and_so_have_the_users_editors(start: Start, runtime_file: Path) -> None:
    runtime_file.parent.mkdir(mode=0o700)
    people = runtime_file.with_name("people")
    people.write_text("ann a-token\nbob b-token\n")
    people.chmod(0o600)
    said = first_lines(start(token_file=str(people)))[1]
    left = json.loads(runtime_file.read_text())

    assert said == f"Tokens: 2 in {people}\n"
    assert left["token"] not in {"a-token", "b-token"}
    for token, status in (("a-token", 200), ("b-token", 200), (left["token"], 200), ("c-token", 401)):
        assert httpx.get(f"{left['url']}/v1/models", headers={"x-api-key": token}).status_code == status


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head() -> None:
    from calomel.server.run import listen

    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()) as client:
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            client.close()


def test_nothing_in_the_process_reaches_another_machine() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OFFLINE_PROGRAM], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


RECORD = ServerRecord("http://127.0.0.1:1", "secret", os.getpid(), 0, None, "w", "cpu", "1", 1)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without what POSIX alone has, as Windows is."""
    for name in (
        "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "fchmod", "getuid", "sched_getaffinity", "getloadavg", "nice",
        "pidfd_open",
    ):  # fmt: skip
        monkeypatch.delattr(os, name, raising=False)


def test_a_private_file_is_the_users_alone_and_no_link_is_followed_to_it(tmp_path: Path) -> None:
    os.close(storage.open_private(tmp_path / "mine", os.O_WRONLY | os.O_CREAT))
    (tmp_path / "link").symlink_to(tmp_path / "mine")

    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError, match="link"):
        storage.open_private(tmp_path / "link", os.O_RDONLY)
    os.close(storage.open_private(tmp_path / "link", os.O_RDONLY, links=True))


@pytest.mark.usefixtures("bare")
def test_files_and_figures_are_there_on_a_system_without_modes_and_owners(tmp_path: Path) -> None:
    write_whole(tmp_path / "kept", "text", mode=0o600)
    with published(tmp_path / "server.json", RECORD):
        assert read(tmp_path / "server.json") == RECORD
    found, made = tokens.read_or_make(tmp_path / "token")

    assert (tmp_path / "kept").read_text() == "text"
    assert not (tmp_path / "server.json").exists()
    assert made
    assert len(found.by_name) == 1
    assert storage.processors() >= 1
    assert storage.load_average() is None
    storage.behind_others(5)


HOLDS = """
import sys
from pathlib import Path
from calomel.storage import only_one
with only_one(Path(sys.argv[1])) as ours:
    print(ours, flush=True)
    sys.stdin.read()
"""


def test_a_lock_has_one_holder_and_goes_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with storage.only_one(path) as ours:
            assert not ours
        holder.kill()
    with storage.only_one(path, seconds=5.0) as ours:
        assert ours


def test_a_process_that_is_looked_for_is_not_ended_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    here = os.getpid()

    def kills(*_: object) -> None:
        raise AssertionError("os.kill ends a process there")

    monkeypatch.setattr(os, "kill", kills)
    assert storage.process_of(here, storage.start_of(here)) is not None
    assert storage.process_of(gone.pid) is None
    assert storage.process_of(here, storage.start_of(here) + 60) is None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, the system remembers the time of day")
@pytest.mark.parametrize("years", [-20, 20])
def test_a_clock_that_is_set_makes_no_process_another(monkeypatch: pytest.MonkeyPatch, years: int) -> None:
    here, boot = os.getpid(), psutil.boot_time()
    began = storage.start_of(here)
    later = boot + years * 365 * 86_400
    # What Linux says of the boot follows the clock.
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: later)
    monkeypatch.setattr("psutil._pslinux.BOOT_TIME", later, raising=False)
    assert storage.process_of(here, began) is not None
    assert storage.start_of(here) == began
