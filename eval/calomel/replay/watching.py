"""What a replay puts between the suggester and the model, and after its filter: the log's clock, and observers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calomel.infer.completer import Candidate, CompleteAnswer, Completer, CompleteRequest, ModelInfo
from calomel.replay.log_time import LogTime
from calomel.suggest.judging import Decision


class Decisions:
    """Remembers what a suggestion filter decided, as its `watch`."""

    def __init__(self) -> None:
        self.all: list[Decision] = []

    def __call__(self, decision: Decision) -> None:
        """Record one decision."""
        self.all.append(decision)

    def surest(self, since: int = 0) -> Decision | None:
        """The surest of the decisions after the first `since`: one question may have several candidates."""
        return max(self.all[since:], key=lambda each: each.probability, default=None)

    def about(self, candidate: Candidate) -> Decision | None:
        """The decision about a candidate."""
        return next((each for each in reversed(self.all) if each.proposed.candidate is candidate), None)


@dataclass(frozen=True, slots=True)
class Answered:
    """One question that the model answered: seconds, prompt tokens that it encoded, and those that were cached.

    `makers`: of candidates that would change something. `steps`, `rows`: what the engine did for it, where it counts
    them; for a cancelled question, as far as it got.
    """

    seconds: float
    computed_tokens: int
    cached_tokens: int
    makers: frozenset[str] = frozenset()
    steps: int = 0
    rows: int = 0


class TimedCompleter:
    """A `Completer` whose answers arrive on the log's clock.

    Args:
        inner: the model.
        log_time: of the log.
        latency: seconds per answer; None for those that it really takes.
    """

    def __init__(self, inner: Completer, log_time: LogTime, latency: float | None) -> None:
        self.asked = 0
        self.answered: list[Answered] = []
        self._inner = inner
        self._time = log_time
        self._latency = latency

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises CompleterError."""
        self.asked += 1
        if self._latency is not None:
            # A request cancelled meanwhile costs nothing. A slow machine must not change results at a fixed latency.
            request = replace(request, deadline=None)
            await self._time.sleep(self._latency)
        began, (steps, rows) = self._time.now, self._done
        answer: CompleteAnswer | None = None
        try:
            answer = await self._time.compute(self._inner.complete(request))
        finally:
            done = self._done[0] - steps, self._done[1] - rows
            seconds = self._time.now - began
            if answer is None:
                self.answered.append(Answered(seconds, 0, 0, frozenset(), *done))
        computed = max(0, answer.context_tokens - answer.cached_tokens)
        seconds = seconds if self._latency is None else self._latency
        region = request.parts.region
        as_it_is = "" if region is None else region.text
        makers = frozenset(candidate.maker for candidate in answer.candidates if candidate.text != as_it_is)
        self.answered.append(Answered(seconds, computed, answer.cached_tokens, makers, *done))
        return answer

    async def info(self) -> ModelInfo:
        """Describes the model."""
        return await self._inner.info()

    async def aclose(self) -> None:
        """Do nothing: whoever opened the model closes it."""

    @property
    def _done(self) -> tuple[int, int]:
        """Steps of the engine so far, and rows of its forwards; zeros where it does not count."""
        work = getattr(self._inner, "work", None)
        return (0, 0) if work is None else (work.steps, work.rows)
