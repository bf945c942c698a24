"""The engine server that editor windows share: started once, found again, replaced when it is gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import psutil
import pytest
from tests.editors.shared import no_server_stays
from tests.lsp.program import REAL, Program
from tests.server._upstreams import Play, llama_cpp, served

from calomel.infer import launch, outage, runtime_file
from calomel.infer.client import ModelClient
from calomel.infer.completer import CompleteRequest, CompleterError
from calomel.infer.launch import Wish, connect, find_or_start, log_path
from calomel.infer.remote import Endpoint
from calomel.infer.runtime_file import ServerRecord
from calomel.prompts.parts import PromptParts
from calomel.weights import nano_path, weights_id
from calomel.workspace.settings import BackendSettings

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SETTINGS = BackendSettings(idle_minutes=2.0)
QUESTION = CompleteRequest(
    "fill", PromptParts(path="a.py", prefix="def add(a, b):\n    return "), max_tokens=8, min_tokens=1
)


@pytest.fixture(autouse=True)
def private_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    state, runtime = tmp_path / "xdg_state_home", Path(tempfile.mkdtemp(prefix="c-"))  # a socket's path is short
    state.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    yield tmp_path
    for record in records():
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)
    shutil.rmtree(runtime)


def records() -> list[ServerRecord]:
    found = [runtime_file.read(path) for path in runtime_file.runtime_folder().glob("*.json")]
    return [record for record in found if record is not None]


def shared() -> ServerRecord:
    (record,) = records()
    return record


def ended(record: ServerRecord) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(record.pid).wait(30)


def test_two_windows_that_open_at_once_share_one_server() -> None:
    with ThreadPoolExecutor(2) as windows:
        one, other = windows.map(find_or_start, [SETTINGS, SETTINGS])
    assert one == other
    assert one.token == shared().token
    assert find_or_start(SETTINGS) == one


OPEN = "[serve]\nhost = '0.0.0.0'\nallow_remote = true\nno_auth = true\nport = 1\n"


@pytest.mark.parametrize("text", [OPEN, "[serve]\nprot = 1\n", "["])
def test_the_users_settings_for_a_server_of_his_own_do_not_reach_the_one_that_an_editor_starts(
    private_folders: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    config = private_folders / "xdg_config_home" / "calomel" / "calomel.toml"
    config.parent.mkdir(parents=True)
    config.write_text(text)
    given = {"HOST": "0.0.0.0", "ALLOW_REMOTE": "1", "NO_AUTH": "1", "PORT": "1", "CONFIG": str(config)}
    for name, value in given.items():
        monkeypatch.setenv(f"CALOMEL_{name}", value)
    with no_server_stays(private_folders), Program(private_folders, REAL) as editor:
        editor.initialize()
        asked = {"command": "calomel.status", "arguments": []}
        until = time.monotonic() + 60
        while editor.ask("workspace/executeCommand", asked)["state"] != "ready":
            assert time.monotonic() < until
            time.sleep(0.1)
        (path,) = (private_folders / "runtime").rglob("*.json")
        record = runtime_file.read(path)
        assert record is not None
        connections = psutil.Process(record.pid).net_connections("tcp")
        place = Path(record.url.removeprefix("unix:"))
        rights = place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(place)), base_url="http://localhost") as client:
            allowed = client.get("/v1/models", headers={"Authorization": f"Bearer {record.token}"})
            refused = client.get("/v1/models")
            page = client.get("/", headers={"Authorization": f"Bearer {record.token}"})

    assert rights == (0o600, 0o700)
    assert [each for each in connections if each.status == psutil.CONN_LISTEN] == []
    assert page.status_code == 200
    assert len(record.token or "") >= 43
    assert (allowed.status_code, refused.status_code) == (200, 401)
    assert not (private_folders / "xdg_state_home" / "calomel" / "token").exists()


async def test_a_server_that_dies_is_replaced_and_the_window_goes_on() -> None:
    client = ModelClient(connect, SETTINGS)
    assert (await client.ready()).id == "calomel-nano"
    first = shared()
    assert (await client.complete(QUESTION)).candidates[0].text
    asking = asyncio.create_task(
        client.complete(CompleteRequest("fill", PromptParts(prefix="x = 1\n" * 4000), max_context=16_000))
    )
    await asyncio.sleep(0.2)
    os.kill(first.pid, signal.SIGKILL)
    assert (await asking).candidates
    await asyncio.to_thread(ended, first)
    assert (await client.complete(QUESTION)).candidates[0].text
    assert shared().pid != first.pid
    await client.aclose()


async def test_a_server_that_hangs_is_ended_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(outage, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(launch, "_HUNG_SECONDS", 1.0)
    client = ModelClient(connect, SETTINGS)
    await client.ready()
    first = shared()
    os.kill(first.pid, signal.SIGSTOP)
    # As an editor gives a question up: long before a server is known to hang.
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.complete(QUESTION), 0.5)
    assert (await client.complete(QUESTION)).candidates[0].text
    assert shared().pid != first.pid
    await asyncio.to_thread(ended, first)
    assert not first.alive()
    await client.aclose()


@pytest.mark.parametrize("taken", [False, True], ids=["nobody", "another"])
def test_a_file_of_a_server_that_left_its_port_is_given_up(private_folders: Path, *, taken: bool) -> None:
    first = find_or_start(SETTINGS)
    (path,) = runtime_file.runtime_folder().glob("*.json")
    record = json.loads(path.read_text())
    other = ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler)
    url = f"http://127.0.0.1:{other.server_port}"
    if taken:
        threading.Thread(target=other.serve_forever, daemon=True).start()
    else:
        other.server_close()
    path.write_text(json.dumps({**record, "url": url}))
    second = find_or_start(SETTINGS)
    other.shutdown() if taken else None
    other.server_close()
    assert second not in {first, Endpoint(url, first.token)}
    with contextlib.suppress(ProcessLookupError):
        os.kill(record["pid"], signal.SIGTERM)


def test_the_page_of_the_shared_server_is_shown() -> None:
    find_or_start(SETTINGS)
    command = [sys.executable, "-m", "calomel.cli", "page"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        answers = [httpx.get(said.split()[1], auth=("", password)) for password in (shared().token or "", "wrong")]
        process.send_signal(signal.SIGINT)
    assert [answer.status_code for answer in answers] == [200, 401]
    assert "<title>" in answers[0].text
    assert (shared().token or "") not in said
    assert process.returncode == 0


def test_a_long_runtime_folder_has_its_socket_in_a_short_one(private_folders: Path) -> None:
    folder = Path("/tmp") / f"calomel-{os.getuid()}"
    one = find_or_start(SETTINGS)
    (path,) = runtime_file.runtime_folder().glob("*.json")
    long = private_folders / ("a" * 100)
    long.mkdir(mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(long)
    other = find_or_start(SETTINGS)
    assert Path(one.url.removeprefix("unix:")).parent == path.parent
    assert Path(other.url.removeprefix("unix:")).parent == folder
    assert oct(folder.stat().st_mode & 0o777) == "0o700"


async def test_a_system_without_unix_sockets_has_a_port_and_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_file, "socket_path", lambda _: None)
    client = ModelClient(connect, SETTINGS)
    assert (await client.ready()).id == "calomel-nano"
    assert shared().url.startswith("http://127.0.0.1:")
    assert (await client.complete(QUESTION)).candidates[0].text
    await client.aclose()


@pytest.mark.parametrize("in_file", [True, False])
async def test_a_server_that_has_a_model_is_asked_without_one_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_file: bool
) -> None:
    with served(llama_cpp(Play(key="secret"))) as url:
        key = None
        if in_file:
            key = tmp_path / "key"
            key.write_text("secret\n")
            key.chmod(0o600)
        # A key in a file counts more.
        monkeypatch.setenv("CALOMEL_UPSTREAM_KEY", "wrong" if in_file else "secret")
        completer = ModelClient(connect, BackendSettings(upstream=url, upstream_key_file=key))
        assert (await completer.ready()).kinds == ("fill", "edit")
        assert (await completer.complete(QUESTION)).candidates[0].text == "n * 2"
        await completer.aclose()
    assert records() == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (BackendSettings(upstream="http://127.0.0.1:9", model=nano_path()), "remove one of them"),
        (BackendSettings(upstream="http://192.0.2.1:8080"), "backend.upstream would send your code unencrypted"),
        (BackendSettings(upstream="http://127.0.0.1:9", upstream_key_file=Path("/nowhere/key")), "does not exist"),
        (BackendSettings(upstream="http://127.0.0.1:9"), "no server answers at http://127.0.0.1:9: start it"),
    ],
)
async def test_why_an_upstream_cannot_be_asked_is_told(settings: BackendSettings, said: str) -> None:
    completer = ModelClient(connect, settings)
    with pytest.raises(CompleterError, match=said):
        await completer.ready()
    assert said in completer.message
    await completer.aclose()


def test_servers_of_different_models_stand_beside_each_other(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(nano_path(), other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config, indent=4))
    assert weights_id(other) != weights_id(nano_path())
    first = find_or_start(SETTINGS)
    second = find_or_start(BackendSettings(model=other, idle_minutes=2.0))
    assert first.url != second.url
    assert len(records()) == 2


def test_a_server_of_another_version_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_or_start(SETTINGS)
    monkeypatch.setattr(launch, "version", lambda: "99.0")
    path = launch.shared_path("engine", weights_id(nano_path()), "cpu")
    assert not path.exists()
    assert launch.running(Wish(None, weights_id(nano_path()), "cpu", 1.0, path)) is None
    assert shared().url == first.url


def test_a_server_that_the_user_started_is_used(tmp_path: Path) -> None:
    find_or_start(SETTINGS)
    (path,) = runtime_file.runtime_folder().glob("*.json")
    path.rename(runtime_file.default_path())
    assert find_or_start(SETTINGS).token == shared().token


def test_a_model_that_can_not_be_loaded_is_said_to_the_window(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{}")

    async def info() -> None:
        completer = ModelClient(connect, BackendSettings(model=broken, idle_minutes=2.0))
        try:
            await completer.ready()
        finally:
            await completer.aclose()

    with pytest.raises(CompleterError) as caught:
        asyncio.run(info())
    assert caught.value.code in {"failed", "unreachable"}
    assert str(caught.value)


async def test_why_a_server_ended_is_told_without_the_command_lines_own_word_for_it() -> None:
    client = ModelClient(connect, BackendSettings(device="of-nobody"))
    with pytest.raises(CompleterError, match=r"^the model's server stopped while starting: --device: must be "):
        await client.ready()
    await client.aclose()


def test_a_server_that_nobody_uses_ends_and_takes_its_file_along() -> None:
    find_or_start(BackendSettings(idle_minutes=0.1))
    record = shared()
    ended(record)
    assert records() == []
    assert not Path(record.url.removeprefix("unix:")).exists()
    # Its log holds counts and times; its token is not among them.
    assert record.token is not None
    assert record.token not in log_path().read_text()
    assert oct(log_path().stat().st_mode & 0o777) == "0o600"


def test_a_state_folder_that_cannot_be_written_keeps_nobody_from_a_server(
    private_folders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(private_folders / "xdg_state_home")
    (private_folders / "xdg_state_home").write_text("a file where a folder should be")

    assert find_or_start(SETTINGS).url == shared().url
    assert f"the model's server has no log: cannot write {log_path()} (Not a directory)" in caplog.text
