"""Opportunities as a replay writes them down, for tests of figures and reports."""

from __future__ import annotations

from calomel.replay.events import Edit
from calomel.replay.opportunity import LogResult, Opportunity, Outcome, Shown


def shown(
    outcome: Outcome = "accepted",
    confidence: float | None = 0.5,
    *,
    saved: int = 0,
    kept: bool | None = None,
    before: str = "x = ",
    after: str = "x = 1",
    expected: str | None = "x = 1",
    signals: dict[str, float] | None = None,
    source: str = "calomel",
) -> Shown:
    return Shown(
        edits=(Edit(4, 4, after.removeprefix(before)),),
        before=before,
        after=after,
        expected=expected,
        confidence=confidence,
        signals=signals or {},
        source=source,
        outcome=outcome,
        accepted_characters=saved,
        saved_characters=saved,
        kept=kept,
        visible_seconds=1.0,
    )


def opportunity(
    entry: int,
    candidate: Shown | None = None,
    *,
    silence: str | None = None,
    time: float | None = None,
    latency_ms: float = 0.0,
    computed: int = 0,
    cached: int = 0,
    log: str = "log",
) -> Opportunity:
    return Opportunity(
        log=log,
        entry=entry,
        time=float(entry) if time is None else time,
        path="src/main.py",
        language_id="python",
        kind="fill",
        silence=silence,
        candidate=candidate,
        shown=candidate is not None and silence is None,
        latency_ms=latency_ms,
        computed_tokens=computed,
        cached_tokens=cached,
    )


def result(
    opportunities: list[Opportunity],
    recorded: list[Opportunity] | None = None,
    *,
    minutes: float = 1.0,
    typed: int = 100,
    log: str = "log",
) -> LogResult:
    return LogResult(
        log=log,
        kind="recording",
        seconds=minutes * 60,
        typed_characters=typed,
        opportunities=opportunities,
        recorded=recorded or [],
        active_minutes=minutes,
    )
