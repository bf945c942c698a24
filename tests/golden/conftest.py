"""The scripted model, and one server that has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.golden.model import write_model
from tests.golden.transcript import Transcript
from tests.server.program import program

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
    own = ("--no-config", "--fresh-token", "--offline")
    with program(tmp_path_factory.mktemp("server"), *own, model=model) as (_, client):
        yield client


Begin = Callable[[str], Transcript]


@pytest.fixture
def transcript(model: Path, tmp_path: Path) -> Begin:
    def begin(name: str) -> Transcript:
        return Transcript(name, {str(model): "<model>", str(tmp_path): "<folder>"})

    return begin
