"""Real keystrokes of two people, replayed: the text is theirs in the end, and nothing grows without bound."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from calomel.workspace import history as history_module
from calomel.workspace.documents import RangeChange
from calomel.workspace.position import Encoding
from calomel.workspace.workspace import Workspace

URI = "file:///w/a.rs"


def recorded(name: str) -> dict[str, Any]:
    data = Path(os.environ.get("CALOMEL_DATA", Path(__file__).parents[3] / "shared" / "data"))
    path = data / "keystrokes" / name
    if not path.is_file():
        pytest.skip(f"{path} is not there; set CALOMEL_DATA to the folder of public data")
    with gzip.open(path) as file:
        found: dict[str, Any] = json.load(file)
    return found


def replay(trace: dict[str, Any], count: int | None) -> tuple[Workspace, str]:
    """Send the first `count` transactions as an editor would; returns the text by naive replay too."""
    now, version = 0.0, 0
    workspace = Workspace((Path("/w"),), lambda: now, encoding=Encoding.UTF32)
    document = workspace.open(URI, "rust", 0, trace["startContent"])
    naive = trace["startContent"]
    for transaction in trace["txns"][:count]:
        now += 0.2
        for at, deleted, inserted in transaction["patches"]:
            version += 1
            start, end = document.position_at(at), document.position_at(at + deleted)
            workspace.change(URI, version, [RangeChange(start, end, inserted)])
            naive = naive[:at] + inserted + naive[at + deleted :]
    return workspace, naive


@pytest.mark.parametrize("name", ["rustcode.json.gz", "sveltecomponent.json.gz"])
def test_a_recorded_session_gives_its_text(name: str) -> None:
    workspace, naive = replay(recorded(name), 3000)
    document = workspace.documents.get(URI)
    assert document is not None
    assert document.text == naive


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rustcode.json.gz", "sveltecomponent.json.gz"])
def test_a_whole_recorded_session_gives_its_text_within_bounds(name: str) -> None:
    trace = recorded(name)
    workspace, _ = replay(trace, None)
    document = workspace.documents.get(URI)
    assert document is not None
    assert document.text == trace["endContent"]
    assert len(workspace.history.settled()) <= history_module.MAX_HUNKS
    assert len(workspace.history.recent_edits(URI, 10_000)) <= 64
