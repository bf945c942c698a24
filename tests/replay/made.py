"""Opportunities as a replay writes them down, for tests of figures and reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calomel.prompts.parts import Edit
from calomel.replay.opportunity import LogResult, Opportunity, Shown
from calomel.selectivity.sample import Reaction

_TEXTS = {"before": "x = ", "after": "x = 1", "expected": "x = 1", "source": "calomel", "outcome": "accepted"}
_FIGURES = {"accepted_characters": 0, "saved_characters": 0, "kept": None, "visible_seconds": 1.0}
_SHOWN = Shown(**{"edits": (), "confidence": 0.5, "signals": {}, **_TEXTS, **_FIGURES})  # type: ignore[arg-type]
_ASKED = Opportunity("log", 0, 0.0, "src/main.py", "python", "fill", None, None, shown=False)


def shown(outcome: Reaction = "accepted", confidence: float | None = 0.5, *, saved: int = 0, **changes: Any) -> Shown:
    """A suggestion of `x = 1`; `saved` characters of it were accepted."""
    made = replace(_SHOWN, outcome=outcome, confidence=confidence, saved_characters=saved, **changes)
    return replace(made, accepted_characters=saved, edits=(Edit(4, 4, made.after.removeprefix(made.before)),))


def opportunity(
    entry: int, candidate: Shown | None = None, *, computed: int = 0, cached: int = 0, **changes: Any
) -> Opportunity:
    """One at the second `entry`."""
    values = {"time": float(entry), "computed_tokens": computed, "cached_tokens": cached, **changes}
    visible = candidate is not None and values.get("silence") is None
    return replace(_ASKED, entry=entry, candidate=candidate, shown=visible, **values)


def result(
    opportunities: list[Opportunity],
    recorded: list[Opportunity] | None = None,
    *,
    minutes: float = 1.0,
    typed: int = 100,
    log: str = "log",
) -> LogResult:
    """Of a log in which somebody typed for so many minutes."""
    return LogResult(log, "recording", minutes * 60, typed, opportunities, recorded or [], active_minutes=minutes)
