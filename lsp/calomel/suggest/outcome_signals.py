"""What was known about a suggestion when it was decided to show it: numbers alone, for fitting the filter later."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from calomel.suggest.completer import Candidate
from calomel.suggest.gate import Signals
from calomel.suggest.planned import Planned


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
    company, lately = (None, None) if known is None else (known.company, known.lately)
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
        agreeing=None if company is None else company.agreeing,
        rivals=None if company is None else company.rivals,
        margin=None if company is None else company.margin,
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
