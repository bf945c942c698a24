"""A model between the suggester and the log's clock: its answers take the time that they take, or a fixed one.

What it answered is kept in a journal, so that an interrupted replay goes through the same answers again in no time.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Protocol

from calomel.replay.log_time import LogTime
from calomel.suggest.completer import CompleteAnswer, Completer, CompleteRequest, ModelInfo
from calomel.suggest.wire import decode_answer, encode_answer, encode_request


class Answers(Protocol):
    """Where answers are kept; `calomel.bench.journal.Journal` is one."""

    def get(self, key: str) -> dict[str, Any] | None:
        """What was put under `key`."""

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question that the model answered: seconds, tokens of the prompt that it read, and that it knew.

    `makers`: of candidates that would change something. `steps`, `rows`: what the engine did for it, where that counts;
    of a question that was dropped meanwhile, as far as it came.
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
        latency: seconds of every answer; None for those that it really takes.
        answers: known from before; None keeps nothing.
    """

    def __init__(
        self,
        inner: Completer,
        log_time: LogTime,
        latency: float | None,
        answers: Answers | None = None,
    ) -> None:
        self.asked = 0
        self.answered: list[Asked] = []
        self._inner = inner
        self._time = log_time
        self._latency = latency
        self._answers = answers
        self._seen: Counter[str] = Counter()

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises CompleterError."""
        self.asked += 1
        if self._latency is not None:
            # Whoever gives up meanwhile costs nothing. A slow machine must not change what a fixed latency gives.
            request = replace(request, deadline=None)
            await self._time.sleep(self._latency)
        key = self._key(request)
        known = None if self._answers is None else self._answers.get(key)
        if known is not None:
            answer, seconds = decode_answer(known["answer"]), float(known["seconds"])
            steps, rows = int(known.get("steps", 0)), int(known.get("rows", 0))
            if self._latency is None:
                await self._time.sleep(seconds)
        else:
            began, done = self._time.now, self._done
            try:
                answer = await self._time.compute(self._inner.complete(request))
            except BaseException:
                self.answered.append(Asked(self._time.now - began, 0, 0, frozenset(), *self._since(done)))
                raise
            seconds, (steps, rows) = self._time.now - began, self._since(done)
            if self._answers is not None:
                record = {"answer": encode_answer(answer).decode(), "seconds": seconds, "steps": steps, "rows": rows}
                self._answers.put(key, record)
        computed = max(0, answer.context_tokens - answer.cached_tokens)
        seconds = seconds if self._latency is None else self._latency
        self.answered.append(Asked(seconds, computed, answer.cached_tokens, _makers(request, answer), steps, rows))
        return answer

    async def info(self) -> ModelInfo:
        """What the model can do."""
        return await self._inner.info()

    async def aclose(self) -> None:
        """Nothing: the model belongs to who made it."""

    @property
    def _done(self) -> tuple[int, int]:
        """Steps of the engine so far, and rows of its forwards."""
        work = getattr(self._inner, "work", None)
        return (0, 0) if work is None else (work.steps, work.rows)

    def _since(self, before: tuple[int, int]) -> tuple[int, int]:
        steps, rows = self._done
        return steps - before[0], rows - before[1]

    def _key(self, request: CompleteRequest) -> str:
        digest = hashlib.sha256(encode_request(request)).hexdigest()[:24]
        self._seen[digest] += 1
        return f"{digest}-{self._seen[digest]}"


def _makers(request: CompleteRequest, answer: CompleteAnswer) -> frozenset[str]:
    region = request.parts.region
    as_it_is = "" if region is None else region.text
    return frozenset(candidate.maker for candidate in answer.candidates if candidate.text != as_it_is)
