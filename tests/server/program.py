"""The real `calomel serve` with the shipped weights, or with those in the folder that CALOMEL_TEST_MODEL names."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.server.conftest import until

from calomel.weights import nano_path

MODEL = Path(os.environ.get("CALOMEL_TEST_MODEL", nano_path()))
needs_weights = pytest.mark.skipif(not (MODEL / "model.safetensors").exists(), reason=f"no weights in {MODEL}")


@contextmanager
def program(
    folder: Path, *arguments: str, model: Path | None = MODEL, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """The process, and a client with its token; the model is ready. All of the user's own folders are in `folder`."""
    record = folder / "server.json"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CALOMEL_")}
    own = {name: str(folder / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    command = [sys.executable, "-m", "calomel.cli", "serve", "--port", "0", *(["--model", str(model)] if model else [])]
    command += ["--runtime-file", str(record), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**kept, **own, **environment}) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Calomel listens on http://127.0.0.1:")
            left = json.loads(record.read_text())
            headers = {"authorization": f"Bearer {left['token']}"}
            with httpx.Client(base_url=left["url"], headers=headers, timeout=600) as client:
                # The socket answers at once, the model a little later.
                assert client.get("/health").status_code in {200, 503}
                until(lambda: client.get("/health").status_code == 200, 120)
                yield process, client
        finally:
            process.terminate()
            process.wait(30)


# What another program than Calomel at a port says.
REFUSED = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
NO_HTTP = b"SSH-2.0-OpenSSH_9.2\r\n"


@contextmanager
def another_program(answer: bytes) -> Iterator[str]:
    """Another program that has the port; it says the same to everybody."""

    def serve() -> None:
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            with peer:
                peer.recv(65_536)
                peer.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
