"""What is said to the editor and heard from it, once its bytes are messages.

pygls dispatches messages, cancels requests and awaits answers. Its language server is not used: it greets after its
imports, keeps a second copy of each document, and quotes the user's text in responses and popups. Nor is its reader: a
session begins before pygls is imported, and a parse error, which that reader drops, has an answer (`connection`).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final, Literal, TypeVar, cast

from cattrs import Converter
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, JsonRpcInvalidParams, PyglsError
from pygls.protocol import JsonRPCNotification, JsonRPCProtocol, JsonRPCRequestMessage
from pygls.server import JsonRPCServer

from calomel.infer.completer import Kind
from calomel.lsp.client import Client
from calomel.lsp.connection import VERSION, Connection, Message
from calomel.storage.failures import describe
from calomel.suggest.silence import Silence, SilenceReason

LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")
ModelState = Literal["ready", "loading", "off", "error"]

# Our states in Copilot's protocol.
_KINDS: Final = {"ready": "Normal", "loading": "Normal", "off": "Inactive", "error": "Warning"}
# Silences that last until the user does something about them, and that the user may not have asked for.
_LASTING: Final = frozenset({SilenceReason.IGNORED_PATH, SilenceReason.OFF_LANGUAGE})
# A client that does not answer in time is treated as one that shows nothing.
ANSWER_SECONDS: Final = 5.0


def strict_converter() -> Converter:
    """Lsprotocol's converter, without the conversions of primitives that would turn any value into a string."""
    converter = Converter()
    # Before lsprotocol's hooks, which look up what they need when they are created.
    for kind in (str, int, float, bool):
        converter.register_structure_hook(kind, _strict)
    return get_converter(converter)


def _strict(value: Any, kind: type) -> Any:
    if issubclass(kind, Enum):  # enumerations of strings or numbers come here too
        return kind(value)
    fits = isinstance(value, (int, float) if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"not a {kind.__name__}")
    return value


# Created at import, before there is an event loop: it takes 20 ms.
_CONVERTER: Final = strict_converter()


def read(value: object, kind: type[T], what: str) -> T:
    """`value` as one of lsprotocol's types, or one of ours. Raises JsonRpcInvalidParams, which names `what` it is."""
    try:
        return _CONVERTER.structure(value, kind)
    except Exception as error:  # noqa: BLE001 - cattrs raises groups, and whatever a hook raised
        LOG.debug("%s: %s", what, describe(error))
        raise JsonRpcInvalidParams(f"{what} do not match the protocol.") from None


def _params(method: str, raw: object) -> Any:
    kind = types.METHOD_TO_TYPES[method][2] if method in types.METHOD_TO_TYPES else dict[str, Any]
    # Tolerate harmless client bugs: no params where all of them are optional.
    raw = {} if raw is None else raw
    if kind is None:
        return None
    if kind == dict[str, Any] and not isinstance(raw, dict):
        raise JsonRpcInvalidParams("The params of this method must be an object.")
    return read(raw, cast(Any, kind), f"The params of {method}")


class Editor(JsonRPCServer):
    """The client at the other end: what it asks goes to handlers, what it is sent has the form it understands.

    Args:
        client: what it said about itself.
        connection: to it.
    """

    def __init__(self, client: Client, connection: Connection) -> None:
        super().__init__(JsonRPCProtocol, lambda: _CONVERTER)
        self.protocol.set_writer(connection, include_headers=False)
        self.client = client
        self._last: tuple[ModelState, str] | None = None
        self._shown: set[str] = set()
        self._running: set[asyncio.Task[Any] | None] = set()
        self.cancels: dict[str | int, Callable[[], None]] = {}  # what ends work that the client shows, by its token

    def handle(
        self, method: str, handler: Callable[[Any], Any], unreadable: Callable[[object], None] | None = None
    ) -> None:
        """Have messages of a method answered by a handler.

        Args:
            method: of the specification or of others.
            handler: takes the params: for a method of the specification as lsprotocol's type, for any other the JSON
                object (empty when there was none). It is a plain function or a coroutine function; its return value,
                None included, is the result. Cancelling the request cancels a coroutine; the response is then -32800.
            unreadable: takes params that do not match the protocol.
        """

        @contextmanager
        def params_of(raw: object) -> Iterator[Any]:
            try:
                yield _params(method, raw)
            except JsonRpcException as error:
                LOG.info("refused a %s: %s", method, error.message)
                if unreadable is not None:
                    unreadable(raw)
                raise
            except Exception as error:  # noqa: BLE001 - whatever it says may quote the user's text
                LOG.error("%s: %s", method, describe(error))  # noqa: TRY400 - so may its traceback
                raise JsonRpcInternalError("The server failed. Its log has details: calomel.showLog.") from None

        # `Any`: pygls passes itself to a handler whose first parameter could be a server.
        async def answer_later(raw: Any) -> Any:
            self._running.add(task := asyncio.current_task())
            try:
                with params_of(raw) as params:
                    return await handler(params)
            finally:
                self._running.discard(task)

        def answer(raw: Any) -> Any:
            with params_of(raw) as params:
                return handler(params)

        self.feature(method)(answer_later if inspect.iscoroutinefunction(handler) else answer)

    def receive(self, message: Message) -> None:
        """Handle one message that is valid JSON-RPC and allowed in the session's state."""
        method = message.get("method")
        params: Any = message.get("params")
        try:
            if method is None:
                self.protocol.handle_message(self.protocol.structure_message(message))
                return
            if method == types.CANCEL_REQUEST:
                params = types.CancelParams(params["id"])
            if "id" in message:
                self.protocol.handle_message(JsonRPCRequestMessage(message["id"], method, VERSION, params))
            else:
                self.protocol.handle_message(JsonRPCNotification(method, VERSION, params))
        except JsonRpcException:
            LOG.warning("a malformed answer")
        except Exception:  # noqa: BLE001 - a late one, or a cancellation without an id; its text may be the user's
            LOG.debug("an unexpected answer")

    def cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        """End the work that the client shows under a token."""
        self.cancels.get(params.token, lambda: None)()

    def cancel_all(self) -> None:
        """Cancel every request in progress."""
        for task in self._running:
            if task is not None:
                task.cancel()

    def report_server_error(self, error: Exception, source: type[PyglsError | JsonRpcException]) -> None:
        """Log it, unless its handler did: by default its text, which may quote the user's, would be logged."""
        if not isinstance(error, JsonRpcException):
            LOG.error("%s: %s", source.__name__, describe(error))

    def tell_state(self, state: ModelState, message: str, *, outage: int = 0, asked: bool = False) -> None:
        """Report the model's state; nothing twice in a row.

        Args:
            state: of the model, or `off`.
            message: the state in one sentence.
            outage: a server that others started is away, for this time of the session; 0 for no such thing.
            asked: a question to the user says what the state is.
        """
        if self._last == (state, message):
            return
        self._last = (state, message)
        LOG.log(logging.WARNING if state == "error" else logging.INFO, "%s: %s", state, message)
        if self.client.extensions:
            params: dict[str, Any] = {"state": state, "message": message}
            self.protocol.notify("calomel/status", params | ({"outage": outage} if outage else {}))
        elif state == "error" and not asked:
            self.warn(f"Calomel: {message.rstrip('.')}; for details, run `calomel doctor`.")
        if self.client.speaks_copilot:
            self.protocol.notify(
                "didChangeStatus", {"busy": state == "loading", "kind": _KINDS[state], "message": message}
            )

    def tell_silence(self, uri: str, kind: Kind, silence: Silence) -> None:
        """Report why nothing is shown. Not for a request that a newer one replaced: the newer one's answer follows.

        A client without our extensions is only told of reasons that last.
        """
        if not self.client.extensions:
            if silence.reason in _LASTING:
                self.warn(f"Calomel: {silence.message}", types.MessageType.Info)
        elif silence.reason is not SilenceReason.SUPERSEDED:
            params = {"uri": uri, "kind": kind, "reason": silence.reason.value, "message": silence.message}
            self.protocol.notify("calomel/silence", params)

    def tell_extended(self, uri: str, suggestion_id: str) -> None:
        """Report that the text that the client shows goes on: the next request gets all of it."""
        self.protocol.notify("calomel/extended", {"uri": uri, "id": suggestion_id})

    def tell_count(self, uri: str) -> None:
        """Report that the answer to the last question about a document is known to have more edits."""
        self.protocol.notify("calomel/count", {"uri": uri})

    def warn(self, message: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """Show a message to the user, each one at most once per session."""
        if message not in self._shown:
            self._shown.add(message)
            LOG.warning("%s", message)
            self.protocol.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(type=kind, message=message))

    async def asks(self, question: str, *actions: str) -> str | None:
        """Which action the user chooses, for as long as that takes; None for none. A client may not be able to ask."""
        LOG.warning("%s", question)
        params = types.ShowMessageRequestParams(
            type=types.MessageType.Warning,
            message=question,
            actions=[types.MessageActionItem(each) for each in actions],
        )
        try:
            answer = await self.protocol.send_request_async(types.WINDOW_SHOW_MESSAGE_REQUEST, params)
        except JsonRpcException:
            self.warn(question)
            return None
        title = answer.get("title") if isinstance(answer, dict) else None
        return title if title in actions else None


class Progress:
    """One line in the client's list of ongoing work. Silent for clients that cannot show it."""

    def __init__(self, editor: Editor, title: str, cancel: Callable[[], None] | None = None) -> None:
        """`cancel` ends the work, if the user may do that."""
        self._editor = editor
        self._cancel = cancel
        self._title = title
        self._token = str(uuid.uuid4())
        self._begun = False
        self._percent = -1
        self._message = ""

    async def begin(self, message: str | None = None, *, measured: bool = False) -> None:
        """Ask the client for the line and begin it; a `measured` one reports percentages."""
        if not self._editor.client.progress:
            return
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._editor.protocol.send_request_async(
                    types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(self._token)
                )
        except (TimeoutError, JsonRpcException):
            LOG.debug("the client shows no progress")
            return
        self._begun = True
        if self._cancel is not None:
            self._editor.cancels[self._token] = self._cancel
        self._send(
            types.WorkDoneProgressBegin(
                self._title, message=message, percentage=0 if measured else None, cancellable=self._cancel is not None
            )
        )

    def report(self, share: float, message: str) -> None:
        """`share` of the work is done, 0 to 1; sent when the percentage grows, and until then with each new message."""
        percent = int(100 * max(0.0, min(1.0, share)))
        news = percent > self._percent or (percent == self._percent == 0 and message != self._message)
        if self._begun and news:
            self._percent, self._message = percent, message
            self._send(types.WorkDoneProgressReport(percentage=percent, message=message))

    def end(self, message: str | None = None) -> None:
        """The work is done, or abandoned."""
        if self._begun:
            self._begun = False
            self._editor.cancels.pop(self._token, None)
            self._send(types.WorkDoneProgressEnd(message=message))

    def _send(self, value: object) -> None:
        self._editor.protocol.notify(types.PROGRESS, types.ProgressParams(self._token, value))
