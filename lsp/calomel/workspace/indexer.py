"""Keeps the index in step with the disk and with what is typed: one thread that asks, one process that reads."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from calomel.workspace.index import Index
from calomel.workspace.index_worker import COMMAND, IndexProcess, WorkerDied
from calomel.workspace.privacy import Privacy
from calomel.workspace.segment import SourceFile
from calomel.workspace.source_files import Seen, see, walk

LOG: Final = logging.getLogger(__name__)

# About a hundred megabytes of index; the largest repositories have more, and nobody edits all of one.
MOST_FILES: Final = 20_000
MOST_CHARACTERS: Final = 256_000_000
# The first answers come soon, the last segments are large, since a search looks into each.
_FIRST_BATCH: Final = 16
_LARGEST_BATCH: Final = 512
_BATCH_BYTES: Final = 8_000_000
# This thread works for a millisecond and then lets the others: they wait no longer for the interpreter's lock.
_SLICE: Final = 0.001
_PAUSE: Final = 0.001
# Halving a batch of 512 finds the one file that kills the worker within ten deaths.
_DEATHS: Final = 12
# After a mistake of ours everything is looked at anew, at once the first time, and later and later while it repeats.
_FIRST_WAIT: Final = 0.25
_LONGEST_WAIT: Final = 60.0

Message = Callable[[str], None]
Progress = Callable[[int, int], None]


class Indexer:
    """Reads folders in the background. Every public method returns at once, and may be called from any thread."""

    def __init__(
        self,
        index: Index,
        permission: Privacy | None = None,
        message: Message | None = None,
        *,
        command: Sequence[str] = COMMAND,
        most_files: int = MOST_FILES,
    ) -> None:
        self._index = index
        self._permission = permission
        self._say = message or (lambda _text: None)
        self._command = command
        self._most_files = most_files
        self._folders: tuple[Path, ...] = ()
        self._progress: Progress | None = None
        self._wake = threading.Condition()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._process: IndexProcess | None = None
        # Under the lock of `_wake`: what to look at again, and texts that count instead of the disk.
        self._paths: dict[Path, None] = {}
        self._rescan = False
        self._texts: dict[str, str] = {}
        # Of the thread alone.
        self._batches: deque[list[SourceFile]] = deque()
        self._stamps: dict[str, tuple[int, int]] = {}
        self._deaths = 0
        self._read = 0
        self._found = 0
        self._ready = False
        self._complete = threading.Event()
        self._restarts = self._failures = 0

    @property
    def restarts(self) -> int:
        """How often the reading began anew because of a mistake; the log says which."""
        return self._restarts

    @property
    def ready(self) -> bool:
        """Whether everything has been read once; what changes later makes no difference."""
        return self._ready

    @property
    def worker_pid(self) -> int | None:
        """The worker's process, for those who measure it."""
        process = self._process
        return None if process is None else process.pid

    def start(
        self, folders: Sequence[Path], progress: Progress | None = None, *, most_files: int | None = None
    ) -> None:
        """Read the folders, or other folders than before, of which none is known any more.

        `progress` is called from the background, once more when all is read. `most_files` replaces the limit.
        """
        with self._wake:
            self._folders = tuple(folders)
            self._most_files = self._most_files if most_files is None else most_files
            self._progress = progress
            self._rescan = True
            self._ready = False
            self._complete.clear()
            self._wake.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="calomel-index", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread and the worker. Takes milliseconds; cannot be started again."""
        self._stopped.set()
        process = self._process
        if process is not None:
            process.kill()
        with self._wake:
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def wait(self, seconds: float) -> bool:
        """Wait until there is nothing left to read; whether it is so."""
        return self._complete.wait(seconds)

    def refresh(self, paths: Sequence[Path]) -> None:
        """These files or folders have been created, changed or deleted."""
        with self._wake:
            self._paths.update(dict.fromkeys(paths))
            self._complete.clear()
            self._wake.notify()

    def rescan(self) -> None:
        """Anything may have changed: look at everything, and read what has another size or date."""
        with self._wake:
            self._rescan = True
            self._complete.clear()
            self._wake.notify()

    def hold(self, path: Path, text: str) -> None:
        """The text of an open document counts, not the disk's."""
        with self._wake:
            self._texts[str(path)] = text
        self.refresh((path,))

    def release(self, path: Path) -> None:
        """The disk counts again."""
        with self._wake:
            self._texts.pop(str(path), None)
        self.refresh((path,))

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    self._next()
                except Exception as error:  # noqa: BLE001 (a mistake of ours must not end the reading)
                    self._after_mistake(error)
        finally:
            self._let_go()

    def _let_go(self) -> str:
        """End the worker; how it ended."""
        process, self._process = self._process, None
        return "" if process is None else process.close()

    def _after_mistake(self, error: Exception) -> None:
        """Begin anew with another worker, and with all files."""
        self._restarts += 1
        self._failures += 1
        frame = traceback.extract_tb(error.__traceback__)[-1]
        # An error's own words may quote the user's text.
        LOG.error(
            "the index begins anew after %s at %s:%s", type(error).__name__, Path(frame.filename).name, frame.lineno
        )
        if self._restarts == 1:
            self._say("Reading the workspace failed and begins anew; the log says where.")
        self._let_go()
        self._batches.clear()
        self._stamps.clear()
        self._stopped.wait(min(_FIRST_WAIT * 2 ** (self._failures - 1), _LONGEST_WAIT))
        self.rescan()

    def _next(self) -> None:
        """Do the most urgent thing, or wait for one."""
        with self._wake:
            while not (self._paths or self._rescan or self._batches or self._stopped.is_set()):
                if not self._complete.is_set():
                    self._ready = True
                    self._failures = 0
                    self._complete.set()
                    self._tell()
                self._wake.wait()
            paths, self._paths = tuple(self._paths), {}
            rescan, self._rescan = self._rescan, False
        if rescan:
            self._walk_all()
        elif paths:
            self._look_at(paths)
        elif self._batches:
            self._read_batch(self._batches.popleft())
        if not self._batches:
            self._gather_scattered()

    def _walk_all(self) -> None:
        """Find what is new, changed or gone."""
        found: dict[str, Seen] = {}
        characters = 0
        breathe = self._breathing()
        for folder in self._folders:
            for seen in walk(folder, self._folders, self._permission, breathe):
                characters += seen.size
                if len(found) >= self._most_files or characters > MOST_CHARACTERS:
                    self._say(
                        f"Only the first {len(found)} files of the workspace are used for suggestions: it has more "
                        f"than {self._most_files} files or {MOST_CHARACTERS // 1_000_000} MB of source code."
                    )
                    break
                found[seen.file.path] = seen
        if self._stopped.is_set():
            return
        self._index.remove(path for path in self._index.paths() if path not in found)
        self._stamps = {path: stamp for path, stamp in self._stamps.items() if path in found}
        changed = [seen for path, seen in found.items() if self._stamps.get(path) != (seen.modified, seen.size)]
        self._batches.clear()
        self._read, self._found = 0, len(changed)
        self._plan(changed)

    def _look_at(self, paths: Sequence[Path]) -> None:
        """Read these files, and those below these folders; forget those that are gone."""
        breathe = self._breathing()
        changed: list[Seen] = []
        gone: list[str] = []
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                changed += walk(path, self._folders, self._permission, breathe)
                continue
            seen = see(path, self._folders, self._permission)
            if seen is not None:
                changed.append(seen)
            elif str(path) in self._index:
                gone.append(str(path))
            elif not path.exists():
                # It may have been a folder.
                gone += [each for each in self._index.paths() if each.startswith(f"{path}/")]
        self._index.remove(gone)
        for each in gone:
            self._stamps.pop(each, None)
        changed = [seen for seen in changed if self._is_news(seen)]
        room = max(0, self._most_files - len(self._index))
        changed = [seen for seen in changed if seen.file.path in self._index or (room := room - 1) >= 0]
        self._found += len(changed)
        # What the user has just saved comes before the files that nobody has looked at yet.
        for at in range(0, len(changed), _LARGEST_BATCH):
            self._batches.appendleft([self._take(seen) for seen in changed[at : at + _LARGEST_BATCH]])

    def _is_news(self, seen: Seen) -> bool:
        path = seen.file.path
        return path in self._texts or self._stamps.get(path) != (seen.modified, seen.size)

    def _take(self, seen: Seen) -> SourceFile:
        path = seen.file.path
        # A held text is no version of the disk: the stamp must not say that the disk is known.
        text = self._texts.get(path)
        self._stamps[path] = (-1, -1) if text is not None else (seen.modified, seen.size)
        return seen.file._replace(text=text)

    def _plan(self, changed: Sequence[Seen]) -> None:
        """Make batches that grow."""
        batch: list[SourceFile] = []
        size, limit = 0, _FIRST_BATCH
        for seen in changed:
            if batch and (len(batch) >= limit or size + seen.size > _BATCH_BYTES):
                self._batches.append(batch)
                batch, size, limit = [], 0, min(2 * limit, _LARGEST_BATCH)
            batch.append(self._take(seen))
            size += seen.size
        if batch:
            self._batches.append(batch)

    def _gather_scattered(self) -> None:
        """Have the files of many small segments read again, into one."""
        files = []
        for path in self._index.scattered():
            place = self._index.place(path)
            if place is not None:
                files.append(SourceFile(path, place.file.name, self._texts.get(path)))
        if files:
            self._found += len(files)
            self._batches.append(files)

    def _read_batch(self, batch: list[SourceFile]) -> None:
        try:
            if self._process is None:
                self._process = IndexProcess(self._command)
            segment, skipped = self._process.read(batch)
        except WorkerDied as error:
            self._after_death(batch, str(error))
            return
        self._deaths = 0
        self._index.remove(skipped)
        if segment.files:
            self._index.add(segment)
        self._count(len(batch))

    def _after_death(self, batch: list[SourceFile], why: str) -> None:
        """Try again with half of what it died of; a file that kills alone is left out."""
        ended = self._let_go()
        if self._stopped.is_set():
            return
        self._deaths += 1
        if self._deaths > _DEATHS:
            self._say(f"Suggestions use no other files: the indexing process does not stay alive ({ended or why}).")
            self._batches.clear()
            self._count(self._found - self._read)
            return
        # Once is no proof against a file: somebody may have ended the process.
        if len(batch) == 1 and self._deaths > 1:
            self._say(f"{batch[0].name} is not used for suggestions: reading it ends the indexing process ({ended}).")
            self._deaths = 0
            self._count(1)
            return
        if self._deaths == 1:
            self._say(f"The indexing process ended ({ended or why}) and is started again.")
        middle = (len(batch) + 1) // 2
        self._batches.extendleft(part for part in (batch[middle:], batch[:middle]) if part)

    def _count(self, files: int) -> None:
        self._read += files
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            with contextlib.suppress(RuntimeError):
                # The one who is told may be gone already.
                self._progress(self._read, self._found)

    def _breathing(self) -> Callable[[], bool]:
        """A call that lets the other threads run now and then, and says whether to go on."""
        until = time.monotonic() + _SLICE

        def breathe() -> bool:
            nonlocal until
            if time.monotonic() >= until:
                self._stopped.wait(_PAUSE)
                until = time.monotonic() + _SLICE
            return not self._stopped.is_set()

        return breathe
