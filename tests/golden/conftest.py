"""The scripted model, and one server that has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.golden.model import write_model
from tests.golden.transcript import Transcript

RENAMED = "total = 1\nprint(total)\n"
SCRIPT = {
    "": RENAMED,
    "total = 1\n": "print(total)\n",
    "def add(a, b):\n    return ": "a + b",
    "def mean(values):\n    ": "total = sum(values)\n    return total / len(values)",
    "for name in ": "names:",
    "print(add(": "1, 2)",
    # Text that must not be offered as it is.
    "    if ok:\n        return ": "return width",
    "import re\n\nnames = [": 'name, {"name": name',
    'greeting = "': "Hello, ",
}


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("golden") / "scripted", SCRIPT)


@pytest.fixture(scope="session")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("server")
    runtime_file = folder / "server.json"
    command = [sys.executable, "-m", "calomel.cli", "serve", "--no-config", "--fresh-token", "--offline", "--port", "0"]
    command += ["--model", str(model), "--runtime-file", str(runtime_file)]
    env = {**os.environ, "XDG_STATE_HOME": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Calomel listens on")
            left = json.loads(runtime_file.read_text())
            headers = {"authorization": f"Bearer {left['token']}"}
            with httpx.Client(base_url=left["url"], headers=headers, timeout=60) as client:
                end = time.monotonic() + 60
                while client.get("/health").status_code != 200:
                    assert time.monotonic() < end
                    time.sleep(0.05)
                yield client
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture
def transcript(model: Path, tmp_path: Path) -> Callable[[str], Transcript]:
    def begin(name: str) -> Transcript:
        return Transcript(name, {str(model): "<model>", str(tmp_path): "<folder>"})

    return begin
