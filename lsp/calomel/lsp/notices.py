"""What the server tells the client unasked: how the model is, why it is silent, and what the user must know."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from calomel.lsp.client import Client
from calomel.lsp.log import describe
from calomel.lsp.protocol import EditorLink
from calomel.suggest.completer import CompleteAnswer, Completer, CompleteRequest, CompleterError, ModelInfo
from calomel.suggest.silence import Silence, SilenceReason

LOG: Final = logging.getLogger(__name__)

State = Literal["ready", "loading", "off", "error"]

# The words of Copilot's protocol for ours.
# Silences that last until the user does something about them, and that he may not have asked for.
_LASTING: Final = frozenset({SilenceReason.IGNORED_PATH, SilenceReason.OFF_LANGUAGE})
_KINDS: Final = {"ready": "Normal", "loading": "Normal", "off": "Inactive", "error": "Warning"}


class Notices:
    """Says each thing in the words that this client knows, and no word twice in a row."""

    def __init__(self, link: EditorLink, client: Client) -> None:
        self._link = link
        self._client = client
        self._last: tuple[State, str] | None = None
        self._warned: set[str] = set()

    def status(self, state: State, message: str) -> None:
        """How the model is."""
        if self._last == (state, message):
            return
        self._last = (state, message)
        LOG.info("%s: %s", state, message)
        if self._client.extensions:
            self._link.protocol.notify("calomel/status", {"state": state, "message": message})
        elif state == "error":
            self.warn(f"Calomel: {message.rstrip('.')}; `calomel doctor` says more.")
        if self._client.speaks_copilot:
            self._link.protocol.notify(
                "didChangeStatus", {"busy": state == "loading", "kind": _KINDS[state], "message": message}
            )

    def silence(self, uri: str, kind: Literal["fill", "edit"], silence: Silence) -> None:
        """Why nothing is shown. Not for a question that a newer one replaced: the newer one's answer follows.

        A client without a place for it is told what would last.
        """
        if self._client.extensions and silence.reason is not SilenceReason.SUPERSEDED:
            self._link.protocol.notify(
                "calomel/silence",
                {"uri": uri, "kind": kind, "reason": silence.reason.value, "message": silence.message},
            )
        elif not self._client.extensions and silence.reason in _LASTING:
            self._show(f"Calomel: {silence.message}", types.MessageType.Info)

    def warn(self, message: str) -> None:
        """Show a sentence to the user, the same one once a session."""
        self._show(message, types.MessageType.Warning)

    def _show(self, message: str, kind: types.MessageType) -> None:
        if message in self._warned:
            return
        self._warned.add(message)
        LOG.warning("%s", message)
        self._link.window_show_message(types.ShowMessageParams(type=kind, message=message))


# A client that does not answer is one that shows nothing.
ANSWER_SECONDS: Final = 5.0

_NUMBERS: Final = itertools.count(1)


class Progress:
    """One line in the client's list of things that are going on. Silent for clients that cannot show it."""

    def __init__(self, link: EditorLink, client: Client, title: str) -> None:
        self._link = link
        self._shown = client.progress
        self._title = title
        self._token = f"calomel-{next(_NUMBERS)}"
        self._begun = False
        self._percent = -1

    async def begin(self, message: str = "", *, measured: bool = False) -> None:
        """Ask the client for the line and begin it; `measured` ones report percentages."""
        if not self._shown or self._begun:
            return
        params = types.WorkDoneProgressCreateParams(token=self._token)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._link.window_work_done_progress_create_async(params)
        except (TimeoutError, JsonRpcException):
            LOG.debug("the client shows no progress")
            return
        self._begun = True
        self._say(
            types.WorkDoneProgressBegin(
                title=self._title, message=message or None, percentage=0 if measured else None, cancellable=False
            )
        )

    def report(self, share: float) -> None:
        """`share` of the work is done, 0 to 1; said when the percentage grows."""
        percent = int(100 * max(0.0, min(1.0, share)))
        if self._begun and percent > self._percent:
            self._percent = percent
            self._say(types.WorkDoneProgressReport(percentage=percent))

    def end(self, message: str = "") -> None:
        """The work is done, or given up."""
        if self._begun:
            self._begun = False
            self._say(types.WorkDoneProgressEnd(message=message or None))

    def _say(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        self._link.progress(types.ProgressParams(token=self._token, value=value))


TOO_SLOW: Final = "Calomel: answers come too late on this machine; `calomel doctor` says what helps."
# A cold context, a compiler that runs beside it: one late answer says nothing, and neither do three.
_ENOUGH: Final = 5


class Lateness:
    """Counts answers that came too late, one after another.

    Args:
        say: shows a sentence to the user, each but once.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._late = 0

    def note(self, *, late: bool) -> None:
        """An answer came, or the server was too busy to give one."""
        self._late = self._late + 1 if late else 0
        if self._late == _ENOUGH:
            self._say(TOO_SLOW)


# A server that is gone is looked for again, and not at every keystroke.
RETRY_SECONDS: Final = 5.0

_LOST: Final = "Its server ended; Calomel starts it again, or looks for it."

Connect = Callable[[], Awaitable[Completer]]
Tell = Callable[[State, str], None]


class ModelLink:
    """A `Completer` that can be asked before there is one: until then it says that it is loading.

    Args:
        connect: finds or starts the model's server.
        tell: learns of each change of state.
        clock: seconds.
        lateness: learns of answers that came too late, and of those that did not.
    """

    def __init__(self, connect: Connect, tell: Tell, clock: Callable[[], float], lateness: Lateness) -> None:
        self.state: State = "loading"
        self.message = "Looking for the model's server."
        self.known: ModelInfo | None = None
        self.last_request: dict[str, Any] | None = None
        self._connect = connect
        self._tell = tell
        self._clock = clock
        self._lateness = lateness
        self._completer: Completer | None = None
        self._loading: asyncio.Task[ModelInfo] | None = None
        self._failed_at = float("-inf")
        # Settings may change again while the last server is still being left.
        self._moving = asyncio.Lock()

    def start(self) -> asyncio.Task[ModelInfo]:
        """Connect in the background; the task ends when the model is loaded, or cannot be."""
        if self._loading is None:
            self._say("loading", "The model is loading.")
            self._loading = asyncio.create_task(self._load(), name="calomel-model")
            self._loading.add_done_callback(self._loaded)
        return self._loading

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Ask the model. Raises CompleterError."""
        if self._completer is None or self.known is None:
            self._retry()
            code = "unreachable" if self.state == "error" else "loading"
            raise CompleterError(code, self.message)
        began = self._clock()
        try:
            answer = await self._completer.complete(request)
        except CompleterError as error:
            if error.code in {"unreachable", "loading"}:
                # The server died or was replaced; whoever resolves its address next finds or starts one.
                self.known = None
                self._failed_at = float("-inf")
                self._retry()
                # Whether a model can be reached is known when that is over.
                raise CompleterError("loading", _LOST) from error
            if error.code in {"timeout", "overloaded"}:
                self._lateness.note(late=True)
            raise
        except asyncio.CancelledError:
            # Who typed on took the question back; who waited until its end got nothing from it.
            if self._is_late(request, began):
                self._lateness.note(late=True)
            raise
        self._lateness.note(late=self._is_late(request, began))
        self.last_request = {
            "kind": request.kind,
            "context_tokens": answer.context_tokens,
            "cached_tokens": answer.cached_tokens,
            "candidates": len(answer.candidates),
            "seconds": round(self._clock() - began, 4),
            "queued_seconds": round(answer.timings.queued, 4),
            "engine_seconds": round(answer.timings.total, 4),
            "model": answer.model,
        }
        return answer

    async def info(self) -> ModelInfo:
        """What the model is; waits until it is loaded. Raises CompleterError."""
        if self.known is not None:
            return self.known
        self._retry()
        if self._loading is None:
            raise CompleterError("unreachable", self.message)
        # Whoever stops waiting does not stop the loading.
        return await asyncio.shield(self._loading)

    async def reconnect(self, connect: Connect) -> None:
        """Leave this server for another, as changed settings want it; of several, the last one asked for counts."""
        async with self._moving:
            await self.aclose()
            self._connect = connect
            self._failed_at = float("-inf")
            self.start()

    async def aclose(self) -> None:
        """Stop loading and let go of the connection."""
        loading, self._loading = self._loading, None
        if loading is not None:
            loading.cancel()
            await asyncio.wait({loading})
        completer, self._completer, self.known = self._completer, None, None
        if completer is not None:
            await completer.aclose()

    def _is_late(self, request: CompleteRequest, began: float) -> bool:
        return request.deadline is not None and self._clock() - began >= request.deadline

    async def _load(self) -> ModelInfo:
        if self._completer is None:
            self._completer = await self._connect()
        return await self._completer.info()

    def _loaded(self, task: asyncio.Task[ModelInfo]) -> None:
        if self._loading is not task:
            if not task.cancelled():
                task.exception()
            return
        self._loading = None
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self.known = task.result()
            self._say("ready", f"{self.known.id} is ready.")
            return
        self._failed_at = self._clock()
        if isinstance(error, CompleterError):
            self._say("error", str(error))
        else:
            LOG.error("the model did not load: %s", describe(error))
            self._say("error", "The model did not load; the log says more.")

    def _retry(self) -> None:
        if self._loading is None and self._clock() - self._failed_at >= RETRY_SECONDS:
            self.start()

    def _say(self, state: State, message: str) -> None:
        self.state, self.message = state, message
        self._tell(state, message)
