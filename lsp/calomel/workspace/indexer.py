"""Keeps the index in sync with the disk and with what is typed: one thread that asks, one process that reads."""

from __future__ import annotations

import contextlib
import logging
import os
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

# About a hundred megabytes of index; the largest repositories have more, but nobody edits all of one.
MOST_FILES: Final = 20_000
MOST_CHARACTERS: Final = 256_000_000
# Of files that are copied from: seven bytes each.
MOST_TOKENS: Final = 20_000_000
# How often the user hears how many were found: looking through a large repository takes a minute.
_FOUND_AT_ONCE: Final = 500
# The first batches are small, to answer soon; the last ones are large, since a search visits every segment.
_FIRST_BATCH: Final = 16
_LARGEST_BATCH: Final = 512
_BATCH_BYTES: Final = 8_000_000
# This thread works for a millisecond and then pauses: others wait no longer than that for the interpreter's lock.
_SLICE: Final = 0.001
_PAUSE: Final = 0.001
# Halving a batch of 512 finds the one file that kills the worker within ten deaths.
_DEATHS: Final = 12
# After an error of ours everything is read again, at once the first time, later and later while it repeats.
_FIRST_WAIT: Final = 0.25
_LONGEST_WAIT: Final = 60.0

ShowMessage = Callable[[str], None]
ReportProgress = Callable[[int, int], None]


class Indexer:
    """Reads folders in the background. Every public method returns at once, and may be called from any thread."""

    def __init__(
        self,
        index: Index,
        permission: Privacy | None = None,
        message: ShowMessage | None = None,
        *,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._index = index
        self._permission = permission
        self._say = message or (lambda _text: None)
        self._command = command
        self._most_files = MOST_FILES
        self._folders: tuple[Path, ...] = ()
        self._progress: ReportProgress | None = None
        self._wake = threading.Condition()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._process: IndexProcess | None = None
        # Guarded by the lock of `_wake`: the paths to look at again; a rescan looks at all folders.
        self._paths: dict[Path, None] = {}
        self._rescan = False
        # Texts that count instead of the disk.
        self._texts: dict[str, str] = {}
        # Used by the thread only. A file read from the disk has the stamp of its version, a held text has None.
        self._batches: deque[list[Seen]] = deque()
        self._stamps: dict[str, tuple[int, int] | None] = {}
        self._deaths = 0
        self._read = 0
        self._total = 0
        # Whether everything has been read once; later changes do not reset it.
        self.ready = False
        self._complete = threading.Event()
        # How often reading restarted because of an error; the log says which.
        self.restarts = 0
        self._failures = 0

    def start(
        self, folders: Sequence[Path], progress: ReportProgress | None = None, *, most_files: int = MOST_FILES
    ) -> None:
        """Read the folders; called again, forget files that are not in the new ones.

        `progress` is called from the background with the numbers of files read and found, before any is read with 0 and
        those found so far, once more when everything is read.
        """
        with self._wake:
            self._folders = tuple(folders)
            self._most_files = most_files
            self._progress = progress
            self._rescan = True
            self.ready = False
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
        """Wait until there is nothing left to read; returns whether that is so."""
        return self._complete.wait(seconds)

    def refresh(self, paths: Sequence[Path]) -> None:
        """Read these files or folders again: they have been created, changed or deleted."""
        with self._wake:
            self._paths.update(dict.fromkeys(paths))
            self._complete.clear()
            self._wake.notify()

    def rescan(self) -> None:
        """Look at everything, and read what has another size or date: anything may have changed."""
        with self._wake:
            self._rescan = True
            self._complete.clear()
            self._wake.notify()

    def hold(self, path: Path, text: str) -> None:
        """Use the text of an open document instead of the disk's."""
        with self._wake:
            self._texts[str(path)] = text
        self.refresh((path,))

    def release(self, path: Path) -> None:
        """Use the disk again."""
        with self._wake:
            self._texts.pop(str(path), None)
        self.refresh((path,))

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    self._next()
                except Exception as error:  # noqa: BLE001 (an error of ours must not end the reading)
                    self._after_mistake(error)
        finally:
            self._let_go()

    def _let_go(self) -> str:
        """End the worker; returns how it ended."""
        process, self._process = self._process, None
        return "" if process is None else process.close()

    def _after_mistake(self, error: Exception) -> None:
        """Start again with another worker and all files."""
        self.restarts += 1
        self._failures += 1
        frame = traceback.extract_tb(error.__traceback__)[-1]
        # The error's message may quote the user's text.
        LOG.error(
            "the index is rebuilt after %s at %s:%s", type(error).__name__, Path(frame.filename).name, frame.lineno
        )
        if self.restarts == 1:
            self._say("Reading the workspace failed; Calomel tries again. See lsp.log.")
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
                    self.ready = True
                    self._failures = 0
                    self._complete.set()
                    self._tell()
                self._wake.wait()
            paths, self._paths = tuple(self._paths), {}
            rescan, self._rescan = self._rescan, False
        if rescan:
            self._look_at(self._folders, everything=True)
        elif paths:
            self._look_at(paths)
        elif self._batches:
            self._read_batch(self._batches.popleft())
        if not self._batches:
            self._gather_scattered()

    def _look_at(self, paths: Sequence[Path], *, everything: bool = False) -> None:
        """Read new and changed ones of these files, and of those below these folders; forget those that are gone."""
        files: dict[str, Seen] = {}
        breathe = self._breathing()
        room, characters = self._most_files - (0 if everything else len(self._index)), 0
        for path in paths:
            is_folder = os.path.isdir(path) and not os.path.islink(path)  # noqa: PTH112, PTH114 (which fail for some paths)
            one = None if is_folder else see(path, self._folders, self._permission)
            for seen in walk(path, self._folders, self._permission, breathe) if is_folder else filter(None, [one]):
                characters += seen.stamp[1]
                is_new = everything or seen.file.path not in self._index
                if not is_new or (room > 0 and characters <= MOST_CHARACTERS):
                    files[seen.file.path] = seen
                    room -= is_new
                    if everything and len(files) % _FOUND_AT_ONCE == 0 and self._progress is not None:
                        self._progress(0, len(files))
                elif everything:
                    self._say(
                        f"Suggestions use only the first {len(files)} files of the workspace: it has more than "
                        f"{self._most_files} files or {MOST_CHARACTERS // 1_000_000} MB of source code."
                    )
                    break
        if self._stopped.is_set():
            return
        below = tuple(f"{path}/" for path in paths if str(path) not in files)
        looked_at = self._index.paths() if everything or below else ()
        gone = [each for each in looked_at if each not in files and (everything or f"{each}/".startswith(below))]
        self._index.remove(gone)
        for each in gone:
            self._stamps.pop(each, None)
        if everything:
            self._batches.clear()
            self._read = self._total = 0
        changed = [each for path, each in files.items() if path in self._texts or self._stamps.get(path) != each.stamp]
        self._total += len(changed)
        # A file that the user has just saved comes before files that have not been read yet.
        self._batches.extendleft(reversed(_batches(changed, _FIRST_BATCH if everything else _LARGEST_BATCH)))

    def _gather_scattered(self) -> None:
        """Have the files of many small segments read again, into one."""
        files = [(path, place) for path in self._index.scattered() if (place := self._index.place(path)) is not None]
        if files:
            self._total += len(files)
            sources = [SourceFile(path, place.file.name, wanted=place.file.wanted) for path, place in files]
            self._batches.append([Seen(file, self._stamps.get(file.path) or (-1, -1)) for file in sources])

    def _read_batch(self, batch: list[Seen]) -> None:
        files = [seen.file._replace(text=self._texts.get(seen.file.path)) for seen in batch]
        for seen, file in zip(batch, files, strict=True):
            self._stamps[file.path] = seen.stamp if file.text is None else None
        try:
            if self._process is None:
                self._process = IndexProcess(self._command)
            segment, skipped = self._process.read(files, ngrams=self._index.tokens < MOST_TOKENS)
        except WorkerDied as error:
            self._after_death(batch, str(error))
            return
        self._deaths = 0
        self._index.remove(skipped)
        if segment.files:
            self._index.add(segment)
        self._tell(len(batch))

    def _after_death(self, batch: list[Seen], why: str) -> None:
        """Try again with half of the batch that it died of; a file that kills it alone is skipped."""
        ended = self._let_go()
        if self._stopped.is_set():
            return
        self._deaths += 1
        if self._deaths > _DEATHS:
            why = f"the indexing process keeps failing ({ended or why})"
            self._say(f"Suggestions cannot use other files: {why}. Restart Calomel to try again.")
            self._batches.clear()
            self._tell(self._total - self._read)
            return
        # One death is no proof against a file: somebody may have killed the process.
        if len(batch) == 1 and self._deaths > 1:
            self._say(
                f"Calomel cannot index {batch[0].file.name} ({ended}), so suggestions in other files ignore it. "
                "To hide it completely, add it to privacy.ignore."
            )
            self._deaths = 0
            self._tell(1)
            return
        if self._deaths == 1:
            self._say(f"The indexing process stopped ({ended or why}) and restarts.")
        middle = (len(batch) + 1) // 2
        self._batches.extendleft(part for part in (batch[middle:], batch[:middle]) if part)

    def _tell(self, files: int = 0) -> None:
        """Report that this many more files have been read."""
        self._read += files
        if self._progress is not None:
            with contextlib.suppress(RuntimeError):
                # The receiver may be gone already.
                self._progress(self._read, self._total)

    def _breathing(self) -> Callable[[], bool]:
        """A function that lets the other threads run now and then, and returns whether to go on."""
        until = time.monotonic() + _SLICE

        def breathe() -> bool:
            nonlocal until
            if time.monotonic() >= until:
                self._stopped.wait(_PAUSE)
                until = time.monotonic() + _SLICE
            return not self._stopped.is_set()

        return breathe


def _batches(changed: Sequence[Seen], limit: int) -> list[list[Seen]]:
    """Batches of growing size, starting with `limit` files."""
    batches: list[list[Seen]] = []
    size = 0
    for seen in changed:
        if not batches or len(batches[-1]) >= limit or size + seen.stamp[1] > _BATCH_BYTES:
            limit = min(2 * limit, _LARGEST_BATCH) if batches else limit
            batches.append([])
            size = 0
        batches[-1].append(seen)
        size += seen.stamp[1]
    return batches
