"""Whether a candidate is offered: filters of form, then the probability of acceptance, with doubts as evidence."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final

from calomel.code.languages import builtin_names
from calomel.infer.completer import Candidate, Kind, ModelInfo
from calomel.prompts.next_edit import class_called
from calomel.prompts.parts import row_of
from calomel.selectivity.calibrator import CALIBRATOR_FILE, OWN, Calibrator, CalibratorError, Subject
from calomel.selectivity.filters import FORM, QUICK, THOROUGH, fired
from calomel.selectivity.filters import doubts as doubts_of
from calomel.selectivity.proposal import Proposal
from calomel.selectivity.prose import comment_before, ends_comment_early
from calomel.selectivity.record import FLOORS, Records, Source
from calomel.selectivity.syntax import closing
from calomel.suggest.edit import rows_between
from calomel.suggest.signals import (
    Accord,
    CandidateAgreement,
    DraftSignals,
    Kinship,
    OutcomeSignals,
    RecentActivity,
    kinship,
    signals_of,
    surroundings,
)
from calomel.suggest.silence import SilenceReason
from calomel.suggest.snapshot import Snapshot, Trigger
from calomel.workspace.edits import Planned, TextEdit, edits_of, joined
from calomel.workspace.secrets import writes_secret
from calomel.workspace.settings import Aggressiveness

LOG: Final = logging.getLogger(__name__)

# Characters from which on a text needs no more than its floor. A shorter one saves less, and has to be surer.
_LONG: Final = 8
# The smallest floor: an `aggressiveness` of 0 shows anything.
_LEAST: Final = 1e-9
# What nobody could accept or may see: it is not followed any further.
_NOTHING: Final = frozenset({SilenceReason.NO_CHANGE, SilenceReason.WHITESPACE_ONLY, SilenceReason.SECRET})


def user_calibrator_path(weights: str) -> Path:
    """The path of the user's own calibrator for a model, in the XDG state folder.

    Args:
        weights: short hash of the model's weights.
    """
    import platformdirs

    folder = platformdirs.user_state_path("calomel", appauthor=False) / "calibrators"
    return folder / f"{''.join(filter(str.isalnum, weights)) or 'unknown'}.json"


def records_path() -> Path:
    """The path of the records of all sources, in the XDG state folder."""
    import platformdirs

    return platformdirs.user_state_path("calomel", appauthor=False) / "records.json"


def source_of(info: ModelInfo) -> Source:
    """A model as a source of suggestions; its class from its name if it tells none."""
    kind = info.source or class_called(info.id) or "fim"
    # What a server calls a model is all that is known of it there.
    return Source(info.weights if kind == "small" else info.id, kind, info.id)


def calibrator_for(info: ModelInfo) -> Calibrator:
    """The user's own calibrator, if fitted for these weights; else the shipped one; else an unfitted one.

    A damaged file is reported once in the log, and not used.
    """
    shipped = Calibrator() if info.tokenizer is None else _read(Path(info.tokenizer).parent / CALIBRATOR_FILE)
    own = _read(user_calibrator_path(info.weights))
    if own is None or own.model != info.weights:
        return shipped or Calibrator()
    return Calibrator({**(shipped.kinds if shipped else {}), **own.kinds}, own.model)


def _read(path: Path) -> Calibrator | None:
    try:
        return Calibrator.read(path) if path.is_file() else None
    except CalibratorError as error:
        LOG.warning("%s", error)
        return None


@dataclass(frozen=True, slots=True)
class Judged:
    """One candidate of an answer as edits, and what was decided about it.

    Attributes:
        candidate: what it came from.
        edits: what it changes, in offsets of the question's text.
        region: that the model was asked to rewrite; None for a fill.
        cut: characters dropped from its text.
        cut_off: the model reached its limit, so the text ends within a line.
        drafted: for a draft.
        agreement: with the other candidates of the answer.
        accord: of the model and the rules.
        kind: of the question; unset before the decision, like all that follows.
        signals: what was known of it.
        probability: of acceptance.
        reason: why it is not shown; None if it may be.
        filters: the filters that drop it; only the first one, except in an audit.
        seconds: that filters and calibrator took.
        others: alternatives that may be shown in its place, likeliest first.
    """

    candidate: Candidate
    edits: tuple[Planned, ...]
    region: tuple[int, int] | None = None
    cut: int = 0
    cut_off: bool = False
    drafted: DraftSignals = field(default_factory=DraftSignals)
    agreement: CandidateAgreement = field(default_factory=CandidateAgreement)
    accord: Accord = field(default_factory=Accord)
    kind: Kind = "fill"
    signals: OutcomeSignals = field(default_factory=OutcomeSignals)
    probability: float = 0.0
    reason: SilenceReason | None = None
    filters: tuple[str, ...] = ()
    seconds: float = 0.0
    others: tuple[Judged, ...] = ()

    @property
    def maker(self) -> str:
        """Who proposed it."""
        return self.candidate.maker


# The result of a question: what may be shown, what is held back, or why there is nothing.
Answered = Judged | SilenceReason


def shows(answer: Answered | None) -> bool:
    """Whether an answer may be shown."""
    return isinstance(answer, Judged) and answer.reason is None


# Alternatives to the first one: editors count them, and nobody looks through more.
MOST_OTHERS: Final = 2


def with_others(best: Judged, decisions: Iterable[Judged]) -> Judged:
    """The best of several with its alternatives, without duplicates up to trailing white space."""
    distinct = {words_of(best.edits): best}
    for each in sorted(filter(shows, decisions), key=lambda each: -each.probability):
        distinct.setdefault(words_of(each.edits), each)
    return replace(best, others=tuple(distinct.values())[1 : 1 + MOST_OTHERS])


def words_of(edits: Iterable[TextEdit | Planned]) -> tuple[tuple[int, int, str], ...]:
    """Edits as values, without trailing white space in their texts."""
    return tuple((edit.start, edit.end, edit.text.rstrip()) for edit in edits)


def better(one: Answered | None, other: Answered) -> Answered:
    """The better answer: what can be shown, then what is held back, then the likelier one, then the first."""
    return other if one is None or _rank(other) > _rank(one) else one


def _rank(answer: Answered) -> tuple[int, float]:
    return (1 + shows(answer), answer.probability) if isinstance(answer, Judged) else (0, 0.0)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a model.

    Attributes:
        calibrator: computes the probability, as far as it was fitted to the model.
        source: the model as a source of suggestions.
        weights: short hash of its weights; None before there is a model.
    """

    calibrator: Calibrator = field(default_factory=Calibrator)
    source: Source = field(default_factory=lambda: Source("", "small"))
    weights: str | None = None


class SuggestionFilter:
    """Decides which proposals are offered.

    Args:
        aggressiveness: a name of `THRESHOLDS`, or the probability itself.
        by_language: the same by language; `*` for all that are not named.

    Attributes:
        records: what became of earlier suggestions; learned from outcomes.
        known: the model that answers each kind of question.
        watch: called with every decision.
        strict: the threshold applies to explicit questions, too.
        audit: nothing is shown, and every filter is applied to everything.
    """

    def __init__(
        self,
        aggressiveness: Aggressiveness = "balanced",
        by_language: Mapping[str, Aggressiveness] | None = None,
    ) -> None:
        self.aggressiveness = aggressiveness
        self.by_language = by_language or {}
        self.known: dict[str, Known] = {"fill": Known(), "edit": Known()}
        self.records = Records()
        self.watch: Callable[[Judged], None] | None = None
        self.strict = False
        self.audit = False

    def know(self, info: ModelInfo, kinds: Iterable[Kind] = ("fill", "edit")) -> None:
        """Load the calibrator for this model, which answers these kinds of questions."""
        for kind in kinds:
            if info.weights != self.known[kind].weights:
                both = next((each for each in self.known.values() if each.weights == info.weights), None)
                self.known[kind] = both or Known(calibrator_for(info), source_of(info), info.weights)

    def forget(self) -> None:
        """Load the calibrators again before the next question: they may have been fitted again."""
        self.known = {kind: replace(each, weights=None) for kind, each in self.known.items()}

    def threshold(self, kind: Kind, language_id: str = "", *, causal: bool = False) -> float:
        """The probability that a kind of suggestion needs in a language; an unknown name counts as `balanced`.

        `causal`: its tokens' log-probabilities add up to its own.
        """
        wanted = self._wanted(language_id)
        if not isinstance(wanted, str):
            return wanted
        source, names = self.known[kind].source, self.known[kind].calibrator.thresholds(kind)
        names = FLOORS if causal else names
        usual = names.get(wanted, names["balanced"])
        # A fit has thresholds of its own.
        return usual if source.kind == "small" else self.records.of(source, kind).threshold(wanted, usual)

    def floor(self, trigger: Trigger, language_id: str = "") -> float | None:
        """The least joint log-probability, in nats, of text for the cursor that may be shown; None for no limit."""
        if self.audit or (trigger is Trigger.EXPLICIT and not self.strict):
            return None
        known = self.known["fill"]
        fitted = known.calibrator.kinds.get("fill")
        if fitted is None:
            # Canvases of our own that no fit knows are written to their end.
            causal = known.source.kind != "small"
            return math.log(max(_LEAST, self.threshold("fill", language_id, causal=True))) if causal else None
        wanted = self._wanted(language_id)
        return fitted.floors.get(wanted) if isinstance(wanted, str) else None

    def _wanted(self, language_id: str) -> Aggressiveness:
        return self.by_language.get(language_id, self.by_language.get("*", self.aggressiveness))

    def decide(self, kind: Kind, snapshot: Snapshot, proposed: Judged) -> Answered:
        """Decide about one proposal. An explicit question gets an answer, sure or not."""
        began = time.perf_counter()
        candidate, edits = proposed.candidate, proposed.edits
        if not edits:
            return SilenceReason.NO_CHANGE
        if not all(edit.fits(snapshot.text) for edit in edits):
            return SilenceReason.STALE
        if writes_secret(snapshot.text, edits_of(edits), snapshot.secrets):
            return SilenceReason.SECRET
        language = snapshot.situation.language_id
        signals = _signals(kind, snapshot, proposed)
        subject = Subject(kind, candidate.maker, language, signals.known())
        proposal = proposal_of(kind, snapshot, proposed)
        certain = self._source(kind, candidate.maker).kind in {"small", "rule"}  # whose doubtful suggestions are wrong
        checks = QUICK if certain else FORM
        refused = tuple(fired(proposal)) if self.audit else tuple(islice(fired(proposal, checks), 1))
        doubts = () if certain or refused else doubts_of(proposal)
        if snapshot.explicit and not refused:
            # Who asks wants what may be wrong, but not what cannot be right.
            refused = _broken(kind, snapshot, proposal, doubts)
        joint = self._joint(kind, candidate)
        probability = self._probability(subject, doubts, joint)
        wanted = snapshot.explicit and not self.strict
        least = self.threshold(kind, language, causal=joint is not None)
        if joint is not None:
            least **= min(1.0, sum(len(edit.text.strip()) for edit in edits) / _LONG)
        if kind == "fill" and not wanted and self._source(kind, candidate.maker).kind == "small":
            least = max(least, self._least_in_prose(snapshot, edits))
        sure = not self.audit and (wanted or probability >= least)
        if sure and not refused and certain:
            # Filters that need a parse only run on what would be shown otherwise.
            refused = tuple(islice(fired(proposal, THOROUGH), 1))
        if doubts and not sure and self._probability(subject, (), joint) >= least:
            refused = (min(doubts, key=lambda doubt: self._probability(subject, (doubt,), joint)),)
        reason = SilenceReason(refused[0]) if refused else None if sure else SilenceReason.LOW_CONFIDENCE
        signals = replace(signals, doubts=doubts, likely=probability)
        seconds = time.perf_counter() - began
        decision = replace(
            proposed,
            kind=kind,
            signals=signals,
            probability=probability,
            reason=reason,
            filters=refused,
            seconds=seconds,
        )
        if self.watch is not None:
            self.watch(decision)
        return reason if reason in _NOTHING else decision

    def _least_in_prose(self, snapshot: Snapshot, edits: tuple[Planned, ...]) -> float:
        """The probability that a small model's text needs in a comment or docstring, of which it knows little.

        No probability is enough for the end of a comment within a sentence.
        """
        text, language = snapshot.text, snapshot.situation.language_id
        before = comment_before(text, edits[0].start, language)
        if before is None or not isinstance(self._wanted(language), str):
            return 0.0
        if ends_comment_early(before, edits[0].text):
            return math.inf
        return self.known["fill"].calibrator.thresholds("fill")["quiet"]

    def learn(self, kind: Kind, maker: str, signals: OutcomeSignals, *, accepted: bool) -> None:
        """What became of a suggestion that was decided about: its source's record has it at once."""
        if signals.likely is None:
            return
        subject = Subject(kind, maker, "", signals.known())
        self.records.learn(self._source(kind, maker), subject, signals.doubts, signals.likely, accepted=accepted)

    def _joint(self, kind: Kind, candidate: Candidate) -> float | None:
        """How likely a model finds all of its text for the cursor; None if that is unknown, or a fit knows better."""
        known = kind == "fill" and candidate.maker == OWN and kind not in self.known[kind].calibrator.kinds
        return math.exp(min(0.0, candidate.log_prob)) if known and candidate.log_prob is not None else None

    def _probability(self, subject: Subject, doubts: tuple[str, ...], joint: float | None) -> float:
        # Without a fit, a small model's own numbers are used.
        kind, maker = subject.kind, subject.maker
        known = self.known[kind]
        fitted = known.source.kind == "small" or kind in known.calibrator.kinds
        fit = joint if joint is not None else known.calibrator.probability(subject) if fitted else None
        return self.records.probability(self._source(kind, maker), subject, doubts, fit)

    def _source(self, kind: str, maker: str) -> Source:
        return self.known[kind].source if maker == OWN else Source(maker, "rule", maker)


def _signals(kind: Kind, snapshot: Snapshot, proposed: Judged) -> OutcomeSignals:
    text, cursor, edits = snapshot.text, snapshot.situation.offset, proposed.edits
    accepted, rejected = snapshot.decisions
    row = row_of(text, cursor)
    return signals_of(
        proposed.candidate,
        edits,
        distance=min(rows_between((row_of(text, edit.start), row_of(text, edit.end)), row) for edit in edits),
        since_edit=snapshot.since_edit,
        accepted=accepted,
        rejected=rejected,
        cut=proposed.cut,
        drafted=proposed.drafted,
        kinship=kinship(text, edits, snapshot.past.edited) if kind == "edit" else Kinship(),
        agreement=proposed.agreement,
        accord=proposed.accord,
        activity=RecentActivity.of(snapshot.recent),
        place=snapshot.place or None,
        around=surroundings(text, cursor, edits),
    )


_SYNTAX: Final = ("unbalanced", "unparsable")
# Stands for any expression.
_NAME: Final = "x"


def _broken(kind: Kind, snapshot: Snapshot, proposal: Proposal, doubts: Iterable[str]) -> tuple[str, ...]:
    """The filter of syntax that a proposal fails, if any, also where a name would repair what its text does not."""
    found = tuple(name for name in _SYNTAX if name in doubts)[:1]
    if found or kind != "fill" or len(proposal.edits) != 1:
        return found
    start, end, new = proposal.edits[0]
    named = snapshot.errors(start, end, _NAME)
    if named is None or not named[0] > named[1] == 0 or "\n" in new.strip():
        return ()
    left = proposal.errors(closing(proposal) or "")
    return ("unparsable",) if left is not None and left[1] > 0 else ()


def proposal_of(kind: Kind, snapshot: Snapshot, proposed: Judged) -> Proposal:
    """The proposal as the filters see it."""
    text, edits = snapshot.text, edits_of(proposed.edits)

    def errors(behind: str) -> tuple[int, int] | None:
        start, end, new = joined(text, edits)
        return snapshot.errors(start, end, new + behind)

    return Proposal(
        kind=kind,
        text=text,
        edits=edits,
        cursor=snapshot.situation.offset,
        language_id=snapshot.situation.language_id,
        region=proposed.region,
        # An explicit question may restore deleted text, but not undo an edit.
        recent=() if snapshot.explicit else tuple(snapshot.recent),
        edited=snapshot.past.edited,
        withdrawn=snapshot.past.withdrawn,
        builtins=builtin_names(snapshot.situation.language_id, snapshot.situation.path),
        cut_off=proposed.cut_off,
        errors=errors,
    )
