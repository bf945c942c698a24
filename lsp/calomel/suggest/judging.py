"""From what a maker proposes to what may be offered: hard filters, then the calibrated probability, then the gate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Final

from calomel.selectivity.calibrator import Calibrator, Subject
from calomel.selectivity.filters import QUICK, THOROUGH, fired
from calomel.selectivity.proposal import Proposal
from calomel.suggest.calibrators import calibrator_for
from calomel.suggest.company import Company
from calomel.suggest.completer import Candidate, CompleteRequest, Kind, ModelInfo
from calomel.suggest.diff import row_of, rows_between
from calomel.suggest.found import Found, Held
from calomel.suggest.gate import Gate, Hide, Show, Signals
from calomel.suggest.lately import lately
from calomel.suggest.outcome_signals import OutcomeSignals, signals_of
from calomel.suggest.planned import Planned, edits_of
from calomel.suggest.question import Question
from calomel.suggest.silence import SilenceReason
from calomel.suggest.suggestion import TextEdit, apply
from calomel.suggest.surroundings import surroundings
from calomel.suggest.trigger import Trigger
from calomel.workspace.languages import builtin_names

_SIGNALS: Final = tuple(each.name for each in fields(OutcomeSignals))

# Told of everything that was judged, shown or not.
Watch = Callable[[Found | Held], None]


# What nobody could ever have accepted, or may ever see: it is not followed any further.
_NOTHING: Final = frozenset({SilenceReason.NO_CHANGE, SilenceReason.WHITESPACE_ONLY, SilenceReason.SECRET})


@dataclass(frozen=True, slots=True)
class Proposed:
    """One candidate, read.

    Attributes:
        candidate: the model's own account.
        edits: what it changes, in offsets of the question's text.
        region: that the model was asked to rewrite; None for a fill.
        cut: characters that were left out of its text.
        truncated: the model had more to say.
        cut_off: what it said ends within a line for that.
        support: how many of the last edits agree with a draft.
        company: the other candidates of the answer.
        request: what the model was asked.
    """

    candidate: Candidate
    edits: tuple[Planned, ...]
    region: tuple[int, int] | None = None
    cut: int = 0
    truncated: bool = False
    cut_off: bool = False
    support: int = 0
    company: Company = field(default_factory=Company)
    request: CompleteRequest | None = None


class Judging:
    """Decides about proposals.

    Args:
        gate: has the last word about what passed every filter.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.calibrator = Calibrator()
        # With somebody who watches, every filter is asked about everything, and nothing goes by unseen.
        self.watch: Watch | None = None
        self._weights: str | None = None

    def know(self, info: ModelInfo) -> None:
        """Take over how far the model's own numbers are to be trusted."""
        if info.weights != self._weights:
            self._weights = info.weights
            self.calibrator = calibrator_for(info)

    def forget(self) -> None:
        """Look for the calibrator anew: it may have been fitted again."""
        self._weights = None

    def judge(self, kind: Kind, question: Question, proposed: Proposed) -> Found | Held | SilenceReason:
        """What becomes of one proposal."""
        began = time.perf_counter()
        edits = proposed.edits
        if not edits:
            return SilenceReason.NO_CHANGE
        if not all(edit.fits(question.text) for edit in edits):
            return SilenceReason.SECRET
        signals = self._signals(kind, question, proposed)
        likely = self.calibrator.probability(subject_of(kind, proposed.candidate, edits, signals))
        proposal = proposal_of(kind, question, proposed)
        refused = tuple(fired(proposal)) if self.watch is not None else tuple(islice(fired(proposal, QUICK), 1))
        verdict = self.gate.decide(proposed.candidate, replace(signals, likely=likely))
        if isinstance(verdict, Show) and not refused and self.watch is None:
            # What takes a parse is asked only about what would be shown otherwise.
            refused = tuple(islice(fired(proposal, THOROUGH), 1))
        reason = SilenceReason(refused[0]) if refused else verdict.reason if isinstance(verdict, Hide) else None
        found = Found(
            edits=edits,
            candidate=proposed.candidate,
            probability=verdict.probability,
            signals=replace(signals, likely=likely, filters=refused),
            truncated=proposed.truncated,
            request=proposed.request,
            judged_seconds=time.perf_counter() - began,
        )
        answer = found if reason is None else Held(reason, found)
        if self.watch is not None:
            self.watch(answer)
        return reason if reason in _NOTHING else answer

    def _signals(self, kind: Kind, question: Question, proposed: Proposed) -> Signals:
        accepted, rejected = question.decisions
        row = row_of(question.text, question.situation.offset)
        return Signals(
            kind=kind,
            trigger=question.trigger,
            edits=edits_of(proposed.edits),
            language_id=question.situation.language_id,
            distance=min(
                rows_between((row_of(question.text, edit.start), row_of(question.text, edit.end)), row)
                for edit in proposed.edits
            ),
            since_edit=question.since_edit,
            accepted=accepted,
            rejected=rejected,
            cut=proposed.cut,
            support=proposed.support,
            company=proposed.company,
            lately=lately(question.recent),
            place=question.place,
            thresholds=self.calibrator.thresholds,
            around=surroundings(question.text, question.situation.offset, proposed.edits),
        )


def subject_of(kind: Kind, candidate: Candidate, edits: Sequence[Planned], signals: Signals) -> Subject:
    """What a calibrator sees of it: the very numbers that the outcome log keeps."""
    return Subject(kind, candidate.maker, signals.language_id, known_signals(signals_of(candidate, edits, signals)))


def known_signals(signals: OutcomeSignals) -> dict[str, object]:
    """Numbers and names, without what is not known, rounded as the log rounds: a fit and its use see the same."""
    found: dict[str, object] = {}
    for name in _SIGNALS:
        value = getattr(signals, name)
        if isinstance(value, float):
            if math.isfinite(value):
                found[name] = round(value, 6)
        elif isinstance(value, int | str):
            found[name] = value
    return found


def proposal_of(kind: Kind, question: Question, proposed: Proposed) -> Proposal:
    """What the filters look at."""
    text, edits = question.text, edits_of(proposed.edits)

    def errors(behind: str) -> tuple[int, int] | None:
        if question.errors is None:
            return None
        start, end = edits[0].start, edits[-1].end
        inside = [TextEdit(a - start, b - start, new) for a, b, new in edits]
        return question.errors(start, end, apply(text[start:end], inside) + behind)

    return Proposal(
        kind=kind,
        text=text,
        edits=edits,
        cursor=question.situation.offset,
        language_id=question.situation.language_id,
        region=proposed.region,
        # Whoever asks may want back what was deleted, though no edit undone.
        recent=() if question.trigger is Trigger.EXPLICIT else tuple(question.recent),
        edited=question.past.edited,
        withdrawn=question.past.withdrawn,
        builtins=builtin_names(question.situation.language_id, question.situation.path),
        masked=question.situation.text,
        mask=question.mask,
        cut_off=proposed.cut_off,
        errors=errors,
    )
