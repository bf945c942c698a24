"""What the server counts, and its recent answers: in numbers for the status page, and for clients' feedback on them."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel

from calomel.infer.completer import Fill, Kind
from calomel.suggest.offers import Outcome, OutcomeKind, OutcomeSink
from calomel.suggest.signals import OutcomeSignals
from calomel.workspace.documents import utf16_length

if TYPE_CHECKING:
    from calomel.infer.chat import Reply

Action = Literal["accept", "reject", "ignore", "partial"]

# An editor decides within minutes; a team of a hundred asks this often within a quarter of an hour.
_REMEMBERED: Final = 4096
# A client that knows an id may change its decision, but not flood the log, which drops old entries for new ones.
_DECISIONS: Final = 8
# These clients report neither what made the editor ask nor the reason for a decision.
_TRIGGER: Final = "http"
_REASON: Final = "feedback"
_OUTCOMES: Final[dict[Action, OutcomeKind]] = {
    "accept": "accepted",
    "reject": "rejected",
    "ignore": "ignored",
    "partial": "partly_accepted",
}


@dataclass(slots=True)
class _RecentAnswer:
    """One answer, and its decisions so far. `shown` holds the user's text: it stays in memory."""

    shown: Outcome
    decisions: int = 0
    last: tuple[Action, int] | None = None


class Deliveries:
    """The latest answers by completion id. Used from the event loop only.

    Args:
        outcomes: records what became of them; None to discard it.
    """

    def __init__(self, outcomes: OutcomeSink | None = None) -> None:
        self._outcomes = outcomes
        self._by_id: OrderedDict[str, _RecentAnswer] = OrderedDict()

    def remember(
        self,
        completion_id: str,
        kind: Kind,
        model: str,
        probability: float,
        text: str,
        *,
        language_id: str = "",
        maker: str = "",
        signals: OutcomeSignals | None = None,
    ) -> None:
        """Remember an answer; the oldest is forgotten.

        Args:
            completion_id: of the answer.
            kind: `fill` or `edit`.
            model: the one that made it.
            probability: that it gets accepted, according to the filter.
            text: the inserted text; for an edit, the new text of its changed lines.
            language_id: of the document; empty when unknown.
            maker: the source that proposed it.
            signals: numbers about it, from before it was shown.
        """
        shown = Outcome(
            id=completion_id,
            outcome="shown",
            reason="",
            kind=kind,
            uri="",
            language_id=language_id,
            trigger=_TRIGGER,
            model=model,
            probability=probability,
            visible_seconds=0.0,
            length=utf16_length(text),
            accepted_length=0,
            text=text,
            signals=signals,
            maker=maker,
        )
        self._by_id[completion_id] = _RecentAnswer(shown)
        while len(self._by_id) > _REMEMBERED:
            self._by_id.popitem(last=False)

    def find(self, completion_id: str) -> Outcome | None:
        """The answer with this id, as it was shown, unless it is forgotten."""
        answer = self._by_id.get(completion_id)
        return None if answer is None else answer.shown

    def decided(self, completion_id: str, action: Action, accepted_length: int = 0) -> None:
        """Record what became of an answer; nothing for an unknown one, and nothing twice.

        Before the first decision, the answer is recorded as shown; the last decision counts.

        Args:
            completion_id: of the answer.
            action: what the user did.
            accepted_length: for `partial`, how much was accepted, in UTF-16 units.
        """
        answer = self._by_id.get(completion_id)
        if answer is None or self._outcomes is None or answer.decisions >= _DECISIONS:
            return
        shown = answer.shown
        taken = shown.length if action == "accept" else min(accepted_length, shown.length) if action == "partial" else 0
        if answer.last == (action, taken):
            return
        if answer.last is None:
            self._outcomes.record(shown)
        answer.last = action, taken
        answer.decisions += 1
        self._outcomes.record(replace(shown, outcome=_OUTCOMES[action], reason=_REASON, accepted_length=taken))


@dataclass(frozen=True, slots=True)
class Spent:
    """What one answer cost.

    Attributes:
        prompt_tokens: of the context, cached ones included.
        cached_tokens: those of them that came from the prefix cache.
        completion_tokens: of the answer.
        steps: denoising steps.
        seconds: from the request to the answer.
        finish: `stop`, `length` or `deadline`.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    steps: int = 0
    seconds: float = 0.0
    finish: str = "stop"

    @classmethod
    def of(cls, answer: Fill | Reply) -> Spent:
        """What the engine reports of an answer."""
        finish = "stop" if answer.finish_reason == "tool_calls" else answer.finish_reason
        prompt, cached, completion = answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens
        return cls(prompt, cached, completion, answer.steps, answer.seconds, finish)


WINDOW_SECONDS: Final = 60.0
# The page shows fewer; in a burst of more answers per minute, only the newest count.
_KEPT: Final = 2048


class RecentStatus(BaseModel):
    """One answer, in numbers.

    Attributes:
        id: of the completion.
        at: seconds since 1970 when it was answered.
        route: its short name.
        finish: how it ended; for an edit, `shown` or the reason why it was not.
    """

    id: str
    at: float
    route: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    steps: int
    milliseconds: float
    finish: str


class PaceStatus(BaseModel):
    """The last minute's answers.

    Attributes:
        seconds: the period covered: a minute, or less after the start.
        p50_ms: the median time of an answer, and `p95_ms` its 95th percentile; None without answers.
        by_second: answers in each second, oldest first; the last one is complete.
    """

    seconds: float
    answers_per_second: float
    tokens_per_second: float
    p50_ms: float | None
    p95_ms: float | None
    by_second: list[int]


class Metrics:
    """Counters. Used from the event loop only.

    Args:
        clock: monotonic seconds.

    Attributes:
        refused: requests refused before any work, by code.
        verdicts: of edits: `shown`, or the reason why not.
        prompt_tokens: of all answers; `cached_tokens` of them came from the cache.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self.refused = Counter[str]()
        self.verdicts = Counter[str]()
        self.prompt_tokens = self.cached_tokens = 0
        self._entries: deque[tuple[float, RecentStatus]] = deque(maxlen=_KEPT)

    @property
    def uptime(self) -> float:
        """Seconds since the server began."""
        return self._clock() - self._began

    def answered(self, completion_id: str, route: str, spent: Spent) -> None:
        """Count the work behind one answer, and keep it among the newest."""
        self.prompt_tokens += spent.prompt_tokens
        self.cached_tokens += spent.cached_tokens
        took = asdict(spent)
        milliseconds = took.pop("seconds") * 1e3
        entry = RecentStatus(id=completion_id, at=time.time(), route=route, milliseconds=milliseconds, **took)
        self._entries.append((self._clock(), entry))

    def entries(self, limit: int) -> list[RecentStatus]:
        """The newest answers, newest first."""
        return [entry for _, entry in self._entries][::-1][:limit]

    def pace(self) -> PaceStatus:
        """The last minute."""
        now = self._clock()
        seconds = min(WINDOW_SECONDS, max(1.0, now - self._began))
        newest = [(at, entry) for at, entry in self._entries if at > now - seconds]
        milliseconds = sorted(entry.milliseconds for _, entry in newest)
        p50, p95 = (milliseconds[int(len(milliseconds) * percent / 100)] if newest else None for percent in (50, 95))
        # The current second is incomplete and would always look slow.
        by_second = [0] * int(seconds)
        for at, _ in newest:
            back = int(now) - int(at)
            if 1 <= back <= len(by_second):
                by_second[-back] += 1
        return PaceStatus(
            seconds=seconds,
            answers_per_second=len(newest) / seconds,
            tokens_per_second=sum(entry.completion_tokens for _, entry in newest) / seconds,
            p50_ms=p50,
            p95_ms=p95,
            by_second=by_second,
        )
