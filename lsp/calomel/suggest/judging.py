"""From what a maker proposes to what may be offered: hard filters, then the calibrated probability, then the gate."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import Final

from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator, CalibratorError, Subject
from calomel.selectivity.filters import QUICK, THOROUGH, fired
from calomel.selectivity.proposal import Proposal
from calomel.suggest.completer import Candidate, CompleteRequest, Kind, ModelInfo
from calomel.suggest.edit import Planned, TextEdit, apply, edits_of, row_of, rows_between
from calomel.suggest.question import Question, Trigger
from calomel.suggest.signals import (
    CandidateAgreement,
    Gate,
    Hide,
    OutcomeSignals,
    Show,
    Signals,
    lately,
    signals_of,
    surroundings,
)
from calomel.suggest.silence import SilenceReason
from calomel.workspace.languages import builtin_names

LOG: Final = logging.getLogger(__name__)


def user_calibrator_path(weights: str) -> Path:
    """Where the user's own calibrator for a model lies, in the state folder of XDG.

    Args:
        weights: short hash of the model's weights.
    """
    import platformdirs

    folder = platformdirs.user_state_path("calomel", appauthor=False) / "calibrators"
    return folder / f"{''.join(filter(str.isalnum, weights)) or 'unknown'}.json"


def calibrator_for(info: ModelInfo) -> Calibrator:
    """The user's own, if it was fitted for these weights; else the shipped one; one that knows nothing without both.

    A damaged file is said once in the log, and not used.
    """
    shipped = Calibrator() if info.tokenizer is None else _read(Path(info.tokenizer).parent / CALIBRATOR_FILE)
    own = _read(user_calibrator_path(info.weights))
    if own is None or own.model != info.weights:
        return shipped or Calibrator()
    kinds = {**(shipped.kinds if shipped else {}), **own.kinds}
    return Calibrator(kinds, own.thresholds or (shipped.thresholds if shipped else {}), own.model)


def _read(path: Path) -> Calibrator | None:
    try:
        return Calibrator.read(path) if path.is_file() else None
    except CalibratorError as error:
        LOG.warning("%s", error)
        return None


@dataclass(frozen=True, slots=True)
class Found:
    """A suggestion, in offsets of the question's text.

    Attributes:
        edits: what it would change.
        candidate: the model's own account.
        probability: that it gets accepted.
        signals: what the gate knew.
        truncated: the model had more to say.
        request: what the model was asked, secrets masked.
        judged_seconds: that filters and calibrator took for it.
    """

    edits: tuple[Planned, ...]
    candidate: Candidate
    probability: float
    signals: Signals
    truncated: bool = False
    request: CompleteRequest | None = field(default=None, repr=False)
    judged_seconds: float = 0.0

    @property
    def maker(self) -> str:
        """Who proposed it."""
        return self.candidate.maker


@dataclass(frozen=True, slots=True)
class Held:
    """A suggestion that is not shown, and why."""

    reason: SilenceReason
    found: Found


Answered = Found | Held | SilenceReason


def better(one: Answered | None, other: Answered) -> Answered:
    """Which of two answers counts: what can be shown before what is held back, then the likelier one."""
    if one is None:
        return other
    if _rank(one) == _rank(other) and isinstance(one, Found | Held) and isinstance(other, Found | Held):
        return other if _probability(other) > _probability(one) else one
    return other if _rank(other) > _rank(one) else one


def _rank(answer: Answered) -> int:
    return 2 if isinstance(answer, Found) else 1 if isinstance(answer, Held) else 0


def _probability(answer: Found | Held) -> float:
    return answer.probability if isinstance(answer, Found) else answer.found.probability


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
        agreement: the other candidates of the answer.
        request: what the model was asked.
    """

    candidate: Candidate
    edits: tuple[Planned, ...]
    region: tuple[int, int] | None = None
    cut: int = 0
    truncated: bool = False
    cut_off: bool = False
    support: int = 0
    agreement: CandidateAgreement = field(default_factory=CandidateAgreement)
    request: CompleteRequest | None = None


class SuggestionFilter:
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

    def decide(self, kind: Kind, question: Question, proposed: Proposed) -> Found | Held | SilenceReason:
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
            agreement=proposed.agreement,
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
