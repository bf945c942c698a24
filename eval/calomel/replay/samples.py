"""A suggestion with what was known about it and its outcome, and every candidate that was judged, as samples.

Samples are taken while nothing is shown, so that no suggestion hides the next one, and all filters report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from calomel.replay.events import Changed, Edit, Event, Expected, ReplayLog, apply_edits
from calomel.replay.opportunity import Opportunity, Shown, Verdict
from calomel.replay.person import Moment, difference, judge
from calomel.selectivity.sample import Sample
from calomel.suggest.edit import edits_of, plan
from calomel.suggest.judging import Decision

# What a person does within half an hour is alike: its samples stay together.
_SITTING: Final = 1800.0


def shown(verdict: Verdict, edits: tuple[Edit, ...], source: str, **more: Any) -> Shown:
    """A suggestion with its verdict, and what else is known about it."""
    told = {each.name: getattr(verdict, each.name) for each in fields(Verdict)}
    return Shown(**told, edits=edits, source=source, **more)


def raw_confidence(decision: Decision | None) -> float | None:
    """How likely it is right; None if unknown."""
    return None if decision is None or not math.isfinite(decision.probability) else decision.probability


def numbers(text: str, edits: Sequence[Edit], decision: Decision | None) -> dict[str, float]:
    """The signals known before the decision, by name; unknown and non-numeric ones are left out."""
    if decision is None:
        return {}
    values = decision.signals.about(plan(text, edits)).flat()
    return {
        name: float(value) for name, value in values.items() if isinstance(value, int | float) and math.isfinite(value)
    }


@dataclass(slots=True)
class SampleBook:
    """Collects samples of one log.

    Attributes:
        log: the one being played.
        samples: so far.
    """

    log: ReplayLog
    samples: list[Sample] = field(default_factory=list)
    _seen: list[Decision] = field(default_factory=list)
    # The texts that the last question's candidates led to: while the person types along, the same ones come again.
    _goals: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def see(self, decision: Decision) -> None:
        """Note a candidate that was judged."""
        self._seen.append(decision)

    def forget(self) -> None:
        """Forget the noted candidates, as another question begins."""
        self._seen.clear()

    def take(self, moment: Moment, opportunity: Opportunity) -> None:
        """Judge the candidates noted since the question began, by what the person wrote.

        Args:
            moment: now.
            opportunity: the question.
        """
        goals: set[int] = set()
        before = self._goals.get((moment.document, opportunity.kind), set())
        for found in self._seen:
            edits = edits_of(found.edits)
            goal = hash((apply_edits(moment.text, edits), found.maker))
            if goal not in goals | before:
                verdict = judge(moment, edits, self.log.events)
                self.samples.append(self._sample(moment, opportunity, found, verdict))
            goals.add(goal)
        self._goals[moment.document, opportunity.kind] = goals
        self._seen.clear()

    def _sample(self, moment: Moment, opportunity: Opportunity, found: Decision, verdict: Verdict) -> Sample:
        return Sample(
            question=f"{opportunity.log}:{opportunity.entry}:{opportunity.kind}",
            kind=opportunity.kind,
            outcome=verdict.outcome,
            maker=found.maker,
            language=opportunity.language_id,
            group=self.log.metadata.get("group", f"{self.log.name}#{int(moment.time // _SITTING)}"),
            time=moment.time,
            signals=found.signals.known(),
            filters=found.filters,
            saved_characters=verdict.saved_characters,
            judged_ms=round(found.seconds * 1e3, 4),
            shown=False,
        )


def by_alternatives(event: Expected, text: str, opportunity: Opportunity) -> Opportunity:
    """The same opportunity with its best verdict; where silence is right, everything is rejected.

    Args:
        event: the question.
        text: of its document.
        opportunity: what was suggested.
    """
    candidate = opportunity.candidate
    if candidate is None or not event.alternatives:
        return replace(opportunity, name=event.name)
    verdicts: list[Verdict] = []
    lines: list[str | None] = []
    for alternative in event.alternatives:
        after: list[Event] = []
        if alternative is not None:
            after.append(Changed(event.entry, event.time, event.document, difference(text, alternative), "other"))
        verdicts.append(judge(Moment(event.document, text, event.time, 0), candidate.edits, after))
        lines.append(None if alternative is None else verdicts[-1].expected)
    best = max(verdicts, key=lambda each: (each.outcome == "accepted", each.accepted_characters))
    known = {name: getattr(candidate, name) for name in ("edits", "source", "confidence", "signals")}
    judged = shown(replace(best, kept=None), **known, alternatives=tuple(lines))
    return replace(opportunity, name=event.name, candidate=judged)
