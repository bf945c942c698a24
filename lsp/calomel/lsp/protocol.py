"""The JSON-RPC protocol of pygls, with what it does wrong mended in one place.

Mended against pygls 2.1: a request always gets an answer, also with params of a wrong form (-32602) or without any;
errors go to the log instead of a popup in the editor; `workspace/executeCommand` is also taken as a notification;
text of the user reaches no log; no second copy of each document is kept; answers to unknown ids, late answers and
cancellations of nothing are no errors. Framing, the session's life and `initialize` are handled before (`server`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from enum import Enum
from functools import partial
from typing import Any, Final, cast

from cattrs import Converter
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from calomel.lsp import connection
from calomel.lsp.connection import ErrorCode, Id, Message
from calomel.lsp.log import describe

LOG: Final = logging.getLogger(__name__)

Handler = Callable[[Any], Any]


class InvalidParamsError(JsonRpcException):
    """Params that a handler cannot work with; answered with -32602."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ErrorCode.INVALID_PARAMS)


def strict_converter() -> Converter:
    """Lsprotocol's converter, without the conversions of primitives that would turn any value into a text."""
    converter = Converter()
    # Before lsprotocol's hooks, which look up what they need when they are made.
    for kind in (str, int, float, bool):
        converter.register_structure_hook(kind, _strict)
    return get_converter(converter)


def _strict(value: Any, kind: type) -> Any:
    if issubclass(kind, Enum):  # enumerations of texts or numbers come here too
        return kind(value)
    fits = isinstance(value, (int, float) if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"not a {kind.__name__}")
    return value


_OF_TEXTS: Final = (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE)


# Made with the module, before there is an event loop: it takes 20 ms.
_CONVERTER: Final = strict_converter()


class EditorProtocol(LanguageServerProtocol):
    """Hands messages to handlers, and answers to those who asked.

    A handler takes the params: for a method of the specification as lsprotocol's type, for any other the JSON object
    (empty when there was none). It is a plain function or a coroutine function; what it returns, None included, is
    the answer. Cancelling the request cancels a coroutine handler; the answer is -32800 then.
    """

    _server: EditorLink
    _converter: Converter

    def __init__(self, server: EditorLink, converter: Converter) -> None:
        super().__init__(server, converter)
        self.handlers: dict[str, Handler] = {}
        self.send: Callable[[Message], None] = lambda _: None
        # Takes the params of a change of a document that could not be read.
        self.misunderstood: Callable[[object], None] = lambda _: None
        self._serving: dict[Id, Future[Any] | asyncio.Future[Any]] = {}
        self._asked = 0

    def _register_builtin_features(self) -> None:
        """None of pygls: its documents are a second, slower copy of ours, and `server` knows the session's life."""

    def receive(self, message: Message) -> None:
        """Handle one message that has JSON-RPC's shape and comes at a time when it may."""
        method = message.get("method")
        if method is None:
            self._take_answer(message)
        elif "id" in message:
            self._serve(message["id"], method, message)
        else:
            self._notice(method, message)

    def cancel_all(self) -> None:
        """Cancel every request that is being served; each is answered with -32800."""
        for future in list(self._serving.values()):
            future.cancel()

    def _serve(self, message_id: Id, method: str, message: Message) -> None:
        handler = self.handlers.get(method)
        if handler is None:
            self._refuse(message_id, ErrorCode.METHOD_NOT_FOUND, "This server does not serve that method.")
            return
        try:
            params = self._params(method, message)
        except InvalidParamsError as error:
            self._refuse(message_id, ErrorCode.INVALID_PARAMS, error.message)
            return
        self._run(handler, params, partial(self._answer, message_id, method), message_id)

    def _notice(self, method: str, message: Message) -> None:
        if method == types.CANCEL_REQUEST:
            self._cancel(message)
            return
        handler = self.handlers.get(method)
        if handler is None:
            # The specification lets a server ignore unknown `$/` notifications; other unknown ones harm nobody either.
            LOG.debug("ignored an unknown notification")
            return
        try:
            params = self._params(method, message)
        except InvalidParamsError as error:
            LOG.warning("dropped a %s: %s", method, error.message)
            if method in _OF_TEXTS:
                self.misunderstood(message.get("params"))
            return
        self._run(handler, params, partial(self._noticed, method), None)

    def _run(self, handler: Handler, params: Any, done: Callable[[Any], None], message_id: Id | None) -> None:
        future: Future[Any] | asyncio.Future[Any]
        if asyncio.iscoroutinefunction(handler):
            future = asyncio.ensure_future(handler(params))
            if message_id is not None:
                self._serving[message_id] = future
        else:
            future = Future()
            try:
                future.set_result(handler(params))
            except Exception as error:  # noqa: BLE001 - it is answered or logged by `done`
                future.set_exception(error)
        future.add_done_callback(done)

    def _answer(self, message_id: Id, method: str, future: Any) -> None:
        if self._serving.get(message_id) is future:
            del self._serving[message_id]
        if future.cancelled():
            self._refuse(message_id, ErrorCode.REQUEST_CANCELLED, "The request was cancelled.")
            return
        error = future.exception()
        if error is None:
            self.send(connection.result_message(message_id, self._converter.unstructure(future.result())))
        elif isinstance(error, JsonRpcException):
            self._refuse(message_id, error.code or ErrorCode.INTERNAL_ERROR, error.message)
        else:
            LOG.error("failed to answer a %s: %s", method, describe(error))
            self._refuse(message_id, ErrorCode.INTERNAL_ERROR, "The server failed; its log says more.")

    def _noticed(self, method: str, future: Any) -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            LOG.error("failed to handle a %s: %s", method, describe(error))

    def _refuse(self, message_id: Id, code: int, reason: str) -> None:
        self.send(connection.error_message(message_id, code, reason))

    def _cancel(self, message: Message) -> None:
        params = message.get("params")
        message_id = params.get("id") if isinstance(params, dict) else None
        future = self._serving.get(message_id) if connection.is_id(message_id) and message_id is not None else None
        if future is not None:
            future.cancel()

    def _params(self, method: str, message: Message) -> Any:
        raw = message.get("params")
        known = types.METHOD_TO_TYPES.get(method)
        if known is None:
            if raw is None:
                return {}
            if not isinstance(raw, dict):
                raise InvalidParamsError("The params of this method are an object.")
            return raw
        kind = known[2]
        if kind is None:
            return None
        # Client bugs that cost nobody anything: no params where all of them are optional.
        try:
            return self._converter.structure({} if raw is None else raw, cast(Any, kind))
        except Exception as error:  # noqa: BLE001 - cattrs raises groups, and whatever a hook raised
            LOG.debug("params of %s: %s", method, describe(error))
            raise InvalidParamsError(
                f"The params of {method} do not have the form that the protocol asks for."
            ) from None

    # Outgoing

    def _send_data(self, data: Any) -> None:
        if data:
            self.send(self._converter.unstructure(data))

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: Id | None = None,
    ) -> Future[Any]:
        """Ask the client. Without pygls's log line, which holds the params."""
        self._asked += 1
        asked = msg_id if msg_id is not None else f"calomel-{self._asked}"
        future: Future[Any] = Future()
        if callback is not None:
            future.add_done_callback(lambda done: callback(done.result()))
        self._request_futures[asked] = future
        self._result_types[asked] = self.get_result_type(method)
        message = {"jsonrpc": connection.VERSION, "id": asked, "method": method}
        self.send(message if params is None else message | {"params": self._converter.unstructure(params)})
        return future

    def notify(self, method: str, params: Any | None = None) -> None:
        """Tell the client. Without pygls's log line, which holds the params."""
        self.send(connection.notification(method, self._converter.unstructure(params)))

    def _take_answer(self, message: Message) -> None:
        message_id = message.get("id")
        future = self._request_futures.pop(message_id, None) if connection.is_id(message_id) else None  # type: ignore[arg-type]
        kind = self._result_types.pop(message_id, None) if future is not None else None  # type: ignore[arg-type]
        if future is None or not future.set_running_or_notify_cancel():
            LOG.debug("an answer that nobody waits for")
            return
        if "error" in message:
            problem = message["error"]
            code = problem.get("code") if isinstance(problem, Mapping) else None
            future.set_exception(JsonRpcException("The client refused.", code if isinstance(code, int) else -32603))
            return
        try:
            whole = self._converter.structure(message, kind) if kind is not None else None
        except Exception as error:  # noqa: BLE001 - as above
            LOG.warning("an answer of a wrong form: %s", describe(error))
            future.set_exception(JsonRpcException("The client's answer has a wrong form.", ErrorCode.INTERNAL_ERROR))
            return
        future.set_result(message.get("result") if whole is None else whole.result)


class EditorLink(LanguageServer):
    """pygls's typed methods for what a server says to a client, over `EditorProtocol`."""

    protocol: EditorProtocol

    def __init__(self, send: Callable[[Message], None]) -> None:
        super().__init__("calomel", "", protocol_cls=EditorProtocol, converter_factory=lambda: _CONVERTER)
        self.protocol.send = send

    def report_server_error(self, error: Exception, source: type[PyglsError | JsonRpcException]) -> None:
        """To the log; pygls would open a popup."""
        LOG.error("%s: %s", source.__name__, describe(error))
