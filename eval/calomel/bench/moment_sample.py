"""What the gate knew of a proposed edit, and whether it was right, as a sample that a calibrator is fitted to."""

from __future__ import annotations

from calomel.bench.moments import Moment
from calomel.replay.language_ids import language_of
from calomel.replay.story_log import package_of
from calomel.replay.watched_gate import Decision
from calomel.selectivity.sample import Sample
from calomel.suggest.judging import known_signals
from calomel.suggest.outcome_signals import signals_of
from calomel.suggest.planned import plan
from calomel.suggest.suggestion import apply


def moment_sample(moment: Moment, decision: Decision) -> Sample:
    """Accepted means right: nobody is there who could accept it."""
    signals = decision.signals
    right = moment.right(apply(moment.text, signals.edits))
    path = moment.story.path
    return Sample(
        question=moment.id,
        kind=signals.kind,
        outcome="accepted" if right else "rejected",
        maker=decision.candidate.maker,
        language=language_of(path),
        group=package_of(path),
        signals=known_signals(signals_of(decision.candidate, plan(moment.text, signals.edits), signals)),
        filters=signals.filters,
        shown=False,
    )
