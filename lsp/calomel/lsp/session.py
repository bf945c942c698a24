"""One editor's session: the parts of the house put together, and each method given to the part that serves it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from lsprotocol import types

from calomel.lsp import connection, transport
from calomel.lsp.client import Client, check_status, local_path, nothing, ok, sign_in, sign_out
from calomel.lsp.commands import Commands, ContextView, account_of
from calomel.lsp.configuration import Configuration, SettingsWatch
from calomel.lsp.connection import Door, Message
from calomel.lsp.log import log_path, open_log, set_level
from calomel.lsp.notices import Connect, Lateness, ModelLink, Notices, Progress, State
from calomel.lsp.offers import Feedback
from calomel.lsp.protocol import EditorLink, Handler, InvalidParamsError
from calomel.lsp.services import Figures, Rooms
from calomel.lsp.suggestions import InlineCompletions, NextEdits
from calomel.lsp.text_sync import Cursors, TextSync
from calomel.lsp.transport import Transport
from calomel.suggest.completer import Completer, CompleterError
from calomel.suggest.launch import version
from calomel.suggest.runtime_file import DEAD_THREADS, DeadThread
from calomel.workspace.documents import Encoding
from calomel.workspace.settings import ServerSettings, Settings, user_settings_path

LOG: Final = logging.getLogger(__name__)


CompleterFactory = Callable[[ServerSettings], Awaitable[Completer]]


class Session:
    """Everything between `initialize` and `exit`.

    Args:
        client: who is there.
        send: sends a message to it.
        completer_factory: makes the completer; None for the shared engine server.
    """

    def __init__(
        self,
        client: Client,
        send: Callable[[Message], None],
        *,
        completer_factory: CompleterFactory | None,
        clock: Callable[[], float],
        log: Path,
    ) -> None:
        self.figures = Figures()
        self._client = client
        self._clock = clock
        self._factory = completer_factory
        self._begun = False
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._link = EditorLink(send)
        self._notices = Notices(self._link, client)
        self._folders = client.folders
        self._configuration = Configuration(
            self._link, client, self._notices, lambda: self._folders, user_settings_path()
        )
        self._model = ModelLink(self._connect(), self._state, clock, Lateness(self._notices.warn))
        encoding = Encoding(client.encoding)
        self._rooms = Rooms(
            self._configuration.settings, self._folders, encoding, self._model, clock, self._warn_from_elsewhere
        )
        workspace, suggester = self._rooms.workspace, self._rooms.suggester
        self._sync = TextSync(workspace, self._notices.warn)
        self._sync.folders_changed = self._folders_changed
        self._cursors = Cursors(workspace, self._sync, encoding)
        self._feedback = Feedback(client, workspace, suggester)
        self._inline = InlineCompletions(self._cursors, suggester, self._feedback, self._notices)
        self._edits = NextEdits(client, self._cursors, suggester, self._feedback, self._notices)
        context = ContextView(workspace, self._cursors, self._rooms.builder, self._rooms.budget)
        self._commands = Commands(suggester, self._model, self._configuration, context, log, clock)
        self._commands.changed = self._tell_state
        self._commands.index = lambda: self._rooms.index_status
        self._configuration.applied = self._apply
        self._watch = SettingsWatch()
        self._link.protocol.handlers = self._handlers()
        self._link.protocol.misunderstood = self._sync.misunderstood
        DEAD_THREADS.tell.add(self._thread_died)
        set_level(self._configuration.settings.log.level)

    def receive(self, message: Message) -> None:
        """Handle one message."""
        self._link.protocol.receive(message)

    def note(self, what: str) -> None:
        """To the log."""
        LOG.warning("%s", what)

    async def stop(self) -> None:
        """The client asked for the end: what is being served is cancelled, and answered so."""
        self._link.protocol.cancel_all()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Settle outcomes, let go of files, threads and connections."""
        DEAD_THREADS.tell.discard(self._thread_died)
        self._link.protocol.cancel_all()
        for task in self._tasks:
            task.cancel()
        self._watch.stop()
        await self._rooms.aclose()
        await self._model.aclose()

    def _handlers(self) -> dict[str, Handler]:
        sync, feedback = self._sync, self._feedback
        handlers: dict[str, Handler] = {
            types.INITIALIZED: self._initialized,
            types.SET_TRACE: nothing,
            types.WINDOW_WORK_DONE_PROGRESS_CANCEL: nothing,
            types.TEXT_DOCUMENT_DID_OPEN: self._opened,
            types.TEXT_DOCUMENT_DID_CHANGE: sync.changed,
            types.TEXT_DOCUMENT_DID_SAVE: sync.saved,
            types.TEXT_DOCUMENT_DID_CLOSE: self._closed,
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: sync.folders,
            types.WORKSPACE_DID_CHANGE_CONFIGURATION: self._configuration.changed,
            types.WORKSPACE_DID_CHANGE_WATCHED_FILES: self._files_changed,
            types.TEXT_DOCUMENT_INLINE_COMPLETION: self._inline.inline,
            types.TEXT_DOCUMENT_CODE_ACTION: self._edits.actions,
            types.WORKSPACE_EXECUTE_COMMAND: self._commands.execute,
            "textDocument/copilotInlineEdit": self._edits.copilot,
            "textDocument/didShowCompletion": feedback.did_show_completion,
            "textDocument/didShowInlineEdit": feedback.did_show_inline_edit,
            "textDocument/didPartiallyAcceptCompletion": feedback.did_partially_accept,
            "textDocument/didFocus": feedback.did_focus,
            "checkStatus": check_status,
            "signIn": sign_in,
            "signInInitiate": sign_in,
            "signInConfirm": check_status,
            "signOut": sign_out,
            "getVersion": self._version,
            "setEditorInfo": ok,
            "didChangeStatus": nothing,
            "notifyShown": ok,
            "notifyAccepted": ok,
            "notifyRejected": ok,
        }
        if self._client.completion_item:
            handlers[types.TEXT_DOCUMENT_COMPLETION] = self._inline.popup
        if self._client.debug:
            handlers["calomel/debug/document"] = self._debug_document
            handlers["calomel/debug/figures"] = lambda _: self.figures.report()
        return handlers

    # The session's beginning.

    async def _initialized(self, _: object) -> None:
        await self._begin()

    async def _begin(self) -> None:
        """Settings first, since they say which server; then the model and the index, in the background."""
        if self._begun:
            return
        self._begun = True
        await self._configuration.pull()
        self._spawn(self._load_model())
        self._spawn(self._index())
        self._watch.start(self._configuration.files, self._settings_changed)

    async def _load_model(self) -> None:
        progress = Progress(self._link, self._client, "Calomel")
        self._model.start()
        await progress.begin("loading the model")
        try:
            info = await self._model.info()
        except CompleterError:
            # The state says why, once.
            progress.end()
            return
        progress.end(f"{info.id} is ready")
        self._tell_state()
        await self._rooms.model_is(info)

    async def _index(self) -> None:
        """Read the workspace, and tell the client how far it is."""
        if not self._rooms.indexes:
            await self._rooms.index((), lambda _share: None)
            return
        progress = Progress(self._link, self._client, "Calomel: reading the workspace")
        await progress.begin(measured=True)
        try:
            await self._rooms.index(self._folders, progress.report)
        finally:
            progress.end()

    def _warn_from_elsewhere(self, message: str) -> None:
        with contextlib.suppress(RuntimeError):
            # The session may have ended meanwhile.
            self._loop.call_soon_threadsafe(self._notices.warn, message)

    def _thread_died(self, dead: DeadThread) -> None:
        self._warn_from_elsewhere(f"Calomel: {account_of(dead)}")

    # Changes of what surrounds the documents.

    def _apply(self, settings: Settings) -> None:
        set_level(settings.log.level)
        before = self._rooms.reading
        server_changed = self._rooms.apply(settings)
        if self._begun and self._rooms.reading != before:
            self._spawn(self._index())
        if server_changed and self._begun:
            self._spawn(self._model.reconnect(self._connect()))
        self._tell_state()

    def _settings_changed(self, paths: set[Path]) -> None:
        self._configuration.files_changed(paths)

    def _files_changed(self, params: types.DidChangeWatchedFilesParams) -> None:
        paths = {path for change in params.changes if (path := local_path(change.uri)) is not None}
        self._configuration.files_changed(paths)
        self._rooms.files_changed(tuple(paths))

    def _folders_changed(self, folders: tuple[Path, ...]) -> None:
        self._folders = folders
        self._rooms.folders_changed(folders)
        self._configuration.folders_changed()
        self._watch.start(self._configuration.files, self._settings_changed)
        if self._begun:
            self._spawn(self._index())

    def _opened(self, params: types.DidOpenTextDocumentParams) -> None:
        # No coroutine: the next message may be about this document already.
        self._sync.opened(params)
        # A client may never say `initialized`.
        if not self._begun:
            self._spawn(self._begin())

    def _closed(self, params: types.DidCloseTextDocumentParams) -> None:
        self._sync.closed(params)
        self._cursors.forget(params.text_document.uri)

    # The model.

    def _connect(self) -> Connect:
        server = self._configuration.settings.server

        async def connect() -> Completer:
            if self._factory is not None:
                return await self._factory(server)
            from calomel.suggest.launch import connect as find_or_start

            return await find_or_start(server, self._folders)

        return connect

    def _state(self, state: State, message: str) -> None:
        off = self._rooms.suggester.status().off if hasattr(self, "_rooms") else None
        self._notices.status("off" if off else state, message)

    def _tell_state(self) -> None:
        status = self._rooms.suggester.status()
        if status.off:
            self._notices.status("off", status.off.message)
        else:
            self._notices.status(self._model.state, self._model.message)

    # Small answers.

    def _version(self, _: Mapping[str, Any]) -> dict[str, str]:
        return {"version": version(), "buildType": "prod", "runtimeVersion": "python"}

    def _debug_document(self, params: Mapping[str, Any]) -> dict[str, Any]:
        document = self._rooms.workspace.documents.get(str(params.get("uri")))
        if document is None:
            raise InvalidParamsError("The document is not open.")
        return {"text": document.text, "version": document.version, "lost": self._sync.lost(document.uri)}

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            from calomel.lsp.log import describe

            LOG.error("%s failed: %s", task.get_name(), describe(error))


# What a backlog of messages may take before answers and timers get their turn.
TURN_SECONDS: Final = 0.004
# Nobody waits longer for an editor to close.
CLOSING_SECONDS: Final = 1.0


class Running:
    """One session.

    Args:
        door: where messages come in; its client may be there already.
        completer_factory: makes the model's completer; None for the shared engine server.
        clock: seconds that only grow.
        log: where the log goes; None for the user's state folder.
    """

    def __init__(
        self, door: Door, completer_factory: CompleterFactory | None, clock: Callable[[], float], log: Path | None
    ) -> None:
        self._door = door
        self._completer_factory = completer_factory
        self._clock = clock
        self._log = log or log_path()
        self._session: Session | None = None
        self._chunks: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._ended = False

    async def serve(self, transport: Transport) -> int:
        """Serve until the client leaves; the exit status that the specification asks for."""
        self._end_at_signals()
        transport.start(self._arrive)
        if self._door.client is not None:
            self._begin(self._door.client)
        turn = time.perf_counter()
        while self._door.exit_code is None and not self._door.gone:
            message = self._door.next()
            if message is not None:
                turn = await _next_turn(turn)  # reading a message of a megabyte takes its time, too
                await self._handle(message)
                turn = await _next_turn(turn)
            elif self._door.exit_code is None:
                if self._ended and not self._chunks:
                    break
                await self._arrived.wait()
                self._arrived.clear()
                while self._chunks:
                    self._door.feed(self._chunks.popleft())
                turn = time.perf_counter()
        if self._session is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._session.aclose()
        return self._door.end_code

    def _end_at_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                # Not in threads, where tests run it.
                with contextlib.suppress(RuntimeError, ValueError):
                    loop.add_signal_handler(number, self._end)

    async def _handle(self, message: Message) -> None:
        method, session = message.get("method"), self._session
        if method == "initialize" and self._door.client is not None:
            self._begin(self._door.client)
        elif session is None:
            return
        elif method == "shutdown":
            self._door.shut_down()
            await session.stop()
            self._door.send(connection.result_message(message["id"], None))
        else:
            session.receive(message)
            if method == "textDocument/didChange":
                session.figures.note(time.perf_counter() - self._door.began)
            elif "id" in message:
                # A question is about the text as it is now: let its handler begin before the next message.
                await asyncio.sleep(0)
                await asyncio.sleep(0)

    def _begin(self, client: Client) -> None:
        open_log(self._log)
        self._session = Session(
            client, self._door.send, completer_factory=self._completer_factory, clock=self._clock, log=self._log
        )
        self._door.note = self._session.note
        if client.process_id is None:
            return
        loop = asyncio.get_running_loop()

        def gone() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._end)

        transport.watch_parent(client.process_id, gone)

    def _arrive(self, data: bytes) -> None:
        if data:
            self._chunks.append(data)
        else:
            self._ended = True
        self._arrived.set()

    def _end(self) -> None:
        self._ended = True
        self._chunks.clear()
        self._arrived.set()


async def _next_turn(began: float) -> float:
    """Let others have theirs where this one has lasted long enough; when the one that goes on now began."""
    if time.perf_counter() - began <= TURN_SECONDS:
        return began
    await asyncio.sleep(0)
    return time.perf_counter()
