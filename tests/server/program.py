"""The real `calomel serve` with the shipped weights, or with those in the folder that CALOMEL_TEST_MODEL names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
