"""What the gate knew of a proposed edit, as a line that a calibrator is fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from calomel.replay.watched_gate import Decision
from calomel.selectivity.edit_calibrator import EditSignals


def signals_line(decision: Decision) -> Mapping[str, Any] | None:
    """The fields of `EditSignals` by name; None for a candidate that was not judged."""
    candidate, signals = decision.candidate, decision.signals
    if candidate.log_prob is None or candidate.keep_log_prob is None:
        return None
    return asdict(
        EditSignals(
            log_prob=candidate.log_prob,
            keep_log_prob=candidate.keep_log_prob,
            tokens=max(1, len(candidate.log_probs)),
            maker=candidate.maker,
            support=signals.support,
            rows=signals.distance,
            inserted=sum(len(edit.text) for edit in signals.edits),
            removed=sum(edit.end - edit.start for edit in signals.edits),
        )
    )
