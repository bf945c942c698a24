"""Transcripts, the scripted model, and one server that has it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from tests.golden.model import write_model
from tests.server.program import program

_FOLDER: Final = Path(__file__).parent
# What differs from run to run: times, and names that are drawn at random.
_VARIES: Final = re.compile(r"^(id|created|created_at|uuid|.*_?seconds|.*_ms|.*_per_second|.*_duration|uptime)$")
_WIDTH: Final = 110
_DRAWN: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{16,64}")


class Transcript:
    """What was said at a door, as a text that a person can read: what it was before, or the test says how not."""

    def __init__(self, name: str, hidden: dict[str, str]) -> None:
        self._path = _FOLDER / f"{name}.txt"
        self._hidden = hidden
        self._lines: list[str] = []

    def heading(self, text: str) -> None:
        """What comes next, in words."""
        self._lines += ["", f"## {text}"] if self._lines else [f"## {text}"]

    def says(self, who: str, value: Any) -> None:
        """A message of `who`: text as it is, anything else as JSON."""
        text = value if isinstance(value, str) else _readable(_settled(value))
        for found, shown in self._hidden.items():
            text = text.replace(found, shown)
        lines = _DRAWN.sub("<drawn>", text).splitlines() or [""]
        self._lines += [f"{who} {line}".rstrip() for line in lines]

    def check(self) -> None:
        """Compare with the file; with CALOMEL_WRITE_GOLDEN set, write it."""
        text = "\n".join(self._lines) + "\n"
        if os.environ.get("CALOMEL_WRITE_GOLDEN"):
            self._path.write_text(text, encoding="utf-8")
        assert text.splitlines() == self._path.read_text(encoding="utf-8").splitlines()


def _settled(value: Any, name: str = "") -> Any:
    """`value` without what varies; floats in two digits, since processors round differently."""
    if name and _VARIES.match(name) and not isinstance(value, dict | list):
        return "…"
    if isinstance(value, dict):
        return {key: _settled(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_settled(each) for each in value]
    return round(value, 2) if isinstance(value, float) else value


def _readable(value: Any, indent: str = "") -> str:
    """JSON, in one line where it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + len(indent) <= _WIDTH or not isinstance(value, dict | list) or not value:
        return line
    deeper = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_readable(each, deeper)}" for key, each in value.items()]
        return "{\n" + "".join(f"{deeper}{part},\n" for part in parts) + indent + "}"
    return "[\n" + "".join(f"{deeper}{_readable(each, deeper)},\n" for each in value) + indent + "]"


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
