"""What was known about a suggestion when it was decided to show it: numbers alone, for fitting the filter later."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from calomel.selectivity.proposal import Recent
from calomel.suggest.completer import Candidate, CompleteAnswer, Kind
from calomel.suggest.edit import Planned, TextEdit
from calomel.suggest.question import Trigger
from calomel.suggest.silence import SilenceReason
from calomel.workspace.settings import Aggressiveness


@dataclass(frozen=True, slots=True)
class CandidateAgreement:
    """How the other candidates of an answer stand to one.

    Attributes:
        agreeing: other candidates with the same text.
        rivals: other candidates with another text; silence is not counted.
        margin: nats by which it is likelier than the likeliest rival; None where that is not known.
    """

    agreeing: int = 0
    rivals: int = 0
    margin: float | None = None


def agreement_of(candidate: Candidate, answer: CompleteAnswer, as_it_is: str | None = None) -> CandidateAgreement:
    """The others of `answer`; `as_it_is` is the text that silence leaves."""
    others = [other for other in answer.candidates if other is not candidate and other.text not in ("", as_it_is)]
    rivals = [other for other in others if other.text != candidate.text]
    best = max((other.log_prob for other in rivals if other.log_prob is not None), default=None)
    margin = None if candidate.log_prob is None or best is None else candidate.log_prob - best
    return CandidateAgreement(len(others) - len(rivals), len(rivals), margin)


@dataclass(frozen=True, slots=True)
class RecentActivity:
    """The edits of the last minute, keystrokes in a row being one.

    Attributes:
        edits: how many.
        replacements: of them, those that removed and inserted.
        inserted: characters in all.
        removed: characters in all.
        last_inserted: characters, of the last one.
        last_removed: characters, of the last one.
    """

    edits: int = 0
    replacements: int = 0
    inserted: int = 0
    removed: int = 0
    last_inserted: int = 0
    last_removed: int = 0


def lately(recent: Sequence[Recent]) -> RecentActivity:
    """Of edits, oldest first."""
    last = recent[-1] if recent else Recent(0, 0, "", "")
    return RecentActivity(
        edits=len(recent),
        replacements=sum(bool(done.removed and done.inserted) for done in recent),
        inserted=sum(len(done.inserted) for done in recent),
        removed=sum(len(done.removed) for done in recent),
        last_inserted=len(last.inserted),
        last_removed=len(last.removed),
    )


_WORD: Final = re.compile(r"[^\W\d]\w{2,}")
_WORD_BEFORE: Final = re.compile(r"\w*\Z")
_LONGEST_WORD: Final = 64
# More words than that tell nothing new, and each is looked for in the whole text.
_WORDS: Final = 8
_CLASSES: Final = {
    **dict.fromkeys("([{", "open"),
    **dict.fromkeys(")]}", "close"),
    **dict.fromkeys("\"'`", "quote"),
    **dict.fromkeys(",;", "comma"),
    ".": "dot",
    ":": "colon",
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the cursor stands, and how new the words of a suggestion are there.

    Attributes:
        line_before: characters before the cursor on its line, without indentation.
        line_after: characters behind it on its line, without white space.
        word_before: letters directly before it.
        before: the kind of character before it, white space left out: `word`, `open`, `close`, `quote`, `comma`, `dot`,
            `colon`, `operator`, or `start` of the line.
        known_words: share of the suggestion's words that the document has already; None when it has none.
        repeats: how often its first line stands in the document already, up to 5.
    """

    line_before: int
    line_after: int
    word_before: int
    before: str
    known_words: float | None
    repeats: int


def surroundings(text: str, cursor: int, edits: Sequence[Planned]) -> Surroundings:
    """Of `edits` of `text`."""
    start = max(text.rfind("\n", 0, cursor), text.rfind("\r", 0, cursor)) + 1
    ends = [at for at in (text.find("\n", cursor), text.find("\r", cursor)) if at >= 0]
    head, rest = text[start:cursor], text[cursor : min(ends, default=len(text))]
    word = _WORD_BEFORE.search(head[-_LONGEST_WORD:])
    return Surroundings(
        line_before=len(head.strip()),
        line_after=len("".join(rest.split())),
        word_before=0 if word is None else len(word[0]),
        before=_class(head),
        known_words=_known(text, edits),
        repeats=_repeats(text, edits),
    )


def _class(head: str) -> str:
    last = head.rstrip()[-1:]
    if not last:
        return "start"
    if last.isalnum() or last == "_":
        return "word"
    return _CLASSES.get(last, "operator")


def _known(text: str, edits: Sequence[Planned]) -> float | None:
    words = list(dict.fromkeys(word for edit in edits for word in _WORD.findall(edit.text)))[:_WORDS]
    return sum(word in text for word in words) / len(words) if words else None


def _repeats(text: str, edits: Sequence[Planned]) -> int:
    first = next((line.strip() for edit in edits for line in edit.text.splitlines() if line.strip()), "")
    return min(5, text.count(first)) if first else 0


# The probability of being accepted that a suggestion must reach, where no calibrator says what the names come to.
THRESHOLDS: Final[Mapping[str, float]] = {"quiet": 0.5, "balanced": 0.3, "eager": 0.15}


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known about a candidate besides the model's own numbers.

    Attributes:
        kind: `fill` or `edit`.
        trigger: what made the editor ask.
        edits: what it would change, trimmed and checked.
        language_id: of the document.
        distance: lines between the cursor and the first edit.
        since_edit: seconds since the last change of the document; None when there was none.
        accepted: of the last ten suggestions that were decided.
        rejected: of them.
        cut: characters that the checks took from the candidate's text.
        support: how many of the last edits agree with a draft; 0 for the model's own words.
        agreement: the other candidates of the same answer.
        lately: what the user did in the last minute.
        place: where the cursor stands: `code`, `comment` or `string`; empty where nobody can tell.
        around: numbers about the place and the words.
        likely: that it gets accepted, calibrated, 0 to 1; None where that is not known.
        thresholds: what the names of thresholds come to for this model.
        filters: the hard filters that drop it; the first one alone unless somebody watches.
    """

    kind: Kind
    trigger: Trigger
    edits: tuple[TextEdit, ...]
    language_id: str = ""
    distance: int = 0
    since_edit: float | None = None
    accepted: int = 0
    rejected: int = 0
    cut: int = 0
    support: int = 0
    agreement: CandidateAgreement = field(default_factory=CandidateAgreement)
    lately: RecentActivity = field(default_factory=RecentActivity)
    place: str = ""
    around: Surroundings | None = None
    likely: float | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    filters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Show:
    """Show it; `probability` of being accepted, 0 to 1."""

    probability: float


@dataclass(frozen=True, slots=True)
class Hide:
    """Do not show it."""

    reason: SilenceReason
    probability: float = 0.0


Verdict = Show | Hide


class Gate(Protocol):
    """Decides about candidates that passed every check."""

    def decide(self, candidate: Candidate, signals: Signals) -> Verdict:
        """Show or hide. Fast, pure, never raises."""


@dataclass(frozen=True, slots=True)
class ThresholdGate:
    """Shows what is sure enough, against a threshold.

    That is the calibrated probability, where it is known; else `exp(mean reveal log-probability)`.

    Attributes:
        aggressiveness: a name of `THRESHOLDS`, or the threshold itself, 0 to 1.
        by_language: the same for languages that want another one; `*` for all that are not named.
    """

    aggressiveness: Aggressiveness = "balanced"
    by_language: Mapping[str, Aggressiveness] = field(default_factory=dict)

    def threshold(self, language_id: str = "", named: Mapping[str, float] = THRESHOLDS) -> float:
        """The number behind the name that a language has; an unknown name counts as `balanced`."""
        wanted = self.by_language.get(language_id, self.by_language.get("*", self.aggressiveness))
        if not isinstance(wanted, str):
            return wanted
        names = {**THRESHOLDS, **named}
        return names.get(wanted, names["balanced"])

    def decide(self, candidate: Candidate, signals: Signals) -> Verdict:
        """Whoever asked explicitly gets an answer, sure or not."""
        probability = math.exp(min(0.0, candidate.mean_log_prob)) if signals.likely is None else signals.likely
        if signals.trigger is Trigger.EXPLICIT or probability >= self.threshold(
            signals.language_id, signals.thresholds
        ):
            return Show(probability)
        return Hide(SilenceReason.LOW_CONFIDENCE, probability)


@dataclass(frozen=True, slots=True)
class OutcomeSignals:
    """Numbers about one suggestion; None where a number is not known.

    Attributes:
        tokens: of the model's answer, the end token not counted.
        mean_log_prob: of them when they were revealed, the end token included.
        min_log_prob: the least sure of them.
        mean_entropy: in nats.
        max_entropy: in nats.
        end_log_prob: of the end token.
        finish_reason: `stop`, `length` or `deadline`.
        steps: denoising steps.
        length_scores: canvas length to its score, when lengths were probed.
        edits: separate places that it changes.
        characters_removed: of the text.
        characters_inserted: into the text.
        lines_removed: line ends among the removed characters.
        lines_inserted: line ends among the inserted characters.
        distance: lines between the cursor and the first edit.
        since_edit: seconds since the last change of the document.
        accepted: of the last ten suggestions that were decided before.
        rejected: of them.
        cut: characters that the checks took from the model's answer.
        log_prob: exact, of the text and the end behind it; where the model was asked for it.
        keep_log_prob: the same of leaving everything as it is.
        support: how many of the last edits agree with a draft.
        agreeing: other candidates of the same answer with the same text.
        rivals: other candidates of the same answer with another text.
        margin: nats by which it is likelier than the likeliest of them.
        recent_edits: of the document in the last minute, keystrokes in a row being one.
        recent_replacements: of them, those that removed and inserted.
        recent_inserted: characters in all.
        recent_removed: characters in all.
        last_inserted: characters, of the last one.
        last_removed: characters, of the last one.
        place: `code`, `comment` or `string`; empty where nobody can tell.
        line_before: characters before the cursor on its line, without indentation.
        line_after: characters behind it on its line, without white space.
        word_before: letters directly before it.
        before: the kind of character before it, as in `Surroundings`.
        known_words: share of its words that the document has already.
        repeats: how often its first line stands in the document already, up to 5.
        likely: that it gets accepted, calibrated.
    """

    tokens: int = 0
    mean_log_prob: float | None = None
    min_log_prob: float | None = None
    mean_entropy: float | None = None
    max_entropy: float | None = None
    end_log_prob: float | None = None
    finish_reason: str = ""
    steps: int = 0
    length_scores: tuple[tuple[int, float], ...] = ()
    edits: int = 0
    characters_removed: int = 0
    characters_inserted: int = 0
    lines_removed: int = 0
    lines_inserted: int = 0
    distance: int | None = None
    since_edit: float | None = None
    accepted: int | None = None
    rejected: int | None = None
    cut: int | None = None
    log_prob: float | None = None
    keep_log_prob: float | None = None
    support: int | None = None
    agreeing: int | None = None
    rivals: int | None = None
    margin: float | None = None
    recent_edits: int | None = None
    recent_replacements: int | None = None
    recent_inserted: int | None = None
    recent_removed: int | None = None
    last_inserted: int | None = None
    last_removed: int | None = None
    place: str | None = None
    line_before: int | None = None
    line_after: int | None = None
    word_before: int | None = None
    before: str | None = None
    known_words: float | None = None
    repeats: int | None = None
    likely: float | None = None


def signals_of(candidate: Candidate, edits: Sequence[Planned], known: Signals | None = None) -> OutcomeSignals:
    """The numbers of one suggestion.

    Args:
        candidate: the model's own account.
        edits: what it changes.
        known: what the gate knew besides.
    """
    mean = candidate.mean_log_prob
    around = None if known is None else known.around
    agreement, lately = (None, None) if known is None else (known.agreement, known.lately)
    return OutcomeSignals(
        tokens=len(candidate.log_probs),
        mean_log_prob=mean if math.isfinite(mean) else None,
        min_log_prob=min(candidate.log_probs, default=None),
        mean_entropy=sum(candidate.entropies) / len(candidate.entropies) if candidate.entropies else None,
        max_entropy=max(candidate.entropies, default=None),
        end_log_prob=candidate.end_log_prob,
        finish_reason=candidate.finish_reason,
        steps=candidate.steps,
        length_scores=candidate.length_scores,
        edits=len(edits),
        characters_removed=sum(len(edit.removed) for edit in edits),
        characters_inserted=sum(len(edit.text) for edit in edits),
        lines_removed=sum(edit.removed.count("\n") for edit in edits),
        lines_inserted=sum(edit.text.count("\n") for edit in edits),
        distance=None if known is None else known.distance,
        since_edit=None if known is None else known.since_edit,
        accepted=None if known is None else known.accepted,
        rejected=None if known is None else known.rejected,
        cut=None if known is None else known.cut,
        log_prob=candidate.log_prob,
        keep_log_prob=candidate.keep_log_prob,
        support=None if known is None else known.support,
        agreeing=None if agreement is None else agreement.agreeing,
        rivals=None if agreement is None else agreement.rivals,
        margin=None if agreement is None else agreement.margin,
        recent_edits=None if lately is None else lately.edits,
        recent_replacements=None if lately is None else lately.replacements,
        recent_inserted=None if lately is None else lately.inserted,
        recent_removed=None if lately is None else lately.removed,
        last_inserted=None if lately is None else lately.last_inserted,
        last_removed=None if lately is None else lately.last_removed,
        place=None if known is None else known.place or None,
        line_before=None if around is None else around.line_before,
        line_after=None if around is None else around.line_after,
        word_before=None if around is None else around.word_before,
        before=None if around is None else around.before,
        known_words=None if around is None else around.known_words,
        repeats=None if around is None else around.repeats,
        likely=None if known is None else known.likely,
    )
