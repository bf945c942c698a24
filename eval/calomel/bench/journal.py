"""Results of single items, appended as they come, so that an interrupted bench goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self


def cache_folder() -> Path:
    """Where journals lie unless an option says otherwise: `$XDG_CACHE_HOME/calomel/bench`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "calomel" / "bench"


class Journal:
    """A JSON-lines file of `{"key": ..., "record": {...}}`, named after everything that its results depend on."""

    def __init__(self, folder: Path, bench: str, depends_on: Mapping[str, Any], *, resume: bool = True) -> None:
        """Open, or with `resume` False start again, the journal of exactly these dependencies."""
        text = json.dumps(depends_on, sort_keys=True, default=str)
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{bench}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl"
        self._records: dict[str, dict[str, Any]] = {}
        if resume and self.path.exists():
            self._read()
        else:
            self.path.write_text("", encoding="utf-8")
        self.resumed = len(self._records)
        self._file = self.path.open("a", encoding="utf-8")

    def get(self, key: str) -> dict[str, Any] | None:
        """The record under `key`, if it was measured before."""
        return self._records.get(key)

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Remember `record`, on disk at once."""
        self._records[key] = record
        self._file.write(json.dumps({"key": key, "record": record}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file; the records stay readable."""
        self._file.close()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def _read(self) -> None:
        """Load every whole line; a line cut off by an interruption is dropped from the file as well."""
        whole: list[str] = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
                self._records[entry["key"]] = entry["record"]
            except (json.JSONDecodeError, KeyError, TypeError):
                continue
            whole.append(line + "\n")
        self.path.write_text("".join(whole), encoding="utf-8")
