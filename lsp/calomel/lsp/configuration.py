"""Where settings come from, and what happens when they change.

In rising order: the user's `calomel.toml`, the workspace's, `initializationOptions`, and what the editor answers to
`workspace/configuration` or pushes with `workspace/didChangeConfiguration`. A wrong value is shown once, by its name,
and replaced by its default.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from calomel.lsp.client import Client, own_options, settings_in
from calomel.lsp.notices import Notices
from calomel.lsp.protocol import EditorLink
from calomel.workspace.settings import Settings, load_settings

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


SECTION: Final = "calomel"
FILE_NAME: Final = "calomel.toml"
# A client that does not answer gets the settings that are known.
ANSWER_SECONDS: Final = 2.0


class Configuration:
    """The settings of a session.

    Args:
        applied: learns of each new set of settings.
    """

    def __init__(
        self,
        link: EditorLink,
        client: Client,
        notices: Notices,
        folders: Callable[[], tuple[Path, ...]],
        user_file: Path,
    ) -> None:
        self._link = link
        self._client = client
        self._notices = notices
        self._folders = folders
        self._user_file = user_file
        self._editor: Mapping[str, Any] = {}
        self._said: Mapping[str, Any] = settings_in(client.options)
        self.applied: Callable[[Settings], None] = lambda _: None
        self.settings = self._load()[0]

    async def pull(self) -> None:
        """Ask the editor, if it can be asked, and apply what results."""
        if self._client.configuration:
            item = types.ConfigurationItem(section=SECTION, scope_uri=self._scope())
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    answers = await self._link.workspace_configuration_async(types.ConfigurationParams(items=[item]))
            except (TimeoutError, JsonRpcException):
                LOG.info("the editor did not say its configuration")
            else:
                answer = answers[0] if answers else None
                self._editor = answer if isinstance(answer, dict) else {}
                if self._client.configuration_replaces and isinstance(answer, dict):
                    # Else a setting that the user takes back would stay.
                    self._said = {}
        self._apply()

    async def reload(self) -> list[str]:
        """Read everything again; the problems found."""
        await self.pull()
        return self._problems

    async def changed(self, params: types.DidChangeConfigurationParams) -> None:
        """Handle `workspace/didChangeConfiguration`; many clients send null, or settings of other servers."""
        if isinstance(params.settings, dict):
            own = own_options(params.settings)
            if own:
                self._editor = own
        await self.pull()

    def files_changed(self, paths: set[Path]) -> bool:
        """Whether a settings file is among these; if so, it is read again."""
        if not paths & {self._user_file, *(folder / FILE_NAME for folder in self._folders())}:
            return False
        self._apply()
        return True

    def folders_changed(self) -> None:
        """Other folders may have other settings files."""
        self._apply()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that settings are read from, whether or not they are there."""
        return (self._user_file, *(folder / FILE_NAME for folder in self._folders()))

    def _apply(self) -> None:
        settings, self._problems = self._load()
        if settings != self.settings:
            self.settings = settings
            self.applied(settings)

    def _load(self) -> tuple[Settings, list[str]]:
        folders = self._folders()
        settings, problems = load_settings(
            user_toml=self._user_file,
            workspace_toml=folders[0] / FILE_NAME if folders else None,
            initialization_options=self._said,
            configuration=settings_in(self._editor),
        )
        said = [str(problem) for problem in problems]
        for problem in said:
            self._notices.warn(problem)
        self._problems = said
        return settings, said

    def _scope(self) -> str | None:
        folders = self._folders()
        return folders[0].as_uri() if folders else None
