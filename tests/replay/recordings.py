"""Writes small recordings for tests."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from calomel.replay.events import Changed, Event, Opened, apply_edits

Entry = dict[str, Any]


def shared(name: str) -> Path:
    """A file of the public data; skips the test when it is not there."""
    data = Path(os.environ.get("CALOMEL_DATA", Path(__file__).parents[3] / "shared" / "data"))
    path = data / name
    if not path.exists():
        pytest.skip(f"{path} is not there; set CALOMEL_DATA to the folder of public data")
    return path


def texts(events: list[Event] | Any) -> dict[str, str]:
    """The text of each document after the events."""
    found: dict[str, str] = {}
    for event in events:
        if isinstance(event, Opened):
            found[event.document] = event.text
        elif isinstance(event, Changed):
            found[event.document] = apply_edits(found[event.document], event.edits)
    return found


def name_of(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()[:24]


class Recorder:
    """A recording in the making."""

    def __init__(self) -> None:
        self.time = 1_700_000_000_000
        self.entries: list[Entry] = [
            {"kind": "header", "documentType": "workspaceRecording@1.0", "repoRootUri": "file:///w", "time": self.time}
        ]
        self.requests = 0

    def add(self, kind: str, **values: Any) -> int:
        self.time += 100
        self.entries.append({"kind": kind, "time": self.time, **values})
        return len(self.entries) - 1

    def document(self, number: int, path: str, text: str) -> None:
        self.add("documentEncountered", id=number, relativePath=path)
        self.add("setContent", id=number, content=text, v=1)
        self.add("storeContent", id=number, contentId=name_of(text), v=1)

    def change(self, number: int, version: int, *edits: list[Any]) -> int:
        return self.add("changed", id=number, edit=list(edits), v=version)

    def reason(self, number: int, version: int, source: str) -> None:
        self.add(
            "documentEvent", id=number, data={"sourceId": "TextModel.setChangeReason", "source": source, "v": version}
        )

    def offer(self, number: int, version: int, where: str, text: str, **values: Any) -> None:
        self.requests += 1
        fetch = {"sourceId": "InlineCompletions.fetch", "requestId": self.requests}
        self.add(
            "documentEvent", id=number, data={**fetch, "kind": "start", "context": {"triggerKind": 0}, "v": version}
        )
        result = [{"range": where, "text": text, "isInlineEdit": False, "source": "tester"}]
        self.add("event", data={**fetch, "kind": "end", "durationMs": 5, "result": result, **values})
