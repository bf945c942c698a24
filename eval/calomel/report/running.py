"""What long runs have in common: a bar of progress, a journal to resume from, and a check of the machine's load."""

from __future__ import annotations

import atexit
import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from calomel.report.result import CONVERTER, Value, source_hash
from calomel.storage import psutil, write_whole

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

# A shorter phase needs no bar.
PATIENCE_SECONDS: Final = 2.0


class Progress:
    """A bar on stderr for the phases of a command; it disappears after the last one, and is absent without a terminal.

    Text printed meanwhile appears above it. Use it as a context manager where a phase may fail.

    Args:
        console: of the bar; None for one on stderr.

    Attributes:
        timer: starts the phase of `later`; None without it.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._bar: Bar | None = None
        self._left = 0
        self.timer: Timer | None = None
        self._lock = Lock()
        self._over = False

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a phase of `total` steps; None for an unknown number."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as TimeLeftColumn

        with self._lock:
            console = self._console or Console(stderr=True)
            if self._over or not console.is_terminal:
                return
            self._stop()
            known = () if total is None else (MofNCompleteColumn(), TimeLeftColumn())
            self._bar = Progress(
                *(TextColumn("{task.description}", markup=False), BarColumn(), *known, TimeElapsedColumn()),
                console=console,
                transient=True,
                # Output into a file stays in it.
                redirect_stdout=sys.stdout.isatty(),
            )
            self._bar.add_task(name, total=total)
            self._left = total or 0
            self._bar.start()
            # A program that ends midway must restore the cursor.
            atexit.register(self._stop)

    def step(self, done: int | None = None) -> None:
        """Count one more step, or set the number of steps done."""
        if self._bar is not None:
            task = self._bar.tasks[0]
            self._bar.update(task.id, completed=task.completed + 1 if done is None else done)
            if task.finished:
                self._stop()

    def say(self, sentence: str) -> None:
        """Write one line, with or without a terminal."""
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()

    def later(self, name: str) -> Self:
        """Begin a phase of unknown length if this context lasts longer than a moment."""
        self.timer = Timer(PATIENCE_SECONDS, self.phase, (name,))
        self.timer.daemon = True
        self.timer.start()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        if self.timer is not None:
            self.timer.cancel()
        with self._lock:
            self._over = True
            self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


_T = TypeVar("_T")
_Task = TypeVar("_Task")


def in_processes(
    work: Callable[[_Task], _T],
    tasks: Sequence[_Task],
    jobs: int,
    begin: Callable[..., None] | None = None,
    given: tuple[Any, ...] = (),
) -> Iterator[_T]:
    """What `work` makes of each task, as it arrives from one of `jobs` processes; each begins with `begin(*given)`."""
    # A forked process would share the parent's threads' locks.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, begin, given) as pool:
        waiting = [pool.submit(work, task) for task in tasks]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


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
