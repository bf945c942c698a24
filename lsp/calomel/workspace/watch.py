"""Hears of files that change outside of the editor."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from calomel.workspace.source_files import PASSED_BY, Permission, can_hold, is_source

# A checkout or a build touches hundreds of files within moments; they are told of at once.
_QUIET_SECONDS: Final = 0.3
_LONGEST_WAIT: Final = 3.0
# Each is a thread of the library.
_MOST_WATCHES: Final = 64
_CHANGES: Final = frozenset({"created", "deleted", "modified", "moved", "closed"})


class Watch:
    """Watches folders, and tells which paths changed once it has been quiet for a while."""

    def __init__(
        self,
        changed: Callable[[Sequence[Path]], None],
        permission: Permission | None = None,
        message: Callable[[str], None] | None = None,
    ) -> None:
        self._permission = permission
        self._say = message or (lambda _text: None)
        self._observer: BaseObserver | None = None
        self._debounce = Debounce(changed)

    def start(self, folders: Sequence[Path]) -> None:
        """Watch these folders instead of those before. Walks through them: not for the thread that answers."""
        self.stop()
        observer = Observer()
        handler = _Handler(self._debounce.add)
        try:
            for folder in folders:
                for path, recursive in self._targets(folder):
                    observer.schedule(handler, str(path), recursive=recursive)
            observer.start()
        except OSError as error:
            observer.unschedule_all()
            if observer.is_alive():
                observer.stop()
            self._say(
                "Files that change outside of the editor are not noticed, since the system watches no more of them "
                f"({error.strerror or error}); on Linux, fs.inotify.max_user_watches and max_user_instances limit it."
            )
            return
        self._observer = observer

    def stop(self) -> None:
        """Watch nothing any more."""
        observer, self._observer = self._observer, None
        self._debounce.cancel()
        if observer is not None:
            observer.stop()
            observer.join(timeout=5.0)

    def _targets(self, folder: Path) -> list[tuple[Path, bool]]:
        """The folder alone, and each of its own folders with all below, but for those that nobody reads."""
        try:
            with os.scandir(folder) as entries:
                inner = sorted(
                    entry.name
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) and entry.name not in PASSED_BY
                )
        except OSError:
            return []
        inside = [folder / name for name in inner if can_hold(folder / name, self._permission)]
        if len(inside) > _MOST_WATCHES:
            return [(folder, True)]
        return [(folder, False), *((path, True) for path in inside)]


class _Handler(FileSystemEventHandler):
    def __init__(self, add: Callable[[Path], None]) -> None:
        self._add = add

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type not in _CHANGES:
            return
        for each in (event.src_path, event.dest_path):
            path = Path(os.fsdecode(each)) if each else None
            if path is None or PASSED_BY.intersection(path.parts):
                continue
            # A folder's own date changes with every file in it, which is told of by itself.
            if event.is_directory and event.event_type == "modified":
                continue
            if event.is_directory or is_source(path) or path.name == ".gitignore":
                self._add(path)


class Debounce:
    """Collects paths, and passes them on when none came for a moment, or when the first has waited long."""

    def __init__(
        self,
        changed: Callable[[Sequence[Path]], None],
        quiet: float = _QUIET_SECONDS,
        longest: float = _LONGEST_WAIT,
        timer: Callable[[float, Callable[[], None]], threading.Timer] = threading.Timer,
    ) -> None:
        self._changed = changed
        self._quiet = quiet
        self._longest = longest
        self._make_timer = timer
        self._lock = threading.Lock()
        self._paths: dict[Path, None] = {}
        self._timer: threading.Timer | None = None
        self._rounds = 0
        self._news = False

    def add(self, path: Path) -> None:
        """A path has changed."""
        with self._lock:
            self._paths[path] = None
            self._news = True
            if self._timer is None:
                self._rounds = 0
                self._arm()

    def cancel(self) -> None:
        """Forget what was collected."""
        with self._lock:
            self._paths.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _arm(self) -> None:
        self._news = False
        self._timer = self._make_timer(self._quiet, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def _ring(self) -> None:
        with self._lock:
            self._rounds += 1
            if self._news and self._rounds * self._quiet < self._longest:
                self._arm()
                return
            paths, self._paths = tuple(self._paths), {}
            self._timer = None
        if paths:
            self._changed(paths)
