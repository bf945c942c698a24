"""Whether the model is asked, and when: where it may be, after a pause in the typing, and once at a time."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from calomel.infer.client import ended
from calomel.infer.completer import CompleteAnswer, Kind
from calomel.infer.fitting import splits_word
from calomel.suggest.cache import Entry
from calomel.suggest.edit import Answer
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.snapshot import Request, Trigger
from calomel.suggest.state import DocumentState, several_cursors
from calomel.workspace.documents import Document, Origin
from calomel.workspace.settings import SuggestSettings
from calomel.workspace.workspace import Workspace

# A longer gap is a pause for thought, not a rhythm.
LONGEST_GAP: Final = 1.5
# The gap assumed before any is measured; the median of a recorded 92-minute session was 0.134 s.
FIRST_GAP: Final = 0.13
SHORTEST_WAIT: Final = 0.03
LONGEST_WAIT: Final = 1.0
# Multiples of the usual gap: a key this late probably does not come. Tabby's clients use 1.5 to 3.
_RATE_AT_BREAK: Final = 1.2
_RATE_IN_WORD: Final = 1.8
_REMEMBERED: Final = 24
_BREAKS: Final = frozenset(" \t\r\n([{.,:;=<>+-*/%&|!\"'`")


class Debounce:
    """The typing rhythm of one user, and the debounce that follows from it.

    The wait is a multiple of the usual gap between keys, shorter between words than within one, minus the model's
    usual latency: an answer that comes while the next key is overdue disturbs nobody.
    """

    def __init__(self, clock: Callable[[], float], fixed: float | None = None) -> None:
        """`fixed`: seconds set by the user; None to learn them."""
        self.fixed = fixed
        self._clock = clock
        self._gaps: deque[float] = deque(maxlen=_REMEMBERED)
        self._last_key: float | None = None
        self._pauses = 0

    def key(self) -> None:
        """The user pressed a key."""
        now, self._pauses = self._clock(), self.pauses
        if self._last_key is None:
            self._pauses = 1
        elif 0.0 < now - self._last_key <= LONGEST_GAP:
            self._gaps.append(now - self._last_key)
        self._last_key = now

    @property
    def pauses(self) -> int:
        """How often the user has paused, before the first key and since the last one too."""
        return self._pauses + (self._last_key is not None and self._clock() - self._last_key > LONGEST_GAP)

    def rest(self) -> None:
        """Nobody waits for an answer now: a pause, too."""
        self._pauses += 1

    def wait(self, before: str, latency: float, patience: float = 1.0) -> float:
        """Seconds to wait from now.

        Args:
            before: the character before the cursor, or nothing.
            latency: seconds that an answer usually takes.
            patience: factor, greater than 1 after rejections.
        """
        if self._last_key is None:
            return 0.0
        if self.fixed is not None:
            whole = self.fixed
        else:
            rate = _RATE_AT_BREAK if not before or before in _BREAKS else _RATE_IN_WORD
            gap = min(max(median(self._gaps) if self._gaps else FIRST_GAP, 0.05), 0.4)
            whole = min(max((rate * gap - latency) * patience, SHORTEST_WAIT), LONGEST_WAIT)
        return max(0.0, self._last_key + whole - self._clock())


# The weights, the ten remembered decisions and their decay over ten minutes are those of Copilot's next edits.
_REJECTED: Final = 1.5
_ACCEPTED: Final = 0.8
_REJECTIONS_REMEMBERED: Final = 10
_FADING: Final = 600.0
# From the third rejection in a row on, each is followed by a pause, longer every time.
_PATIENT: Final = 3
_FIRST_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 60.0


class Cooldown:
    """The pause and the longer waits that follow from the user's last decisions."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._decisions: deque[tuple[float, bool]] = deque(maxlen=_REJECTIONS_REMEMBERED)
        self._in_a_row = 0
        self._until = -math.inf

    def accepted(self) -> None:
        """The user took a suggestion or part of it: end the pause."""
        self._decisions.append((self._clock(), True))
        self._in_a_row = 0
        self._until = -math.inf

    def rejected(self) -> None:
        """The user dismissed a suggestion."""
        now = self._clock()
        self._decisions.append((now, False))
        self._in_a_row += 1
        if self._in_a_row >= _PATIENT:
            self._until = now + min(_FIRST_PAUSE * 2.0 ** (self._in_a_row - _PATIENT), _LONGEST_PAUSE)

    @property
    def left(self) -> float:
        """Seconds left of the pause; 0 without one."""
        return max(0.0, self._until - self._clock())

    @property
    def patience(self) -> float:
        """Factor for waits; 1 for a user without recent decisions."""
        now = self._clock()
        product = 1.0
        for when, accepted in self._decisions:
            weight = _ACCEPTED if accepted else _REJECTED
            product *= 1.0 + (weight - 1.0) * math.exp((when - now) / _FADING)
        return product

    @property
    def counts(self) -> tuple[int, int]:
        """How many of the last ten decisions were acceptances, and how many rejections."""
        accepted = sum(taken for _, taken in self._decisions)
        return accepted, len(self._decisions) - accepted


# A moving cursor asks for a next edit only within this many seconds of an edit (Copilot's rule).
_AFTER_EDIT: Final = 10.0


class Permission:
    """The settings, overridden by what the user turned on or off by command since; the file's rules; the place.

    Attributes:
        settings: as they are now.
        snoozed_until: suggestions are off until then.
    """

    def __init__(
        self, workspace: Workspace, settings: SuggestSettings, cooldown: Cooldown, clock: Callable[[], float]
    ) -> None:
        self.settings = settings
        self.snoozed_until: float | None = None
        self._workspace = workspace
        self._cooldown = cooldown
        self._clock = clock
        self._by_hand: dict[tuple[str, str], bool] = {}

    def toggle(self, scope: str, name: str | None, *, enabled: bool | None) -> bool:
        """Turn suggestions on or off by command. Returns the new state.

        Args:
            scope: `global`, `language` or `file`.
            name: the language id or the URI.
            enabled: whether to turn them on; None toggles.

        Raises:
            ValueError: unknown scope, or the name that the scope needs is missing.
        """
        settings = self.settings
        defaults = {"global": settings.enabled, "language": settings.language_enabled(name or ""), "file": True}
        if scope not in defaults or (name is None and scope != "global"):
            raise ValueError(f"the scope {scope!r} is unknown or incomplete")
        key = scope, "" if scope == "global" else str(name)
        self._by_hand[key] = not self._by_hand.get(key, defaults[scope]) if enabled is None else enabled
        return self._by_hand[key]

    def off(self, document: Document | None = None) -> SilenceReason | None:
        """Why suggestions are off in a document, or in all; None when they are on."""
        settings = self.settings
        if not self._by_hand.get(("global", ""), settings.enabled):
            return SilenceReason.OFF_GLOBALLY
        if self.snoozed_until is not None and self._clock() < self.snoozed_until:
            return SilenceReason.SNOOZED
        if document is None:
            return None
        if not self._by_hand.get(("file", document.uri), True):
            return SilenceReason.OFF_FILE
        language = document.language_id
        by_language = self._by_hand.get(("language", language), settings.language_enabled(language))
        return None if by_language else SilenceReason.OFF_LANGUAGE

    def place(self, request: Request) -> str:
        """Where the cursor is: `code`, `comment` or `string`; empty if unknown."""
        syntax = self._workspace.syntax
        return "" if syntax is None else syntax.in_comment_or_string(request.document, request.offset) or "code"

    def forbidden(self, request: Request, state: DocumentState) -> Silence | None:
        """Why nothing may be suggested there; None when something may.

        An explicit question is answered whatever is turned off, but a file that is ignored is never read.
        """
        settings, explicit = self.settings, request.explicit
        reason = None if explicit else self.off(request.document)
        if reason is None and not explicit and settings.show == "on_request" and request.drafts is None:
            reason = SilenceReason.ON_REQUEST
        if reason is None and not explicit and request.kind == "edit" and not settings.next_edit:
            reason = SilenceReason.OFF_NEXT_EDIT
        if reason is None:
            verdict = self._workspace.verdict(request.document)
            unfit = verdict.reason or state.unfit(request.document, wanted=verdict.wanted)
            if unfit:
                return Silence.kept(unfit)
        if reason is None and several_cursors(request.document.last_message, request.offset):
            reason = SilenceReason.MULTI_CURSOR
        if reason is None and not explicit and not (settings.in_comments and settings.in_strings):
            place = self.place(request)
            if place == "comment" and not settings.in_comments:
                reason = SilenceReason.IN_COMMENT
            elif place == "string" and not settings.in_strings:
                reason = SilenceReason.IN_STRING
        return None if reason is None else Silence.of(reason)

    def unwelcome(self, request: Request, state: DocumentState) -> Silence | None:
        """Why the model is not asked now; None when it may be."""
        if request.explicit:
            return None
        if (
            request.kind == "fill"
            and request.selected is None
            and splits_word(request.before, request.document.text[request.offset :][:1])
        ):
            return Silence.of(SilenceReason.MID_WORD)
        age, moved = state.recent.age, request.trigger is Trigger.CURSOR
        if any(each.start <= request.offset <= each.end for each in request.diagnostics):
            age = 0.0  # going to a problem says as much as an edit
        if (age is None and (moved or request.kind == "edit")) or (age is not None and moved and age > _AFTER_EDIT):
            return Silence.of(SilenceReason.NO_RECENT_EDIT)
        return Silence.of(SilenceReason.COOLDOWN) if self._cooldown.left else None


_ANSWERS_REMEMBERED: Final = 256


class Latency:
    """The latency of the last answers, in seconds."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=_ANSWERS_REMEMBERED)

    def add(self, seconds: float) -> None:
        """Add one answer's latency."""
        self._seconds.append(seconds)

    def quantile(self, share: float) -> float | None:
        """The smallest latency that at least `share` of the answers did not exceed; None before the first."""
        if not self._seconds:
            return None
        ordered = sorted(self._seconds)
        return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


@dataclass(eq=False, slots=True)
class ModelRun:
    """Work for one question, which may outlive it.

    Attributes:
        request: the question.
        revision: of the document, whose text it is about.
        owner: the task of the question that it currently serves; None while nobody waits for it.
        until: the time by which it is not worth waiting for any more.
        grown: the beginning of its answer so far; None if the model does not stream.
        task: returns the result.
        line: becomes the first line of a longer answer, which may be shown while the rest is written.
    """

    request: Request
    revision: int
    owner: asyncio.Task[Answer] | None
    until: float
    grown: str | None = None
    task: asyncio.Task[Entry | Silence] = field(init=False)
    line: asyncio.Future[CompleteAnswer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def outdated(self) -> bool:
        """Whether the text has changed since it began."""
        return self.request.document.revision != self.revision

    @property
    def place(self) -> int | None:
        """Where the cursor is if all that has changed since was put in there, in one line, as the answer begins."""
        request, at = self.request, self.request.offset
        changes = request.document.since(self.revision)
        if changes is None or request.kind != "fill" or request.selected is not None:
            return None
        for logged in changes:
            change = logged.change
            typed = logged.origin in {Origin.TYPED, Origin.PREDICTED} and not change.removed and change.start == at
            if not typed or "\n" in change.inserted or "\r" in change.inserted:
                return None
            at += len(change.inserted)
        since, grown = request.document.text[request.offset : at], self.grown or ""
        return at if grown.startswith(since) or since.startswith(grown) else None

    @property
    def extends(self) -> bool:
        """Whether its first line was given, and nothing else was typed since."""
        return self.line.done() and self.place is not None

    def grows(self, text: str) -> None:
        """The model's answer begins with `text`: the work ends where that is not what was typed meanwhile."""
        self.grown = text
        if self.outdated and self.place is None:
            self.task.cancel()

    def begins(self, line: CompleteAnswer) -> None:
        """The model's answer has more than one line, and this is the first."""
        if not self.line.done():
            self.line.set_result(line)


_IN_VAIN: Final = 2


class SingleFlight:
    """At most one running question per editor, and at most one waiting per kind.

    A newer question supersedes the older one of its kind, whose caller is told at once. The older one's work goes on
    while what is typed may be what it answers (`ModelRun.place`), until that is too old; otherwise while the newer one
    waits for the typing to pause. If its answer still fits then, it is used.

    Attributes:
        in_vain: how many waits for such work in a row brought nothing. Where people type something else than their
            model says, waiting only makes the next answer late.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.in_vain = 0
        self._clock = clock
        self._run: ModelRun | None = None
        self._asking: dict[Kind, asyncio.Task[Answer]] = {}

    @property
    def running(self) -> ModelRun | None:
        """The work in progress."""
        return None if self._run is None or self._run.task.done() else self._run

    @property
    def inherited(self) -> asyncio.Task[Entry | Silence] | None:
        """The work in progress that the current task's question took over."""
        run = self.running
        return run.task if run is not None and run.owner is asyncio.current_task() else None

    def kept(self, offset: int | None = None) -> ModelRun | None:
        """The work in progress that is worth waiting for, at a cursor, whatever is typed along with it."""
        run = self.running
        if run is None or run.grown is None or not self._keeps(run):
            return None
        return run if offset in {None, run.place} else None

    def _keeps(self, run: ModelRun) -> bool:
        wanted = self.in_vain < _IN_VAIN and not run.request.explicit
        return wanted and run.place is not None and self._clock() < run.until

    def look(self) -> None:
        """A document has changed: work that nobody waits for ends where it is of no use any more."""
        run = self.running
        if run is not None and run.owner is None and not run.extends and not self._keeps(run):
            run.task.cancel()

    def closed(self, document: Document) -> None:
        """Work about this document is of no use any more."""
        run = self.running
        if run is not None and run.request.document is document:
            run.task.cancel()

    async def answer(self, request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Do `work` unless a newer question of its kind comes; cancelling also cancels the work and what it runs."""
        task = asyncio.ensure_future(work)
        kind, run = request.kind, self.running
        previous = self._asking.get(kind)
        self._asking[kind] = task
        if run is not None and run.request.kind == kind and run.owner in {previous, None}:
            if run.request.document is request.document:
                run.owner = task
            else:
                run.task.cancel()
        if previous is not None:
            previous.cancel()
        try:
            await asyncio.wait({task})
            return Silence.of(SilenceReason.SUPERSEDED) if task.cancelled() else task.result()
        finally:
            await ended(task)
            if self._asking.get(kind) is task:
                del self._asking[kind]
            run = self.running
            if run is not None and run.owner is task:
                run.owner = None
                self.look()

    async def run(
        self,
        request: Request,
        work: Callable[[ModelRun], Coroutine[Any, Any, Entry | Silence]],
        patience: float,
    ) -> Entry | Silence | CompleteAnswer:
        """The result of `work`, or the first line of a longer one; started as soon as nothing else runs.

        `patience`: seconds for which it is worth waiting for it. An explicit question waits for no other one.
        """
        owner: Any = asyncio.current_task()
        while (other := self.running) is not None:
            kind = other.request.kind
            if request.explicit or other.owner is owner or kind == request.kind or (other.outdated and not self.kept()):
                other.task.cancel()
            await asyncio.wait({other.task})
        run = self._run = ModelRun(request, request.document.revision, owner, self._clock() + patience)
        run.task = asyncio.ensure_future(work(run))
        either: set[asyncio.Future[Any]] = {run.task, run.line}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return run.line.result() if not run.task.done() else await self.rest()

    async def rest(self) -> Entry | Silence:
        """The result of what runs."""
        run = self._run
        if run is None:
            return Silence.of(SilenceReason.SUPERSEDED)
        await asyncio.wait({run.task})
        return Silence.of(SilenceReason.SUPERSEDED) if run.task.cancelled() else run.task.result()

    async def aclose(self) -> None:
        """Supersede everything and wait until nothing runs."""
        for task in list(self._asking.values()):
            task.cancel()
        if self.running is not None:
            await ended(self.running.task)
