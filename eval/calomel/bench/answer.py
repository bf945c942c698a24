"""Asking for a hole's answer under one policy, and judging it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from calomel.bench.holes import Hole, TokenMeasure
from calomel.bench.model import LEFT_TO_RIGHT, OpenModel


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to decode: a policy, and its bound on steps, None for the default.

    Without a policy it is the shipped way: from the beginning of the cursor's word on, or what stands elsewhere where
    that is likelier right. Policies are compared on the bare prompt.
    """

    name: str
    policy: str | None = None
    max_steps: int | None = None

    @classmethod
    def parse(cls, text: str) -> Contender:
        """Read `POLICY` or `POLICY@STEPS`, as in `threshold:0.9@8`.

        Raises:
            ValueError: the steps are no positive number.
        """
        policy, mark, steps = text.partition("@")
        if mark and not (steps.isdigit() and int(steps) > 0):
            raise ValueError(f"{text!r}: behind @ belongs a positive number of steps")
        return cls(text, None if policy == "default" else policy, int(steps) if mark else None)

    @classmethod
    def chosen(cls, policy: str | None, max_steps: int | None) -> Contender:
        """What the options name, by default the default; `max_steps` goes before the policy's own bound."""
        text = policy or "default"
        return cls.parse(text if max_steps is None else f"{text.partition('@')[0]}@{max_steps}")


BASELINE = Contender(LEFT_TO_RIGHT, LEFT_TO_RIGHT)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer to one hole.

    Attributes:
        text: what would be inserted.
        kept_tokens: tokens of `text`, plus one where the answer ended by an end token that counted.
        forwards: all forwards after prefill, length probe and verification included.
        milliseconds: the whole call with a warm prefix cache: rendering, the rest of the prefill, denoising, decoding.
    """

    text: str
    kept_tokens: int
    forwards: int
    milliseconds: float
    finish_reason: str


class Answerer(Protocol):
    """Answers holes; `prime` fills the prefix cache for one, so that the order of contenders does not matter."""

    def prime(self, hole: Hole) -> float:
        """Encode the hole's context; returns the milliseconds that took."""
        ...

    def attempt(self, hole: Hole, contender: Contender) -> Attempt:
        """Answer the hole as `contender`."""
        ...


class ModelAnswerer:
    """Answers with a model, through the same `Filler` as every door."""

    def __init__(self, model: OpenModel, clock: Callable[[], float] = time.perf_counter) -> None:
        self._model = model
        self._clock = clock

    def prime(self, hole: Hole) -> float:
        """One token in one step: what it leaves behind is the cached context."""
        fill = self._model.fill(hole, policy=None, max_steps=1, max_tokens=1)
        return fill.result.prefill_seconds * 1e3

    def attempt(self, hole: Hole, contender: Contender) -> Attempt:
        """Fill, and cut behind the first line where the hole is a single line by definition."""
        started = self._clock()
        fill = self._model.fill(
            hole,
            policy=contender.policy,
            max_steps=contender.max_steps,
            max_tokens=hole.max_tokens,
            as_doors=contender.policy is None,
        )
        milliseconds = (self._clock() - started) * 1e3
        text, kept = fill.text, fill.completion_tokens + (fill.result.end_log_prob is not None)
        if hole.first_line_only:
            text, kept = first_line(text, kept, self._model.measure)
        return Attempt(text, kept, fill.forwards, milliseconds, fill.finish_reason)


class Oracle:
    """Answers with what was there: proves that holes, cutting, programs and tests fit together."""

    def prime(self, hole: Hole) -> float:  # noqa: ARG002 - nothing to encode
        """Nothing to do."""
        return 0.0

    def attempt(self, hole: Hole, contender: Contender) -> Attempt:  # noqa: ARG002 - one answer for all
        """The hole's own text, cut like any other answer."""
        text = f"{hole.answer.split(chr(10), 1)[0]}\n" if hole.first_line_only else hole.answer
        return Attempt(text, 1, 1, 0.0, "stop")


def first_line(text: str, kept: int, measure: TokenMeasure) -> tuple[str, int]:
    """The first line with a line end, and the tokens to count: what was cut off is not kept, nor the end behind it."""
    line, mark, rest = text.partition("\n")
    if not rest:
        return line + "\n", kept
    return line + mark, min(kept, measure.count(line + mark))


def matches(hole: Hole, text: str) -> bool:
    """Whether `text` is what was there, spaces at the ends of lines aside.

    The end of the last line is behind the hole: what follows the hole on its line is part of the comparison.
    """
    tail = hole.suffix.split("\n", 1)[0]
    return _trimmed(text + tail) == _trimmed(hole.answer + tail)


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n"))
