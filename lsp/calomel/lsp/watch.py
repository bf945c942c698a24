"""Tells when a settings file was written: few editors do, and none does outside of its workspace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

LOG: Final = logging.getLogger(__name__)

Changed = Callable[[set[Path]], None]


class SettingsWatch(FileSystemEventHandler):
    """Watches a few files through the folders they lie in. A folder that is not there is not watched."""

    def __init__(self) -> None:
        self._observer: Any = None
        self._files: set[Path] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed: Changed = lambda _: None

    def start(self, files: Iterable[Path], changed: Changed) -> None:
        """Watch these files, and no longer those of before; `changed` is called on the running event loop."""
        self.stop()
        self._loop, self._changed, self._files = asyncio.get_running_loop(), changed, set(files)
        folders = {path.parent for path in self._files if path.parent.is_dir()}
        if not folders:
            return
        self._observer = Observer()
        self._observer.daemon = True
        try:
            for folder in folders:
                self._observer.schedule(self, str(folder))
            self._observer.start()
        except OSError:
            # No watches left on this machine: `calomel.reloadSettings` does it by hand.
            LOG.warning("settings files are not watched")
            self._observer = None

    def stop(self) -> None:
        """Watch nothing."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """From the observer's thread."""
        if event.event_type in {"opened", "closed_no_write"}:
            return
        paths = {Path(str(path)) for path in (event.src_path, event.dest_path) if path}
        found = paths & self._files
        if found and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed, found)
