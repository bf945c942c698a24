"""The signals of a suggestion when it is decided about: numbers and names only, for calibrators and logs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, Final

import regex

from calomel.infer.completer import Candidate, CompleteAnswer
from calomel.prompts.parts import line_end, line_start
from calomel.selectivity.proposal import Recent
from calomel.workspace.edits import Planned


@dataclass(frozen=True, slots=True)
class CandidateAgreement:
    """How the other candidates of an answer compare with one.

    Attributes:
        agreeing: other candidates with the same text.
        rivals: other candidates with a different text; silence is not counted.
        margin: nats by which it is likelier than the likeliest rival; None if unknown.
    """

    agreeing: int = 0
    rivals: int = 0
    margin: float | None = None


def agreement_of(candidate: Candidate, answer: CompleteAnswer, as_it_is: str | None = None) -> CandidateAgreement:
    """Compare with the other candidates of `answer`; `as_it_is` is the text that silence leaves."""
    others = [other for other in answer.candidates if other is not candidate and other.text not in ("", as_it_is)]
    rivals = [other for other in others if other.text != candidate.text]
    best = max((other.log_prob for other in rivals if other.log_prob is not None), default=None)
    margin = None if candidate.log_prob is None or best is None else candidate.log_prob - best
    return CandidateAgreement(len(others) - len(rivals), len(rivals), margin)


@dataclass(frozen=True, slots=True)
class Accord:
    """What the model and the rules say of each other's edits of one region; for models that judge no drafts.

    Attributes:
        backed: of a draft, that the model's own rewrite has all of it; of a rewrite, how many drafts it has all of.
        opposed: of a draft, that the model rewrites the same lines otherwise.
        unmoved: of a draft, that the model leaves its lines as they are.
    """

    backed: int = 0
    opposed: int = 0
    unmoved: int = 0


def accord_of(edits: Sequence[Planned], own: Sequence[Planned] | None, drafts: Sequence[Sequence[Planned]]) -> Accord:
    """The accord of some edits.

    Args:
        edits: of a draft or of the model's own rewrite.
        own: the model's own rewrite, if these edits are a draft's and the model was asked; empty if it changes nothing.
        drafts: all drafts, if these edits are the model's own.
    """
    if own is None:
        return Accord(backed=sum(set(draft) <= set(edits) for draft in drafts if draft))
    if set(edits) <= set(own):
        return Accord(backed=1)
    meets = any(edit.start <= other.end and other.start <= edit.end for edit in edits for other in own)
    return Accord(opposed=1) if meets else Accord(unmoved=1)


@dataclass(frozen=True, slots=True)
class RecentActivity:
    """The edits of the last minute; consecutive keystrokes are one.

    Attributes:
        recent_edits: their number.
        recent_replacements: how many of them removed and inserted.
        recent_inserted: characters in total.
        recent_removed: characters in total.
        last_inserted: characters in the last one.
        last_removed: characters in the last one.
    """

    recent_edits: int = 0
    recent_replacements: int = 0
    recent_inserted: int = 0
    recent_removed: int = 0
    last_inserted: int = 0
    last_removed: int = 0

    @classmethod
    def of(cls, recent: Sequence[Recent]) -> RecentActivity:
        """The activity in edits, oldest first."""
        last = recent[-1] if recent else Recent(0, 0, "", "")
        return cls(
            recent_edits=len(recent),
            recent_replacements=sum(bool(done.removed and done.inserted) for done in recent),
            recent_inserted=sum(len(done.inserted) for done in recent),
            recent_removed=sum(len(done.removed) for done in recent),
            last_inserted=len(last.inserted),
            last_removed=len(last.removed),
        )


@dataclass(frozen=True, slots=True)
class DraftSignals:
    """Signals of a draft; the model's own text has none.

    Attributes:
        support: how many of the last edits agree with it.
        likeness: how alike its place is to where its rule was read from, 0 to 1.
        drafts: how many drafts its maker has for the document: many mean that the user decided on a global change.
    """

    support: int = 0
    likeness: float = 0.0
    drafts: int = 0


@dataclass(frozen=True, slots=True)
class Kinship:
    """How an edit relates to the last edits.

    Attributes:
        nearest: lines to the nearest of their places; None without one.
        indented: its line has the same indentation as one of theirs.
        remaining: how often the text around it has the most frequent of the words that it removes.
    """

    nearest: int | None = None
    indented: int = 0
    remaining: int = 0


def kinship(text: str, edits: Sequence[Planned], past: Sequence[Recent]) -> Kinship:
    """The kinship of `edits` of `text` with `past`, what led to it, in offsets of `text`."""
    start = edits[0].start
    low, high = max(0, start - _AROUND), start + _AROUND
    rows = (text.count("\n", min(start, done.start), max(start, done.start)) for done in past)
    indent = _indent(text, start)
    gone = _whole_words(text, edits, new=False) - _whole_words(text, edits, new=True)
    return Kinship(
        nearest=min(rows, default=None),
        indented=int(any(_indent(text, done.start) == indent for done in past)),
        remaining=max((text.count(word, low, high) for word in sorted(gone)[:_WORDS]), default=0),
    )


def _indent(text: str, offset: int) -> str:
    match = _INDENT.match(text, line_start(text, offset))
    return match[0] if match else ""


def _whole_words(text: str, edits: Sequence[Planned], *, new: bool) -> set[str]:
    """The whole words that edits touch, before the edits or after them."""
    words: set[str] = set()
    for edit in edits:
        head = _WORD_BEFORE.search(text, max(0, edit.start - _LONGEST_WORD), edit.start)
        rest = _WORD_BEHIND.match(text, edit.end, edit.end + _LONGEST_WORD)
        middle = edit.text if new else edit.removed
        words.update(_NAME.findall((head[0] if head else "") + middle + (rest[0] if rest else "")))
    return words


# Characters on either side: as far as drafts look in a long text.
_AROUND: Final = 60_000
_NAME: Final = regex.compile(r"[^\W\d]\w*")
_INDENT: Final = re.compile(r"[ \t]*")
_WORD_BEHIND: Final = regex.compile(r"\w*")
_WORD: Final = regex.compile(r"[^\W\d]\w{2,}")
_WORD_BEFORE: Final = regex.compile(r"\w*\Z")
_LONGEST_WORD: Final = 64
# More words than this add nothing, and each is searched in the whole text.
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
    """Where the cursor is, and how new the words of a suggestion are there.

    Attributes:
        line_before: characters before the cursor on its line, without indentation.
        line_after: characters after it on its line, without white space.
        word_before: letters directly before it.
        before: the kind of character before it, ignoring white space: `word`, `open`, `close`, `quote`, `comma`, `dot`,
            `colon`, `operator`, or `start` of the line.
        known_words: share of the suggestion's words that the document has already; None if it has no words.
        repeats: how often the document has its first line already, up to 5.
    """

    line_before: int
    line_after: int
    word_before: int
    before: str
    known_words: float | None
    repeats: int


def surroundings(text: str, cursor: int, edits: Sequence[Planned]) -> Surroundings:
    """The surroundings of `edits` of `text`."""
    head, rest = text[line_start(text, cursor) : cursor], text[cursor : line_end(text, cursor)]
    word = _WORD_BEFORE.search(head[-_LONGEST_WORD:])
    words = list(dict.fromkeys(word for edit in edits for word in _WORD.findall(edit.text)))[:_WORDS]
    first = next((line.strip() for edit in edits for line in edit.text.splitlines() if line.strip()), "")
    return Surroundings(
        line_before=len(head.strip()),
        line_after=len("".join(rest.split())),
        word_before=0 if word is None else len(word[0]),
        before=_class(head),
        known_words=sum(word in text for word in words) / len(words) if words else None,
        repeats=min(5, text.count(first)) if first else 0,
    )


def _class(head: str) -> str:
    last = head.rstrip()[-1:]
    if not last:
        return "start"
    if last.isalnum() or last == "_":
        return "word"
    return _CLASSES.get(last, "operator")


@dataclass(frozen=True, slots=True)
class OutcomeSignals:
    """The signals of one suggestion; None for unknown ones.

    Attributes:
        tokens: of the model's answer, without the end token.
        mean_log_prob: of them when they were revealed, including the end token.
        min_log_prob: of the least sure one.
        mean_entropy: in nats.
        max_entropy: in nats.
        end_log_prob: of the end token.
        finish_reason: `stop`, `length` or `deadline`.
        steps: denoising steps.
        edits: separate places that it changes.
        characters_removed: of the text.
        characters_inserted: into the text.
        lines_removed: line ends among the removed characters.
        lines_inserted: line ends among the inserted characters.
        distance: lines between the cursor and the nearest edit.
        since_edit: seconds since the last change of the document.
        accepted: how many of the last ten decided suggestions were accepted.
        rejected: how many of them were rejected.
        cut: characters dropped from the model's answer.
        log_prob: exact, of the text and the end token after it, if the model was asked for it.
        keep_log_prob: the same of leaving everything unchanged.
        drafted: for a draft.
        kinship: for an edit.
        agreement: with the other candidates of the same answer.
        accord: of the model and the rules.
        activity: what the user did in the last minute.
        place: where the cursor is: `code`, `comment` or `string`; None if unknown.
        around: the surroundings of the cursor.
        doubts: the filters of doubt that it fails, where its source is not dropped for them.
        likely: calibrated probability of acceptance, 0 to 1.
    """

    tokens: int = 0
    mean_log_prob: float | None = None
    min_log_prob: float | None = None
    mean_entropy: float | None = None
    max_entropy: float | None = None
    end_log_prob: float | None = None
    finish_reason: str = ""
    steps: int = 0
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
    drafted: DraftSignals = field(default_factory=DraftSignals)
    kinship: Kinship = field(default_factory=Kinship)
    agreement: CandidateAgreement = field(default_factory=CandidateAgreement)
    accord: Accord = field(default_factory=Accord)
    activity: RecentActivity = field(default_factory=RecentActivity)
    place: str | None = None
    around: Surroundings | None = None
    doubts: tuple[str, ...] = ()
    likely: float | None = None

    def about(self, edits: Sequence[Planned]) -> OutcomeSignals:
        """The same signals for a suggestion with other edits."""
        return replace(self, **_sizes(edits))

    def flat(self) -> dict[str, Any]:
        """All known signals by name, as in the outcome log."""
        values: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            values.update(asdict(value) if is_dataclass(value) else {each.name: value})  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if value is not None and value != ()}

    def known(self) -> dict[str, object]:
        """What a calibrator sees: finite numbers, rounded as in the log, and names."""
        return {
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in self.flat().items()
            if isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value))
        }


def signals_of(candidate: Candidate, edits: Sequence[Planned], **more: Any) -> OutcomeSignals:
    """The signals of a suggestion.

    Args:
        candidate: what it came from.
        edits: what it changes.
        more: further signals, by the names of `OutcomeSignals`.
    """
    mean = candidate.mean_log_prob
    return OutcomeSignals(
        tokens=len(candidate.log_probs),
        mean_log_prob=mean if math.isfinite(mean) else None,
        min_log_prob=min(candidate.log_probs, default=None),
        mean_entropy=sum(candidate.entropies) / len(candidate.entropies) if candidate.entropies else None,
        max_entropy=max(candidate.entropies, default=None),
        end_log_prob=candidate.end_log_prob,
        finish_reason=candidate.finish_reason,
        steps=candidate.steps,
        log_prob=candidate.log_prob,
        keep_log_prob=candidate.keep_log_prob,
        **_sizes(edits),
        **more,
    )


def _sizes(edits: Sequence[Planned]) -> dict[str, Any]:
    return {
        "edits": len(edits),
        "characters_removed": sum(len(edit.removed) for edit in edits),
        "characters_inserted": sum(len(edit.text) for edit in edits),
        "lines_removed": sum(edit.removed.count("\n") for edit in edits),
        "lines_inserted": sum(edit.text.count("\n") for edit in edits),
    }
