"""A suggestion with what was known of it and what became of it, as a replay writes it down."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields

from calomel.replay.events import Edit, apply_edits
from calomel.replay.metrics.parse import parse_error_delta
from calomel.replay.metrics.reversal import reversal
from calomel.replay.opportunity import Shown
from calomel.replay.person import Verdict
from calomel.replay.watched_gate import Decision
from calomel.suggest.outcome_signals import signals_of
from calomel.suggest.planned import plan
from calomel.suggest.suggestion import TextEdit


def shown(
    edits: tuple[Edit, ...],
    verdict: Verdict,
    source: str,
    confidence: float = math.nan,
    signals: Mapping[str, float] | None = None,
    maker: str = "",
) -> Shown:
    """A suggestion with its verdict."""
    return Shown(
        edits=edits,
        before=verdict.before,
        after=verdict.after,
        expected=verdict.expected,
        confidence=confidence,
        signals=signals or {},
        source=source,
        outcome=verdict.outcome,
        accepted_characters=verdict.accepted_characters,
        saved_characters=verdict.saved_characters,
        kept=verdict.kept,
        visible_seconds=verdict.visible_seconds,
        given=verdict.given,
        maker=maker,
    )


def raw_confidence(decision: Decision | None) -> float:
    """How likely an edit is right, or `exp` of the mean log-probability of the revealed tokens; NaN where not known."""
    if decision is None:
        return math.nan
    likely = decision.signals.likely
    return math.exp(min(0.0, decision.candidate.mean_log_prob)) if likely is None else likely


def consequences(text: str, edits: Sequence[Edit], before: str | None, language_id: str) -> dict[str, float]:
    """What the whole document would be like: how much of the last edit is undone, and how many errors come.

    Args:
        text: as it is.
        edits: suggested.
        before: the text before the person's last edit; None when there was none.
        language_id: of the document.
    """
    predicted = apply_edits(text, edits)
    found: dict[str, float] = {}
    if before is not None:
        found["reversal_ratio"] = reversal(before, text, predicted).ratio
    errors = parse_error_delta(text, predicted, language_id)
    return found if errors is None else {**found, "parse_error_delta": float(errors)}


def numbers(text: str, edits: Sequence[TextEdit], decision: Decision | None) -> dict[str, float]:
    """What was known before, by name; what is not known, or is no number, is left out."""
    if decision is None:
        return {}
    known = signals_of(decision.candidate, plan(text, edits), decision.signals)
    values = {each.name: getattr(known, each.name) for each in fields(known)}
    return {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
