"""One editor's session: puts the parts together, and routes each method to the part that serves it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from calomel.infer.client import Connect, ModelClient
from calomel.infer.completer import Completer, CompleterError, ModelInfo, version
from calomel.infer.models import Models
from calomel.lsp.client import ANSWERS, Client, local_path
from calomel.lsp.commands import Commands, ModelCommands
from calomel.lsp.configuration import Configuration
from calomel.lsp.connection import Connection, Transport, watch_parent
from calomel.lsp.log import log_path, open_log, set_level
from calomel.lsp.protocol import Editor, Progress
from calomel.lsp.services import Services
from calomel.lsp.suggestions import Suggestions, place_of
from calomel.lsp.text_sync import Cursor, TextSync
from calomel.storage import ENDING
from calomel.storage.failures import describe
from calomel.workspace.settings import BackendSettings, Settings

if TYPE_CHECKING:
    from calomel.infer.listener import Listener

LOG: Final = logging.getLogger(__name__)

# How long a backlog of messages may run before responses and timers get their turn.
TURN_SECONDS: Final = 0.004
# What a client without our extensions offers while the model's server is away.
MEANWHILE: Final = "Use nano meanwhile"
# Closing an editor waits no longer than this.
CLOSING_SECONDS: Final = 1.0


async def serve(
    connection: Connection,
    transport: Transport,
    completer_factory: Connect | None,
    clock: Callable[[], float],
    log: Path | None,
) -> int:
    """Serve until the client leaves; returns the exit status that the specification asks for.

    Args:
        connection: yields messages; its client may have been greeted already.
        transport: yields bytes.
        completer_factory: makes the model's completer; None for the shared engine server.
        clock: monotonic seconds.
        log: the path of the log; None for the user's state folder.
    """
    chunks: asyncio.Queue[bytes] = asyncio.Queue()

    def end() -> None:
        connection.ended = True
        chunks.put_nowait(b"")

    begin = partial(Session, connection, end, completer_factory, clock, log or log_path())
    _at_signals(end)
    transport.start(chunks.put_nowait)
    session = None if connection.client is None else begin(connection.client)
    turn = time.perf_counter()
    while not connection.ended:
        message = connection.next()
        turn = await _next_turn(turn)  # parsing a message of a megabyte takes time, too
        if message is None:
            if not connection.ended:
                data = await chunks.get()
                if not data:
                    break
                connection.feed(data)
                transport.handled()
        elif session is not None:
            session.receive(message)
            if "id" in message:
                # A request is about the text as it is now: let its handler begin before the next message.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            turn = await _next_turn(turn)
        elif connection.client is not None:
            session = begin(connection.client)
    if session is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_SECONDS):
                await session.aclose()
    return connection.end_code


def _at_signals(end: Callable[[], None]) -> None:
    for number in (*ENDING, signal.SIGINT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            # Fails in threads, where tests run it, and on Windows, whose loop has no signals.
            with contextlib.suppress(RuntimeError, ValueError, NotImplementedError):
                asyncio.get_running_loop().add_signal_handler(number, end)


async def _next_turn(began: float) -> float:
    """Yield to other tasks if this turn has lasted long enough; returns when the current turn began."""
    if time.perf_counter() - began <= TURN_SECONDS:
        return began
    await asyncio.sleep(0)
    return time.perf_counter()


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object) -> None:
    """Called from another thread; the session may have ended meanwhile."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *arguments)


class Session:
    """Everything between `initialize` and `exit`; `serve` describes the arguments.

    Attributes:
        receive: handles one message.
    """

    def __init__(
        self,
        connection: Connection,
        end: Callable[[], None],
        completer_factory: Connect | None,
        clock: Callable[[], float],
        log: Path,
        client: Client,
    ) -> None:
        open_log(log)
        connection.note = partial(LOG.warning, "%s")
        loop = asyncio.get_running_loop()
        if client.process_id is not None:
            watch_parent(client.process_id, partial(_call_in, loop, end))
        self._connection = connection
        self._factory = completer_factory
        self._begun = False
        self._infos: list[ModelInfo] = []  # the last models that answered
        self._asked_about: set[Listener] = set()
        self._told_of = 0  # the last outage
        self._tasks: set[asyncio.Task[object]] = set()
        self._indexing: asyncio.Task[object] | None = None
        self._editor = Editor(client, connection)
        self.receive = self._editor.receive
        self._configuration = Configuration(self._editor, self._apply)
        settings = self._configuration.settings
        made = partial(ModelClient, self._connect, clock=clock, changed=self._model_changed, warn=self._editor.warn)
        self._models = Models(made, settings.backend)
        self._services = Services(settings, client, self._models, partial(_call_in, loop, self._editor.warn))
        self._workspace, self._suggester = self._services.workspace, self._services.suggester
        self._sync = TextSync(self._workspace, self._editor.warn)
        self._place: tuple[str, types.Position] | None = None  # what the user looks at
        commands = Commands(self._services, self._configuration, self._sync, self._tell_state, clock, log)
        self._model_commands = ModelCommands(
            self._models, self._services, self._configuration, self._editor, self._is_meant
        )
        commands.table |= self._model_commands.table
        for method, handler in self._handlers(client, commands).items():
            self._editor.handle(method, handler)
        self._editor.handle(types.TEXT_DOCUMENT_DID_OPEN, self._opened, self._sync.misunderstood)
        self._editor.handle(types.TEXT_DOCUMENT_DID_CHANGE, self._sync.changed, self._sync.misunderstood)
        set_level(settings.log.level)

    async def aclose(self) -> None:
        """Settle outcomes, close files, threads and connections."""
        self._editor.cancel_all()
        for task in self._tasks:
            task.cancel()
        self._configuration.unwatch()
        await self._services.aclose()
        await self._models.aclose()

    def _handlers(self, client: Client, commands: Commands) -> dict[str, Callable[[Any], Any]]:
        sync, suggestions = self._sync, Suggestions(self._editor, self._sync, self._suggester)
        handlers: dict[str, Callable[[Any], Any]] = {
            types.INITIALIZED: self._initialized,
            types.SHUTDOWN: self._shut_down,
            types.SET_TRACE: lambda _: None,
            types.WINDOW_WORK_DONE_PROGRESS_CANCEL: self._editor.cancel,
            types.TEXT_DOCUMENT_DID_SAVE: sync.saved,
            types.TEXT_DOCUMENT_DID_CLOSE: sync.closed,
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self._folders_changed,
            types.WORKSPACE_DID_CHANGE_CONFIGURATION: self._configuration.changed,
            types.TEXT_DOCUMENT_INLINE_COMPLETION: suggestions.inline,
            types.TEXT_DOCUMENT_CODE_ACTION: suggestions.actions,
            types.WORKSPACE_EXECUTE_COMMAND: commands.execute,
            "textDocument/copilotInlineEdit": suggestions.copilot,
            "textDocument/didShowCompletion": partial(suggestions.shown, "fill"),
            "textDocument/didShowInlineEdit": partial(suggestions.shown, "edit"),
            "textDocument/didPartiallyAcceptCompletion": suggestions.partly_accepted,
            "textDocument/didFocus": self._focused,
            "getVersion": lambda _: {"version": version(), "buildType": "prod", "runtimeVersion": "python"},
        }
        for method, answer in ANSWERS.items():
            handlers[method] = partial(lambda answer, _: answer, answer)
        if client.completion_item:
            handlers[types.TEXT_DOCUMENT_COMPLETION] = suggestions.popup
        if client.debug:
            handlers["calomel/debug/document"] = self._debug_document
        return handlers

    # Start and end of the session.

    async def _initialized(self, _: object) -> None:
        """Settings first, since they name the server; then the model and the index, in the background."""
        if self._begun:
            return
        self._begun = True
        await self._configuration.pull()
        self._spawn(self._load_model())
        self._index_again()
        self._configuration.watch()

    async def _load_model(self) -> None:
        progress = Progress(self._editor, "Calomel")
        self._models.start()
        await progress.begin("loading the model")
        try:
            info = await self._models.text.ready()
        except CompleterError:
            # The state already reports why, once.
            progress.end()
            return
        progress.end(f"{info.title} is ready")

    def _index_again(self) -> None:
        """Index what is to be indexed now; whatever waits for the reading before would wait for ever."""
        if self._indexing is not None:
            self._indexing.cancel()
        self._indexing = self._spawn(self._index())

    async def _index(self) -> None:
        """Index the workspace, and report progress to the client."""
        progress = Progress(self._editor, "Calomel: reading the workspace")
        if self._services.indexes:
            await progress.begin(measured=True)
        try:
            await self._services.index(progress.report)
        finally:
            progress.end()

    def _shut_down(self, _: object) -> None:
        """Requests in progress are cancelled and answered as cancelled."""
        self._connection.shut_down()
        self._editor.cancel_all()

    # Documents, and changes of their surroundings.

    def _opened(self, params: types.DidOpenTextDocumentParams) -> None:
        # Not a coroutine: the next message may already be about this document.
        self._sync.opened(params)
        if self._place is not None and self._place[0] == params.text_document.uri:
            self._look()
        # A client may never say `initialized`.
        if not self._begun:
            self._spawn(self._initialized(None))

    def _focused(self, params: Mapping[str, Any]) -> None:
        """Without a document, the user looks at none."""
        document = params.get("textDocument")
        uri = document.get("uri") if isinstance(document, dict) else None
        self._workspace.focus(uri if isinstance(uri, str) else None)
        self._place = place_of(params) if uri and "position" in params else None
        self._look()

    def _look(self) -> None:
        """Have the model read where the user looks; VS Code sends the focus before it opens the document here."""
        cursor = self._sync.find(*self._place) if self._place is not None else None
        if isinstance(cursor, Cursor):
            self._suggester.reading.rests(cursor.document.uri, cursor.offset)

    def _apply(self, settings: Settings) -> None:
        set_level(settings.log.level)
        before = self._services.settings
        self._services.apply(settings)
        if self._begun and (settings.workspace, settings.privacy) != (before.workspace, before.privacy):
            self._index_again()
        if settings.backend != self._models.server:
            self._spawn(self._models.follow(settings.backend))
        self._tell_state()

    def _folders_changed(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        removed = {local_path(folder.uri) for folder in params.event.removed}
        kept = [folder for folder in self._workspace.folders if folder not in removed]
        added = [path for folder in params.event.added if (path := local_path(folder.uri)) is not None]
        folders = tuple(dict.fromkeys([*kept, *added]))
        self._services.folders_changed(folders)
        self._configuration.folders_changed(folders)
        self._configuration.watch()
        if self._begun:
            self._index_again()

    # The model.

    async def _connect(self, server: BackendSettings) -> Completer:
        if self._factory is not None:
            return await self._factory(server)
        from calomel.infer.launch import connect as find_or_start

        return await find_or_start(server, tuple(self._workspace.folders), self._services.door)

    def _model_changed(self) -> None:
        """Each model that was loaded begins afresh: at the start, by a choice, or after the one before was lost."""
        infos = [client.info for client in self._models if client.info is not None]
        if any(all(info is not known for known in self._infos) for info in infos):
            self._infos = infos
            self._spawn(self._services.model_is())
        listener = self._models.listener
        if listener is not None and listener not in self._asked_about:
            self._asked_about.add(listener)
            self._spawn(self._ask_about(listener))
        if self._models.out and self._models.outages > self._told_of:
            self._told_of = self._models.outages
            if not self._editor.client.extensions:  # the others offer more
                self._spawn(self._offer_nano(self._models.message))
        self._tell_state()

    async def _ask_about(self, listener: Listener) -> None:
        if await self._is_meant(listener):
            await self._models.reconnect()

    async def _offer_nano(self, message: str) -> None:
        if await self._editor.asks(f"Calomel: {message}.", MEANWHILE) is not None:
            with contextlib.suppress(CompleterError):  # the state says it
                await self._model_commands.meanwhile()

    async def _is_meant(self, listener: Listener) -> bool:
        """Ask the user whether text may go to another user's program, and remember a yes."""
        from calomel.infer.listener import confirm  # rarely needed

        question = f"Calomel sent nothing: {listener.message}. Send your code to it?"
        if await self._editor.asks(question, "Send") is None:
            return False
        await asyncio.to_thread(confirm, listener.place, listener.uid)
        return True

    def _tell_state(self) -> None:
        off = self._suggester.status().off
        if off:
            self._editor.tell_state("off", off.message)
            return
        models = self._models
        outage = models.outages if models.out and models.state == "error" else 0
        asked = models.listener is not None or outage > 0
        self._editor.tell_state(models.state, models.message, outage=outage, asked=asked)

    def _debug_document(self, params: Mapping[str, Any]) -> dict[str, Any]:
        document = self._workspace.documents.get(str(params.get("uri")))
        if document is None:
            raise JsonRpcInvalidParams("The document is not open.")
        return {"text": document.text, "version": document.version, "lost": self._sync.lost(document.uri)}

    def _spawn(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("%s failed: %s", task.get_name(), describe(error))
