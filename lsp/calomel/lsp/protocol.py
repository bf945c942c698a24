"""What is said to the editor and heard from it, once its bytes are messages: pygls, with its faults corrected.

Corrected in pygls 2.1: any invalid params are answered with -32602; errors go to the log, not into a popup or a
response, both of which would quote the user's text; `workspace/executeCommand` is also accepted as a notification; no
second copy of each document is kept; responses with unknown ids, late responses and cancellations of nothing are no
errors. Framing, the session's state and `initialize` come earlier (`connection`).
"""

from __future__ import annotations

import asyncio
import logging
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum
from typing import Any, Final, Literal, TypeVar, cast

from cattrs import Converter
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, JsonRpcInvalidParams, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from calomel.infer.completer import Kind
from calomel.lsp.client import Client
from calomel.lsp.connection import Message
from calomel.storage.failures import describe
from calomel.suggest.silence import Silence, SilenceReason

LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")
State = Literal["ready", "loading", "off", "error"]

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


class EditorProtocol(LanguageServerProtocol):
    """Dispatches messages to handlers, and responses to the requests that wait for them.

    A handler takes the params: for a method of the specification as lsprotocol's type, for any other the JSON object
    (empty when there was none). It is a plain function or a coroutine function; its return value, None included, is
    the result. Cancelling the request cancels a coroutine handler; the response is then -32800.
    """

    send: Callable[[Message], None]
    # Called with the params of a document change that could not be read.
    misunderstood: Callable[[object], None]

    def _register_builtin_features(self) -> None:
        """Nothing of pygls: its documents are a second, slower copy of ours; `connection` keeps the session's state."""

    def receive(self, message: Message) -> None:
        """Handle one message that is valid JSON-RPC and allowed in the session's state."""
        method = message.get("method")
        if method is None:
            self._take_answer(message)
            return
        known = method in self.fm.features or method == types.CANCEL_REQUEST
        try:
            params = _params(method, message.get("params")) if known else None
        except JsonRpcInvalidParams as error:
            if "id" in message:
                self._send_response(message["id"], error=error.to_response_error())
                return
            LOG.warning("dropped a %s: %s", method, error.message)
            if method in {types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE}:
                self.misunderstood(message.get("params"))
            return
        if "id" in message:
            self._handle_request(message["id"], method, params)
        else:
            self._handle_notification(method, params)

    def cancel_all(self) -> None:
        """Cancel every request in progress except the one that calls this."""
        asking: object = asyncio.current_task()
        for future in list(self._request_futures.values()):
            if future is not asking:
                future.cancel()

    def _handle_cancel_notification(self, msg_id: object) -> None:
        if isinstance(msg_id, int | str):
            super()._handle_cancel_notification(msg_id)

    def _take_answer(self, message: Message) -> None:
        message_id = message.get("id")
        future = self._request_futures.get(message_id) if isinstance(message_id, str) else None  # ours are strings
        # For a late response the future is cancelled; what is not a Future here is a request of the client.
        if not isinstance(future, Future) or not future.set_running_or_notify_cancel():
            LOG.debug("an unexpected answer")
            return
        try:
            answer = self.structure_message(message)
        except JsonRpcException as error:
            LOG.warning("a malformed answer")
            self._request_futures.pop(str(message_id))
            future.set_exception(error)
        else:
            self._handle_response(answer.id, getattr(answer, "result", None), getattr(answer, "error", None))

    def _send_response(
        self, msg_id: int | str, result: Any | None = None, error: types.ResponseError | None = None
    ) -> None:
        if error is not None and error.code == JsonRpcInternalError.CODE:
            # The original message and traceback may quote the user's text.
            error = types.ResponseError(error.code, "The server failed; see its log.")
        super()._send_response(msg_id, result, error)

    def _send_data(self, data: Any) -> None:
        self.send(self._converter.unstructure(data))


def _params(method: str, raw: object) -> Any:
    kind = types.METHOD_TO_TYPES[method][2] if method in types.METHOD_TO_TYPES else dict[str, Any]
    # Tolerate harmless client bugs: no params where all of them are optional.
    raw = {} if raw is None else raw
    if kind is None:
        return None
    if kind == dict[str, Any] and not isinstance(raw, dict):
        raise JsonRpcInvalidParams("The params of this method must be an object.")
    return read(raw, cast(Any, kind), f"The params of {method}")


class Editor(LanguageServer):
    """The client at the other end, and everything it is sent unasked, in the form it understands.

    Args:
        client: what it said about itself.
        send: sends a message to it.
    """

    protocol: EditorProtocol

    def __init__(self, client: Client, send: Callable[[Message], None]) -> None:
        super().__init__("calomel", "", protocol_cls=EditorProtocol, converter_factory=lambda: _CONVERTER)
        self.client = client
        self.protocol.send = send
        self._last: tuple[State, str] | None = None
        self._shown: set[str] = set()

    def report_server_error(self, error: Exception, source: type[PyglsError | JsonRpcException]) -> None:
        """Log it; pygls would open a popup."""
        if isinstance(error, JsonRpcInternalError) or not isinstance(error, JsonRpcException):
            # pygls reports an internal error while it handles the original one.
            LOG.error("%s: %s", source.__name__, describe(sys.exception() or error))

    def tell_state(self, state: State, message: str) -> None:
        """Report the model's state; nothing twice in a row."""
        if self._last == (state, message):
            return
        self._last = (state, message)
        LOG.info("%s: %s", state, message)
        if self.client.extensions:
            self.protocol.notify("calomel/status", {"state": state, "message": message})
        elif state == "error":
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

    def warn(self, message: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """Show a message to the user, each one at most once per session."""
        if message not in self._shown:
            self._shown.add(message)
            LOG.warning("%s", message)
            self.window_show_message(types.ShowMessageParams(type=kind, message=message))


class Progress:
    """One line in the client's list of ongoing work. Silent for clients that cannot show it."""

    def __init__(self, editor: Editor, title: str) -> None:
        self._client = editor.client
        self._progress = editor.work_done_progress
        self._title = title
        self._token = str(uuid.uuid4())
        self._begun = False
        self._percent = -1

    async def begin(self, message: str | None = None, *, measured: bool = False) -> None:
        """Ask the client for the line and begin it; a `measured` one reports percentages."""
        if not self._client.progress:
            return
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._progress.create_async(self._token)
        except (TimeoutError, JsonRpcException):
            LOG.debug("the client shows no progress")
            return
        self._begun = True
        said = types.WorkDoneProgressBegin(
            title=self._title, message=message, percentage=0 if measured else None, cancellable=False
        )
        self._progress.begin(self._token, said)

    def report(self, share: float) -> None:
        """`share` of the work is done, 0 to 1; sent when the percentage grows."""
        percent = int(100 * max(0.0, min(1.0, share)))
        if self._begun and percent > self._percent:
            self._percent = percent
            self._progress.report(self._token, types.WorkDoneProgressReport(percentage=percent))

    def end(self, message: str | None = None) -> None:
        """The work is done, or abandoned."""
        if self._begun:
            self._begun = False
            self._progress.end(self._token, types.WorkDoneProgressEnd(message=message))
