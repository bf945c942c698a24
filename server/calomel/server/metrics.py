"""What the server counts, and its answers of the last minutes for the status page; numbers, never text."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from calomel.infer.completer import Fill

if TYPE_CHECKING:
    from calomel.infer.chat import Reply


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
        now: seconds since 1970.

    Attributes:
        refused: requests refused before any work, by code.
        verdicts: of edits: `shown`, or the reason why not.
        prompt_tokens: of all answers; `cached_tokens` of them came from the cache.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._now = now
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
        entry = RecentStatus(id=completion_id, at=self._now(), route=route, milliseconds=milliseconds, **took)
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
