"""What long runs have in common: a journal to resume from, and a check of the machine's load."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from calomel.report.result import CONVERTER, Value, source_hash
from calomel.storage import write_whole
from calomel.storage.system import psutil

_T = TypeVar("_T")


def cache_folder() -> Path:
    """Where journals are stored by default: `$XDG_CACHE_HOME/calomel/bench`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "calomel" / "bench"


class Journal:
    """A JSON-lines file of `{"key": ..., "record": {...}}`, named after everything that its results depend on.

    Args:
        bench: whose results they are.
        depends_on: everything beside the code that determines them.
        resume: continue an existing journal, else start over.
        folder: where it is stored; None for the user's cache folder.
    """

    def __init__(
        self, bench: str, depends_on: Mapping[str, Any], *, resume: bool = True, folder: Path | None = None
    ) -> None:
        text = json.dumps({**depends_on, "sources": source_hash()}, sort_keys=True, default=str)
        folder = folder or cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{bench}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl"
        self._records: dict[str, Any] = {}
        if resume and self.path.exists():
            self._read()
        else:
            self.path.write_text("", encoding="utf-8")
        self.resumed = len(self._records)

    def get(self, key: str, kind: type[_T]) -> _T | None:
        """The record of this class under `key`, if it was measured before."""
        return CONVERTER.structure(self._records[key], kind) if key in self._records else None

    def put(self, key: str, record: object) -> None:
        """Store `record`, on disk at once."""
        self._records[key] = CONVERTER.unstructure(record)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "record": self._records[key]}) + "\n")

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
        write_whole(self.path, "".join(whole))


# Other processes used more than this many cores on average: the times of the run are marked.
LOADED_CORES = 0.2
# CPU times have a resolution of a hundredth of a second; a shorter window would be noise.
WINDOW_SECONDS = 1.0


def busy_seconds() -> float:
    """CPU seconds that all processors were busy since boot."""
    times = psutil().cpu_times()
    waiting = ("idle", "iowait", "guest", "guest_nice")  # a guest's are among the user's
    return float(sum(value for name, value in times._asdict().items() if name not in waiting))


def own_seconds() -> float:
    """CPU seconds of this process, its threads and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class LoadWatch:
    """Measures the load of other processes since its creation."""

    def __init__(self) -> None:
        self._began = (time.monotonic(), busy_seconds(), own_seconds())

    def others(self) -> float:
        """Cores that other processes have used since then, on average."""
        began, busy_then, own_then = self._began
        others = busy_seconds() - busy_then - (own_seconds() - own_then)
        return max(0.0, others / max(WINDOW_SECONDS, time.monotonic() - began))

    def keys(self) -> dict[str, Value]:
        """The same as keys of a report."""
        others = self.others()
        return {"loaded": others > LOADED_CORES, "load_other_cores": others}


def load_before() -> dict[str, Value]:
    """The same over the next second, for benches whose servers are not ended children: to be called first."""
    watch = LoadWatch()
    time.sleep(WINDOW_SECONDS)
    return watch.keys()
