"""What this door uses: the link to the model, and one editor's workspace, context, suggestions and outcomes."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from calomel.context.builder import ContextBuilder
from calomel.context.window import EstimateCounter, ExactCounter
from calomel.infer.completer import CompleteAnswer, Completer, CompleteRequest, CompleterError, ModelInfo
from calomel.infer.launch import version
from calomel.lsp.client import Client
from calomel.lsp.log import describe
from calomel.lsp.protocol import State
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer, TokenizerError
from calomel.selectivity.record import Records
from calomel.suggest.judging import records_path
from calomel.suggest.offers import Outcome
from calomel.suggest.outcome_log import OutcomeLog, outcome_log_path
from calomel.suggest.suggester import Suggester
from calomel.workspace.privacy import Privacy
from calomel.workspace.related import Related
from calomel.workspace.settings import ServerSettings, Settings
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Workspace

LOG: Final = logging.getLogger(__name__)

# Used until a model has reported its own.
DEFAULT_CONTEXT: Final = 2048
# A lost server is looked for again, but not at every keystroke.
RETRY_SECONDS: Final = 5.0
# Up to five minutes between two attempts.
_MOST_DOUBLINGS: Final = 6

_LOST: Final = "The model's server stopped. Restarting it…"

# What a model is asked before it takes the place of another one.
_TRIAL: Final = CompleteRequest("fill", PromptParts(path="add.py", prefix="def add(a, b):\n    return "), max_tokens=4)
_CREDENTIALS: Final = re.compile(r"//[^@/]*@")
_GPUS: Final = {"cuda": "NVIDIA GPU", "mps": "Apple GPU"}

TOO_SLOW: Final = "Calomel: answers are too slow on this machine; run `calomel doctor`."
# A cold context or a compiler running beside it makes one answer late, or three; that says nothing yet.
_ENOUGH: Final = 5

CompleterFactory = Callable[[ServerSettings], Awaitable[Completer]]
Tell = Callable[[], None]


def _where(info: ModelInfo, server: ServerSettings) -> str:
    """One sentence: what the model runs on, or what it is asked through."""
    if info.through:
        return f"It answers through {info.through}."
    if server.url is not None:
        return f"It answers at {_CREDENTIALS.sub('//', server.url)}."
    return f"It runs on {device_of(server)}."


def device_of(server: ServerSettings) -> str:
    """What a model of our own runs on, in words."""
    return f"this machine's {_GPUS.get(server.device.partition(':')[0], 'CPU')}"


class ModelLink:
    """A `Completer` that can be asked before the model is loaded: until then it answers that it is loading.

    Args:
        server: which model it is.
        connect: finds or starts the model's server.
        tell: called on each change of state.
        clock: seconds.
        warn: shows a message to the user, each at most once.
    """

    def __init__(
        self,
        server: ServerSettings,
        connect: CompleterFactory,
        tell: Tell,
        clock: Callable[[], float],
        warn: Callable[[str], None],
    ) -> None:
        self.server = server
        self.state: State = "loading"
        self.message = "Looking for the model's server."
        self.known: ModelInfo | None = None
        self.last_request: dict[str, Any] | None = None
        self._connect = connect
        self._tell = tell
        self._clock = clock
        self._warn = warn
        self._late = 0  # late answers in a row
        self._completer: Completer | None = None
        self._loading: asyncio.Task[ModelInfo] | None = None
        self._failed_at = float("-inf")
        self._failures = 0  # in a row
        # Settings may change again while the last server is still being closed.
        self._moving = asyncio.Lock()

    def start(self) -> asyncio.Task[ModelInfo]:
        """Connect in the background; the task ends when the model is loaded, or cannot be loaded."""
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
        if request.ahead:  # nobody waits for it
            return await self._completer.complete(request)
        began = self._clock()
        try:
            answer = await self._completer.complete(request)
        except CompleterError as error:
            if error.code in {"unreachable", "loading"}:
                # The server died or was replaced; connecting again finds or starts one.
                self.known = None
                self._failed_at = float("-inf")
                self._retry()
                # Only after that is it known whether a model can be reached.
                raise CompleterError("loading", _LOST) from error
            if error.code in {"timeout", "overloaded"}:
                self._note(late=True)
            raise
        except asyncio.CancelledError:
            # Cancelled before the deadline: the user typed on. Cancelled after it: the answer came too late.
            if self._is_late(request, began):
                self._note(late=True)
            raise
        self._note(late=self._is_late(request, began))
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
        """Describes the model; waits until it is loaded. Raises CompleterError."""
        if self.known is not None:
            return self.known
        self._retry()
        if self._loading is None:
            raise CompleterError("unreachable", self.message)
        # A caller that stops waiting does not stop the loading.
        return await asyncio.shield(self._loading)

    async def reconnect(self) -> None:
        """Move to the server that the settings name now; of several calls, the last one counts."""
        async with self._moving:
            await self.aclose()
            self._failed_at, self._failures = float("-inf"), 0
            self.start()

    async def switch(self, server: ServerSettings) -> ModelInfo:
        """Move to another model once it answers; the present one goes on until then. Raises CompleterError."""
        completer = await self._connect(server)
        try:
            await completer.info()
            await completer.complete(_TRIAL)
            # Whoever was asked knows more of itself.
            info = await completer.info()
        except BaseException:
            await completer.aclose()
            raise
        async with self._moving:
            await self.aclose()
            self.server, self._completer, self._failed_at = server, completer, float("-inf")
            self._is(info)
        return info

    async def aclose(self) -> None:
        """Stop loading and close the connection."""
        loading, self._loading = self._loading, None
        if loading is not None:
            loading.cancel()
            await asyncio.wait({loading})
        completer, self._completer, self.known = self._completer, None, None
        if completer is not None:
            await completer.aclose()

    def _note(self, *, late: bool) -> None:
        """Count late answers in a row; a timeout and an overloaded server count as late."""
        self._late = self._late + 1 if late else 0
        if self._late == _ENOUGH:
            self._warn(TOO_SLOW)

    def _is_late(self, request: CompleteRequest, began: float) -> bool:
        return request.deadline is not None and self._clock() - began >= request.deadline

    async def _load(self) -> ModelInfo:
        if self._completer is None:
            self._completer = await self._connect(self.server)
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
            self._is(task.result())
            return
        self._failed_at, self._failures = self._clock(), self._failures + 1
        if isinstance(error, CompleterError):
            self._say("error", str(error))
        else:
            LOG.error("the model did not load: %s", describe(error))
            self._say("error", "The model did not load; see the log.")

    def _is(self, info: ModelInfo) -> None:
        self.known, self._failures = info, 0
        self._say("ready", f"{info.id} is ready. {_where(info, self.server)}")

    def _retry(self) -> None:
        # A model that cannot be loaded is not loaded again with every keystroke.
        pause = RETRY_SECONDS * 2 ** min(max(self._failures - 1, 0), _MOST_DOUBLINGS)
        if self._loading is None and self._clock() - self._failed_at >= pause:
            self.start()

    def _say(self, state: State, message: str) -> None:
        self.state, self.message = state, message
        self._tell()


class Outcomes(OutcomeLog):
    """An outcome log that follows the settings."""

    wanted = True

    def record(self, outcome: Outcome) -> None:
        """Record an outcome, if outcomes are kept."""
        if self.wanted:
            super().record(outcome)


class Services:
    """Workspace, context and suggestions of one editor, set up from the settings."""

    def __init__(
        self,
        settings: Settings,
        client: Client,
        model: ModelLink,
        clock: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        """`say` is called from other threads, with messages for the user."""
        self.settings = settings
        self.model = model
        self._has_read = False
        self._privacy = Privacy(client.folders, settings.privacy)
        self._syntax = SyntaxTrees()
        self._related = Related(self._syntax, self._privacy, clock=clock, message=say)
        self.workspace = Workspace(
            client.folders, clock, privacy=self._privacy, syntax=self._syntax, related=self._related
        )
        self.workspace.listeners += [self._syntax, self._related]
        self.builder = ContextBuilder(EstimateCounter())
        self._outcomes = Outcomes(outcome_log_path(), version=version(), warn=say)
        self._outcomes.wanted = settings.log.outcomes
        self.suggester = Suggester(
            self.workspace, self.builder, model, settings.suggest, clock=clock, outcomes=self._outcomes
        )
        # What is not to be noted is learned from in this session alone.
        self.suggester.filter.records = Records(records_path() if settings.log.outcomes else None)
        if client.inline_completion:
            self.suggester.shows_text()

    def budget(self) -> int:
        """How many tokens a context gets."""
        known = self.model.known
        wanted = self.settings.suggest.context_tokens
        if wanted is None:
            return DEFAULT_CONTEXT if known is None else known.default_context
        return wanted if known is None else min(wanted, known.max_context)

    def apply(self, settings: Settings) -> None:
        """Apply changed settings."""
        before, self.settings = self.settings, settings
        if settings.suggest != before.suggest:
            self.suggester.apply_settings(settings.suggest)
        self._outcomes.wanted = settings.log.outcomes
        if settings.privacy != before.privacy:
            self._privacy.update(self.workspace.folders, settings.privacy)
            # It still holds what the old rules let through.
            self.builder.clear()

    async def model_is(self, info: ModelInfo) -> None:
        """Forget what another one answered, and count tokens exactly if this one's tokenizer is on this machine."""
        self.suggester.withdrawn()
        self.suggester.reading.again(info)
        counter: EstimateCounter | ExactCounter = EstimateCounter()
        if info.tokenizer is not None:
            try:
                counter = ExactCounter(await asyncio.to_thread(Tokenizer.from_file, Path(info.tokenizer)))
            except TokenizerError:
                LOG.warning("cannot read the model's tokenizer: Calomel estimates tokens")
        if isinstance(counter, ExactCounter) or isinstance(self.builder.counter, ExactCounter):
            self.builder.counter = counter
            # Parts that were cut by estimates may use only half of their tokens.
            self.builder.clear()
            self.suggester.reading.again()

    @property
    def indexes(self) -> bool:
        """Whether there are folders to index, and the user wants it."""
        return self.settings.workspace.index and bool(self.workspace.folders)

    @property
    def index_status(self) -> dict[str, object]:
        """How far the index is, and how often indexing restarted."""
        return {
            "files": len(self._related.index),
            "ready": self._related.indexer.ready,
            "restarts": self._related.indexer.restarts,
        }

    async def index(self, report: Callable[[float], None]) -> None:
        """Index the folders in the background, and forget other files; returns when all of them are read."""
        if not self.indexes and not self._has_read:
            return
        folders = tuple(self.workspace.folders) if self.indexes else ()
        self._has_read = True
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def progress(read: int, found: int) -> None:
            loop.call_soon_threadsafe(report, read / found if found else 1.0)
            if self._related.indexer.ready:
                loop.call_soon_threadsafe(done.set)

        self._related.start(folders, progress, most_files=self.settings.workspace.index_files)
        await done.wait()
        # Otherwise excerpts chosen from a partial index, or from a removed folder, would stay in the prompt.
        self.builder.clear()
        self.suggester.reading.again()

    def folders_changed(self, folders: tuple[Path, ...]) -> None:
        """The editor's folders changed."""
        self._privacy.update(folders, self.settings.privacy)
        self.workspace.set_folders(folders)

    async def aclose(self) -> None:
        """Settle outcomes and end threads."""
        await self.suggester.aclose()
        # These wait for threads to end, or for the disk.
        await asyncio.gather(
            *(asyncio.to_thread(work) for work in (self._outcomes.close, self._related.stop, self._save))
        )

    def _save(self) -> None:
        try:
            self.suggester.filter.records.save()
        except OSError as error:
            LOG.warning("cannot store the outcomes of suggestions: %s", error)
