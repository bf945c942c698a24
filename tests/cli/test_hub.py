"""`calomel models fetch OWNER/NAME:QUANT`: one GGUF file, from a hub on this machine."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.conftest import Runner

from calomel.weights.folders import models_folder

pytest.importorskip("huggingface_hub", reason="pip install huggingface_hub")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DATA = b"GGUF" + bytes(range(256)) * 96_000


class Hub(ThreadingHTTPServer):
    """Has the repository me/small; `breaks` requests end in the middle."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.files = {"small-Q8_0.gguf": DATA, "small-Q4_0.gguf": b"GGUF", "sub/../../x-Q2_K.gguf": b"GGUF"}
        self.told = {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}
        self.breaks = 0
        self.ranges: list[str | None] = []
        self.tokens: set[str | None] = set()


class _Answers(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.tokens.add(self.headers["Authorization"])
        if self.path.startswith("/api/models/me/small"):
            files = self.server.files.items()
            lfs = {
                name: {"size": len(data), "sha256": self.server.told[name], "pointerSize": 1} for name, data in files
            }
            siblings = [{"rfilename": name, "size": len(data), "lfs": lfs[name]} for name, data in files]
            told = {"id": "me/small", "sha": COMMIT, "siblings": siblings, "cardData": {"license": "mit"}}
            self._send(json.dumps(told).encode())
            return
        name = self.path.partition(f"/me/small/resolve/{COMMIT}/")[2]
        if name not in self.server.files:
            self.send_error(404)
            return
        data, asked = self.server.files[name], self.headers["Range"]
        if self.command == "GET":
            self.server.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        etag = {"ETag": f'"{self.server.told[name]}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if start:
            etag["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self._send(data[start:], 206 if start else 200, etag)

    def _send(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            broken = self.server.breaks > 0 and status in {200, 206} and len(body) > 100_000
            self.server.breaks -= broken
            self.wfile.write(body[: len(body) // 2] if broken else body)
            self.close_connection = True


@pytest.fixture
def hub(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "CALOMEL_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("words", [("me/small:q8_0",), ("me/small", "--gguf", "small-Q8_0.gguf")])
def test_one_file_is_fetched_and_chosen(run: Runner, home: Path, hub: Hub, words: tuple[str, ...]) -> None:
    done = run("models", "fetch", *words)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("small-Q8_0.gguf: 0.02 GB, licence mit\n")
    folder = models_folder() / "me--small"
    assert {each.name for each in folder.iterdir()} == {"small-Q8_0.gguf", "calomel-source.json"}
    assert [each.name for each in models_folder().iterdir()] == ["me--small"]
    assert (folder / "small-Q8_0.gguf").read_bytes() == DATA
    assert json.loads((folder / "calomel-source.json").read_text())["revision"] == COMMIT
    assert hub.tokens == {None}
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    assert run("models", "use", "me/small").status == 0
    assert '[server]\nmodel = "me/small"\n' in (home / ".config/calomel/calomel.toml").read_text()
    assert "llama.cpp" in next(line for line in run("models", "list").out.splitlines() if line.startswith("*"))


def test_a_download_that_broke_off_continues(run: Runner, hub: Hub) -> None:
    hub.breaks = 1
    run("models", "fetch", "me/small:Q8_0")
    run("models", "fetch", "me/small:Q8_0")
    assert (models_folder() / "me--small" / "small-Q8_0.gguf").read_bytes() == DATA
    assert hub.ranges[0] is None
    # The library writes pieces of ten megabytes.
    assert hub.ranges[1] is not None
    assert hub.ranges[1].startswith("bytes=1048576")


def test_another_file_than_announced_is_not_kept(run: Runner, hub: Hub) -> None:
    hub.files["small-Q8_0.gguf"] = DATA[:-1] + b"x"
    done = run("models", "fetch", "me/small:Q8_0")
    assert (done.status, "is not what the hub announced" in done.err) == (1, True)
    assert not [each for each in models_folder().iterdir() if each.suffix != ".lock"]


def test_a_file_that_does_not_fit_is_not_begun(run: Runner, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=len(DATA) - 1))
    done = run("models", "fetch", "me/small:Q8_0")
    assert (done.status, "GB are free in" in done.err, hub.ranges) == (1, True, [])


@pytest.mark.parametrize(
    ("wanted", "told"), [("Q5_K", "has no files Q5_K"), ("Q2_K", "lead outside"), ("0", "has 2 files 0")]
)
def test_a_file_that_is_not_there_is_told(run: Runner, hub: Hub, wanted: str, told: str) -> None:
    done = run("models", "fetch", f"me/small:{wanted}")
    assert (done.status, told in done.err, hub.ranges) == (1, True, [])


def test_a_fetched_file_is_chosen_at_once_with_its_device(run: Runner, home: Path, hub: Hub) -> None:
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    assert run("models", "fetch", "me/small:q8_0", "--device", "mps").status == 2
    done = run("models", "fetch", "me/small:q8_0", "--use", "--device", "mps")
    assert (done.status, done.err) == (0, "")
    assert (home / ".config/calomel/calomel.toml").read_text() == '[server]\nmodel = "me--small"\ndevice = "mps"\n'
    assert "me--small is the model for all editors" in done.out


def test_a_file_that_is_only_called_by_its_quantisation_gets_the_models_name(run: Runner, hub: Hub) -> None:
    # How a model is asked goes by its name.
    hub.files["q4_k_m.gguf"] = DATA
    hub.told["q4_k_m.gguf"] = hashlib.sha256(DATA).hexdigest()
    assert run("models", "fetch", "me/small:Q4_K_M").status == 0
    assert [each.name for each in (models_folder() / "me--small").glob("*.gguf")] == ["small-q4_k_m.gguf"]
