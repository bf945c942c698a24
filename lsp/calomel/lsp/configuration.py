"""Where settings come from, and what happens when they change.

From lowest to highest precedence: the user's `calomel.toml`, the workspace's, `initializationOptions`, and what the
editor answers to `workspace/configuration` or pushes with `workspace/didChangeConfiguration`. The last may come from a
repository and may set no more than the workspace's file, unless the client filters it (`configuration_filtered`). A
wrong value is reported once, by its name, and replaced by its default. The files are watched through their folders, if
these exist; that of the user through the nearest folder above it that does.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from calomel.lsp.client import own_options, settings_in
from calomel.lsp.protocol import Editor
from calomel.workspace.settings import BackendSettings, Settings, load_settings, user_settings_path

LOG: Final = logging.getLogger(__name__)

SECTION: Final = "calomel"
FILE_NAME: Final = "calomel.toml"
# If a client does not answer in time, the known settings apply.
ANSWER_SECONDS: Final = 2.0


class Configuration(FileSystemEventHandler):
    """The settings of a session.

    Args:
        editor: has settings, and is told about wrong ones.
        applied: called with each new set of settings.
    """

    def __init__(self, editor: Editor, applied: Callable[[Settings], None]) -> None:
        self.problems: list[str] = []
        self._editor = editor
        self._applied = applied
        self._folders = editor.client.folders
        self._user_file = user_settings_path()
        self._answered: Mapping[str, Any] = {}
        self._initial: Mapping[str, Any] = settings_in(editor.client.options)
        self._loop = asyncio.get_running_loop()
        self._observer: Any = None
        # What the user chose in this session, and the settings that said otherwise.
        self._chosen: tuple[BackendSettings, BackendSettings] | None = None
        self.settings = self._load()

    async def pull(self) -> None:
        """Ask the editor, if it answers such requests, then read all sources again and apply the result."""
        client = self._editor.client
        if client.configuration:
            scope = self._folders[0].as_uri() if self._folders else None
            params = types.ConfigurationParams([types.ConfigurationItem(section=SECTION, scope_uri=scope)])
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    answers = await self._editor.protocol.send_request_async(types.WORKSPACE_CONFIGURATION, params)
            except (TimeoutError, JsonRpcException):
                LOG.info("the editor did not send its configuration")
            else:
                answer = answers[0] if isinstance(answers, list) and answers else None
                self._answered = answer if isinstance(answer, dict) else {}
                if client.configuration_replaces and isinstance(answer, dict):
                    # Otherwise a setting that the user removes would stay.
                    self._initial = {}
        self._apply()

    async def changed(self, params: types.DidChangeConfigurationParams) -> None:
        """Handle `workspace/didChangeConfiguration`; many clients send null, or settings of other servers."""
        if isinstance(params.settings, dict):
            self._answered = own_options(params.settings) or self._answered
        await self.pull()

    def folders_changed(self, folders: tuple[Path, ...]) -> None:
        """Other folders may have other settings files."""
        self._folders = folders
        self._apply()

    def choose(self, server: BackendSettings) -> None:
        """Another model answers from now on, until the settings name one themselves."""
        self._chosen = self._read().backend, server
        self._apply()

    def watch(self) -> None:
        """Watch the files that settings are read from, and stop watching earlier ones."""
        self.unwatch()
        self._observer = Observer()
        self._observer.daemon = True
        try:
            folders = {path.parent for path in self._files if path.parent.is_dir()}
            for folder in {*folders, next(each for each in self._user_file.parents if each.is_dir())}:
                self._observer.schedule(self, str(folder))
            self._observer.start()
        except OSError:
            # This machine has no watches left: `calomel.reloadSettings` reloads by hand.
            LOG.warning("settings files are not watched")
            self._observer = None

    def unwatch(self) -> None:
        """Stop watching."""
        if self._observer is not None:
            # It waits for half a second if something was moved just now.
            threading.Thread(target=self._observer.stop, daemon=True).start()
            self._observer = None

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called on the observer's thread."""
        paths = {Path(str(path)) for path in (event.src_path, event.dest_path) if path}
        if event.event_type in {"opened", "closed_no_write"} or self._loop.is_closed():
            return
        if event.event_type in {"created", "moved"} and paths & set(self._user_file.parents):
            self._loop.call_soon_threadsafe(self._folder_appeared)
        elif paths & self._files:
            self._loop.call_soon_threadsafe(self._apply)

    def _folder_appeared(self) -> None:
        if self._observer is not None:
            self.watch()
            self._apply()

    @property
    def _files(self) -> set[Path]:
        """Whether or not they exist."""
        return {self._user_file, *(folder / FILE_NAME for folder in self._folders)}

    def _apply(self) -> None:
        settings = self._load()
        if settings != self.settings:
            self.settings = settings
            self._applied(settings)

    def _load(self) -> Settings:
        settings = self._read()
        if self._chosen is not None:
            earlier, chosen = self._chosen
            if settings.backend == earlier:
                return replace(settings, backend=chosen)
            self._chosen = None
        return settings

    def _read(self) -> Settings:
        settings, problems = load_settings(
            user_toml=self._user_file,
            workspace_toml=self._folders[0] / FILE_NAME if self._folders else None,
            more_tomls=[folder / FILE_NAME for folder in self._folders[1:]],
            initialization_options=self._initial,
            configuration=settings_in(self._answered),
            filtered=self._editor.client.configuration_filtered,
        )
        if settings.suggest.show == "hint" and not self._editor.client.extensions:
            # It could show no mark.
            settings = replace(settings, suggest=replace(settings.suggest, show="on_request"))
        self.problems = [str(problem) for problem in problems]
        for problem in self.problems:
            self._editor.warn(problem)
        return settings
