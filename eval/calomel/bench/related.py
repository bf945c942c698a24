"""`calomel bench related`: what it costs to know the code around, on a workspace of 2,000 files.

Without a folder, the workspace is made of the running Python's standard library, copied as often as it takes.
"""

from __future__ import annotations

import itertools
import random
import shutil
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from calomel.bench.load import LOADED_CORES, WINDOW_SECONDS, LoadWatch
from calomel.bench.machine import describe_run
from calomel.bench.report import Report, Value, figures_table
from calomel.bench.stats import percentile
from calomel.workspace.documents import Document
from calomel.workspace.privacy import Privacy
from calomel.workspace.related import Related
from calomel.workspace.syntax import SyntaxTrees

FILES = 2000
LONGEST = 500_000
INDEX_SECONDS = 600.0
DOCUMENTS, QUICK_DOCUMENTS, QUESTIONS = 100, 30, 6
# A keystroke's work for the language server, about a millisecond, every hundredth of a second.
KEY_SECONDS, KEY_WORK = 0.01, 5000
IDLE_SECONDS = 3.0

NOTES = (
    (
        "`index_seconds`: from the start to the last file read, by one process of low priority;"
        " `index_first_seconds`: to the first ones."
    ),
    (
        "`typing_idle_p99_ms`, `typing_indexing_p99_ms`: a thread of the same process does a keystroke's work every"
        " 10 ms; the time that takes without and with the reading in the background."
    ),
    "`request_p95_ms`: one question at a random place of a random file for which no earlier answer stands.",
    "`kept_p95_ms`: the same question again, as after a keystroke.",
)


class RelatedBenchError(Exception):
    """The workspace cannot be measured."""


@dataclass(frozen=True, slots=True)
class RelatedOptions:
    """What to measure and where the results go."""

    folder: Path | None = None
    quick: bool = False
    seed: int = 1
    json: Path | None = None
    results: Path | None = None


def run_related(options: RelatedOptions) -> Report:
    """Index a folder and ask at many places. Raises RelatedBenchError when there is nothing to index."""
    provenance = describe_run()
    watch = LoadWatch()
    time.sleep(WINDOW_SECONDS)
    flat: dict[str, Value] = {"loaded": watch.others() > LOADED_CORES}
    with tempfile.TemporaryDirectory(prefix="calomel-bench-") as made:
        folder = options.folder.resolve() if options.folder else _library(Path(made))
        syntax = SyntaxTrees()
        related = Related(syntax, Privacy([folder]), watch=False)
        try:
            flat |= _read(related, folder)
            flat |= _ask(related, syntax, folder, options)
        finally:
            related.stop()
    name = "bench related quick" if options.quick else "bench related"
    report = Report(name, flat, (figures_table("Related code", flat),), NOTES, provenance)
    report.write(json_path=options.json, results=options.results)
    return report


def _library(folder: Path) -> Path:
    """2,000 files of the standard library, some of them in several copies."""
    library = Path(sysconfig.get_path("stdlib"))
    files = [
        path
        for path in sorted(library.rglob("*.py"))
        if "site-packages" not in path.parts and 0 < path.stat().st_size < LONGEST
    ]
    for number, path in enumerate(itertools.islice(itertools.cycle(files), FILES)):
        to = folder / f"copy{number // len(files)}" / path.relative_to(library)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    return folder


def _read(related: Related, folder: Path) -> dict[str, Value]:
    with _typing() as idle:
        time.sleep(IDLE_SECONDS)
    first: float | None = None
    with _typing() as busy:
        began = time.perf_counter()
        related.start([folder])
        while not related.wait(0.05):
            if first is None and len(related.index):
                first = time.perf_counter() - began
            if time.perf_counter() - began > INDEX_SECONDS:
                raise RelatedBenchError(f"{folder} was not read within {INDEX_SECONDS:.0f} seconds")
        seconds = time.perf_counter() - began
    if not len(related.index):
        raise RelatedBenchError(f"{folder} holds no source code that may be read")
    return {
        "index_files": len(related.index),
        "index_seconds": round(seconds, 2),
        "index_first_seconds": round(first or seconds, 2),
        "index_mb": round(related.index.memory / 1e6, 1),
        "typing_idle_p99_ms": _ms(idle, 99),
        "typing_indexing_p50_ms": _ms(busy, 50),
        "typing_indexing_p99_ms": _ms(busy, 99),
    }


@contextmanager
def _typing() -> Iterator[list[float]]:
    """Seconds that each keystroke's work takes, in a thread of its own."""
    seconds: list[float] = []
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(KEY_SECONDS):
            began = time.perf_counter()
            sum(number * number for number in range(KEY_WORK))
            seconds.append(time.perf_counter() - began)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield seconds
    finally:
        ended.set()
        thread.join()


def _ask(related: Related, syntax: SyntaxTrees, folder: Path, options: RelatedOptions) -> dict[str, Value]:
    rng = random.Random(options.seed)  # noqa: S311 (places, not secrets)
    paths = sorted(related.index.paths())
    new, kept, excerpts = list[float](), list[float](), list[float]()
    for path in rng.sample(paths, min(len(paths), QUICK_DOCUMENTS if options.quick else DOCUMENTS)):
        file = Path(path)
        text = file.read_text(encoding="utf-8", errors="replace")
        for _ in range(QUESTIONS):
            document = Document(file.as_uri(), "", 1, text, file.relative_to(folder).as_posix())
            for listener in (syntax, related):
                listener.opened(document)
            offset = rng.randrange(len(text) + 1)
            # The tree is there already when somebody types.
            syntax.tree(document)
            excerpts.append(float(_timed(new, lambda d=document, o=offset: len(related.excerpts(d, o)))))  # type: ignore[misc]
            _timed(kept, lambda d=document, o=offset: len(related.excerpts(d, o)))  # type: ignore[misc]
            for listener in (syntax, related):
                listener.closed(document)
        if not related.wait(INDEX_SECONDS):
            raise RelatedBenchError(f"{folder} changes all the time")
    return {
        "request_p50_ms": _ms(new, 50),
        "request_p95_ms": _ms(new, 95),
        "kept_p95_ms": _ms(kept, 95),
        "request_n": len(new),
        "excerpts_p50": percentile(excerpts, 50),
    }


def _timed(seconds: list[float], ask: Callable[[], int]) -> int:
    began = time.perf_counter()
    found = ask()
    seconds.append(time.perf_counter() - began)
    return found


def _ms(seconds: list[float], part: float) -> float | None:
    value = percentile(seconds, part)
    return None if value is None else round(value * 1e3, 2)
