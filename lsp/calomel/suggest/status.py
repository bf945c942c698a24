"""What a user sees of the suggester when asking how it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ModelState = Literal["unknown", "loading", "ready", "unreachable", "failed"]


@dataclass(frozen=True, slots=True)
class LastWithheld:
    """The latest suggestion that was held back, in numbers.

    Attributes:
        reason: of the silence.
        kind: `fill` or `edit`.
        maker: who proposed it.
        probability: that it would have been accepted, as far as the gate can tell.
        threshold: of its language; None when the gate has none.
    """

    reason: str
    kind: str
    maker: str
    probability: float
    threshold: float | None


@dataclass(frozen=True, slots=True)
class WithheldReport:
    """The suggestions that were held back, each counted once however often it came back.

    Attributes:
        by_reason: how many for each reason.
        by_maker: how many of each maker.
        typed: by reason, those that the user then wrote by hand.
        last: the latest one.
    """

    by_reason: Mapping[str, int] = field(default_factory=dict)
    by_maker: Mapping[str, int] = field(default_factory=dict)
    typed: Mapping[str, int] = field(default_factory=dict)
    last: LastWithheld | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """One look at a suggester.

    Attributes:
        state: of the model.
        model: id of the loaded model, None before it is known.
        message: one sentence for people.
        silences: how often each reason was the answer.
        outcomes: how often each outcome came.
        requests: questions of the editor.
        asked: questions that reached the model.
        cached: suggestions answered without the model.
        latency_p50: seconds from the question (debounce excluded) to the answer of the model; None before the first.
        latency_p95: likewise.
        off: the reason why nothing is suggested at all, None when it is on.
        last: how the last question was answered: `{"reason", "message"}` or `{"shown": id}`; None before the first.
        withheld: what was held back.
    """

    state: ModelState
    model: str | None
    message: str
    silences: Mapping[str, int] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    requests: int = 0
    asked: int = 0
    cached: int = 0
    latency_p50: float | None = None
    latency_p95: float | None = None
    off: str | None = None
    last: Mapping[str, str] | None = None
    withheld: WithheldReport = field(default_factory=WithheldReport)
