"""State files that are damaged, of another version, or something else: each reader says so, in time, with the path."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.cli.conftest import Runner

from calomel.infer import runtime_file
from calomel.infer.launch import find
from calomel.infer.runtime_file import RuntimeFileError
from calomel.selectivity.calibrator import Calibrator, CalibratorError
from calomel.selectivity.record import Records
from calomel.server import tokens
from calomel.server.errors import StartError
from calomel.suggest.outcome_log import each_record
from calomel.workspace.settings import BackendSettings


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**30)


KINDS: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(b"\0" * 200),
    "deep": lambda path: path.write_bytes(b'{"a":' * 50_000),
    "cut": lambda path: path.write_bytes(b'{"format": 1, "sour'),
    "types": lambda path: path.write_bytes(b'{"format": 1, "sources": [1], "kinds": 3, "url": 5, "pid": "x"}'),
    "newer": lambda path: path.write_bytes(b'{"format": 99, "version": "99.0", "future": {}}'),
    "huge": sparse,
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "loop": lambda path: path.symlink_to(path.name),
}


def records(path: Path) -> None:
    assert list(Records(path).rows()) == []


# Each reader, and the error that it may raise, whose message names the path.
READERS: dict[str, tuple[Callable[[Path], Any], type[Exception]]] = {
    "runtime file": (runtime_file.read, RuntimeFileError),
    "token": (tokens.read, StartError),
    "calibrator": (Calibrator.read, CalibratorError),
    "records": (records, RuntimeFileError),
    "outcomes": (lambda path: list(each_record(path)), OSError),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_whatever_is_in_its_place_is_named_and_keeps_nobody_waiting(home: Path, reader: str, kind: str) -> None:
    path = home / "state.json"
    KINDS[kind](path)
    if kind not in {"folder", "loop"}:
        path.chmod(0o600)
    read, error = READERS[reader]
    began, before = time.monotonic(), psutil.Process().memory_info().rss
    found, said = None, str(path)
    try:
        found = read(path)
    except error as raised:
        said = str(raised)
    assert str(path) in said
    # A text without spaces is a token, whatever it looks like.
    assert found is None or (reader, kind) == ("token", "deep") or found == [None] * len(found)
    assert time.monotonic() - began < 5
    assert psutil.Process().memory_info().rss - before < 128 * 1024 * 1024


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_is_looked_for_past_a_runtime_file_that_is_none(run: Runner, home: Path, kind: str) -> None:
    path = home / "run" / "calomel" / "server.json"
    KINDS[kind](path)
    if kind not in {"folder", "loop"}:
        path.chmod(0o600)
    assert find(BackendSettings()) is None
    assert f"{path}" in run("doctor").out
