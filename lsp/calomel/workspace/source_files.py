"""The files of a folder that belong in the index, and notifications of changes outside the editor."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import ObservedWatch

from calomel.code.languages import GRAMMARS, TABLES
from calomel.workspace.index_worker import LONGEST_FILE
from calomel.workspace.privacy import Privacy, Verdict
from calomel.workspace.segment import SourceFile

_FILES: Final = TABLES["files"]
_SUFFIXES: Final = frozenset(_FILES["suffixes"].split()).union(
    *(grammar.suffixes for grammar in GRAMMARS if grammar.name not in _FILES["data"].split())
)
_NAMES: Final = frozenset(_FILES["names"].split())
# Folders without code of the user's own; checking the rules for each of their files would take minutes.
PASSED_BY: Final = frozenset(_FILES["passed_by"].split())
# If the rules refuse all of these names in a folder, the whole folder is ignored.
_PROBES: Final = ("_.py", "_.ts", "_.c", "_")
_DEEPEST: Final = 40


class Seen(NamedTuple):
    """A file of the walk; its stamp (modification time in ns, size) tells whether it has changed since."""

    file: SourceFile
    stamp: tuple[int, int]


def is_source(path: Path) -> bool:
    """Whether the name is that of source code."""
    return path.suffix.lower() in _SUFFIXES or path.name.lower() in _NAMES


def _name(path: Path, folders: Sequence[Path]) -> Path | None:
    """The path within the innermost folder that contains it; None outside of all, and where nothing is read."""
    inside = [path.relative_to(folder) for folder in folders if path.is_relative_to(folder)]
    name = min(inside, key=lambda each: len(each.parts), default=None)
    return None if name is None or PASSED_BY.intersection(name.parts) else name


def see(path: Path, folders: Sequence[Path], permission: Privacy | None) -> Seen | None:
    """The file for the index; None when it does not belong there, or is gone.

    Links are not followed: their targets are found where they are, or do not belong to the folder.
    """
    if not is_source(path):
        return None
    try:
        state = path.lstat()
    except OSError:
        return None
    regular = stat.S_ISREG(state.st_mode)
    name = _name(path, folders)
    if name is None or not regular or not 0 < state.st_size <= LONGEST_FILE:
        return None
    verdict = Verdict(allowed=True) if permission is None else permission.allowed(path)
    if not verdict.allowed:
        return None
    return Seen(SourceFile(str(path), name.as_posix(), wanted=verdict.wanted), (state.st_mtime_ns, state.st_size))


def walk(top: Path, folders: Sequence[Path], permission: Privacy | None, breathe: Callable[[], bool]) -> Iterator[Seen]:
    """All files at and below `top`, those near the top first, in the order of their names.

    `breathe` is called for every entry: it may wait, and ends the walk by returning False.
    """
    left = deque([(top, 0)])
    while left:
        folder, depth = left.popleft()
        try:
            with os.scandir(folder) as entries:
                names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError:
            continue
        for name, is_folder in names:
            if not breathe():
                return
            path = folder / name
            if not is_folder:
                seen = see(path, folders, permission)
                if seen is not None:
                    yield seen
            elif name not in PASSED_BY and depth < _DEEPEST and can_hold(path, permission):
                left.append((path, depth + 1))


def can_hold(folder: Path, permission: Privacy | None) -> bool:
    """Whether a folder can contain a file that may be read."""
    return permission is None or any(permission.allowed(folder / probe).allowed for probe in _PROBES)


# A checkout or a build changes hundreds of files at once.
_MOMENT_SECONDS: Final = 0.5
# Each is a thread of the library.
_MOST_WATCHES: Final = 64
_CHANGES: Final = frozenset({"created", "deleted", "modified", "moved", "closed"})


class Watch:
    """Watches folders, and reports which paths changed, batched over a moment."""

    def __init__(
        self,
        changed: Callable[[Sequence[Path]], None],
        permission: Privacy | None = None,
        message: Callable[[str], None] | None = None,
    ) -> None:
        self._changed = changed
        self._permission = permission
        self._say = message or (lambda _text: None)
        self._lock = threading.Lock()
        self._starts = 0
        self._current: _Watches | None = None
        self._paths: dict[Path, None] = {}
        self._timer: threading.Timer | None = None

    def start(self, folders: Sequence[Path]) -> None:
        """Watch these folders instead of earlier ones, as soon as another thread has walked through them."""
        arguments = (_Watches(folders, self._permission, self._add, self._say), *self._forget())
        threading.Thread(target=self._replace, args=arguments, name="calomel-watch-start", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        before, _ = self._forget()
        if before is not None:
            before.stop()

    def _forget(self) -> tuple[_Watches | None, int]:
        """What was watched until now, to be stopped, and the number of this start or stop."""
        with self._lock:
            self._starts += 1
            self._paths.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            before, self._current = self._current, None
            return before, self._starts

    def _replace(self, watches: _Watches, before: _Watches | None, number: int) -> None:
        if before is not None:
            before.stop()
        if not watches.start():
            return
        with self._lock:
            # Another start or stop may have come meanwhile.
            is_last = number == self._starts
            if is_last:
                self._current = watches
        if not is_last:
            watches.stop()

    def _add(self, path: Path) -> None:
        with self._lock:
            self._paths[path] = None
            if self._timer is None:
                self._timer = threading.Timer(_MOMENT_SECONDS, self._tell)
                self._timer.daemon = True
                self._timer.start()

    def _tell(self) -> None:
        with self._lock:
            paths, self._paths, self._timer = tuple(self._paths), {}, None
        if paths:
            self._changed(paths)


class _Watches(FileSystemEventHandler):
    """Some folders, each watched for itself, and each of its subfolders with all that is below."""

    def __init__(
        self,
        folders: Sequence[Path],
        permission: Privacy | None,
        changed: Callable[[Path], None],
        say: Callable[[str], None],
    ) -> None:
        self._folders = tuple(folders)
        self._permission = permission
        self._changed = changed
        self._say = say
        self._is_full = False
        self._observer = Observer()
        # By folder, its watches: of which path, and whether of all below it.
        self._watches: dict[Path, dict[tuple[Path, bool], ObservedWatch]] = {folder: {} for folder in folders}

    def start(self) -> bool:
        """Begin; returns whether it is possible."""
        try:
            for folder in self._folders:
                self._follow(folder)
            self._observer.start()
        except OSError as error:
            self._observer.unschedule_all()
            if self._observer.is_alive():
                self._observer.stop()
            self._say_why(error)
            return False
        return True

    def stop(self) -> None:
        """End all watches."""
        self._observer.stop()
        self._observer.join(timeout=5.0)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called by the library on a change."""
        # A folder's own date changes with every file in it, which has its own event.
        if event.event_type not in _CHANGES or (event.is_directory and event.event_type == "modified"):
            return
        for each in (event.src_path, event.dest_path):
            path = Path(os.fsdecode(each))
            wanted = event.is_directory or is_source(path) or path.name == ".gitignore"
            if each and wanted and _name(path, self._folders) is not None:
                if event.is_directory and path.parent in self._watches:
                    self._came_or_went(path)
                self._changed(path)

    def _came_or_went(self, path: Path) -> None:
        """Watch a subfolder that is new; the watch of one that is gone would not see another one of its name."""
        watches = self._watches[path.parent]
        watch = watches.pop((path, True), None)
        if watch is not None:
            self._observer.unschedule(watch)
        # A folder with very many is watched with all that is below, and with what comes.
        if (path.parent, True) not in watches and not self._is_full:
            try:
                self._follow(path.parent)
            except OSError as error:
                self._say_why(error)

    def _follow(self, folder: Path) -> None:
        """Watch what is to be watched of a folder now, and nothing else of it."""
        watches, targets = self._watches[folder], self._targets(folder)
        for target in watches.keys() - targets:
            self._observer.unschedule(watches.pop(target))
        for path, recursive in targets:
            # One that is gone again has an event of its own.
            with contextlib.suppress(FileNotFoundError):
                if (path, recursive) not in watches:
                    watches[path, recursive] = self._observer.schedule(self, str(path), recursive=recursive)

    def _targets(self, folder: Path) -> list[tuple[Path, bool]]:
        """The folder itself, and each of its subfolders recursively, except those that are not read."""
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

    def _say_why(self, error: OSError) -> None:
        self._is_full = True
        self._say(
            "Calomel cannot watch more files, so it misses changes made outside the editor "
            f"({error.strerror or error}); on Linux, fs.inotify.max_user_watches and max_user_instances limit it."
        )
