"""The real server with the shipped weights, and other people's clients as programs of their own beside it.

`make clients` fetches them. What they say comes back as one line of JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.program import MODEL, program

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))


FOLDER = Path(os.environ.get("CALOMEL_CLIENTS", CACHE / "calomel" / "clients"))


PROGRAMS = Path(__file__).parent / "programs"


TOKEN = "client-token-0123456789"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    if not (MODEL / "model.safetensors").exists():
        pytest.skip(f"no weights in {MODEL}")
    with program(tmp_path_factory.mktemp("server"), CALOMEL_TOKEN=TOKEN) as (_, client):
        yield SimpleNamespace(url=str(client.base_url).rstrip("/"), token=TOKEN)


def run(command: list[str | Path], server: SimpleNamespace, **more: str) -> Any:
    """What a program says; its environment has the address and the token and nothing of the user's."""
    environment = {
        **{name: value for name, value in os.environ.items() if "PROXY" not in name.upper()},
        "CALOMEL_URL": server.url,
        "CALOMEL_TOKEN": server.token,
        **more,
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="session")
def python_client(server: SimpleNamespace) -> Callable[..., Any]:
    """Runs one of `programs/*.py` with the clients' own Python."""
    python = FOLDER / "venv" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no clients in {FOLDER}: run `make clients`")

    def run_(name: str, package: str, **more: str) -> Any:
        if subprocess.run([python, "-c", f"import {package}"], capture_output=True, check=False).returncode:
            pytest.skip(f"no {package} in {FOLDER}: run `make clients`")
        return run([python, PROGRAMS / name], server, **more)

    return run_


@pytest.fixture(scope="session")
def node_client(server: SimpleNamespace) -> Callable[..., Any]:
    """Runs one of `programs/*.mjs` with Node."""
    node, modules = shutil.which("node"), FOLDER / "node" / "node_modules"
    if node is None:
        pytest.skip("there is no Node here")

    def run_(name: str, package: str) -> Any:
        if not (modules / package).exists():
            pytest.skip(f"no {package} in {modules}: run `make clients`")
        return run([node, PROGRAMS / name], server, CALOMEL_NODE_MODULES=str(modules))

    return run_
