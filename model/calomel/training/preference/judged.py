"""From what became of suggestions to preferences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from calomel.prompts.parts import PromptParts
from calomel.training.preference.preference import AlignmentError, Kind, Preference, silence

Fate = Literal["accepted", "partly", "rejected"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A suggestion and what became of it.

    Attributes:
        parts, kind, max_context: the question, as in `Preference`.
        answer: the suggestion: the text of the hole, or what the region becomes.
        fate: `accepted` as a whole, or typed by hand all the same; `partly`; or `rejected`.
        wanted: what the person wrote instead; None where that is not known.
        group: as in `Preference`.
        certainty: how sure that fate is, 0 to 1: who does nothing for ten seconds says less than who presses Escape.
    """

    parts: PromptParts
    kind: Kind
    answer: str
    fate: Fate
    wanted: str | None = None
    group: str = ""
    certainty: float = 1.0
    max_context: int = 0


@dataclass(frozen=True, slots=True)
class Lessons:
    """What one judged suggestion teaches besides itself, as weights; 0 leaves a lesson out.

    Attributes:
        silence: it was rejected: leaving everything as it is would have been right.
        wanted: it was rejected: what the person wrote instead would have been right.
        unsilence: it was accepted: leaving everything as it is would have been wrong.
        partly: a suggestion of which a part was taken is desirable.
    """

    silence: float = 0.5
    wanted: float = 0.5
    unsilence: float = 0.5
    partly: float = 0.5


def preferences_of(judged: Iterable[Judged], lessons: Lessons) -> Iterator[Preference]:
    """The suggestions themselves, and the answers that would have been right or wrong in their place.

    A suggestion to do nothing was never seen by anybody and teaches nothing.
    """
    for each in judged:
        nothing = silence(each.parts)
        if each.answer == nothing:
            continue
        rejected = each.fate == "rejected"
        weight = lessons.partly if each.fate == "partly" else 1.0
        answers = [(each.answer, not rejected, weight)]
        if rejected:
            answers.append((nothing, True, lessons.silence))
            if each.wanted is not None and each.wanted not in (nothing, each.answer):
                answers.append((each.wanted, True, lessons.wanted))
        else:
            answers.append((nothing, False, lessons.unsilence * weight))
        for answer, desirable, share in answers:
            if share * each.certainty > 0:
                yield Preference(
                    each.parts, each.kind, answer, desirable, share * each.certainty, each.group, each.max_context
                )


@dataclass(frozen=True, slots=True)
class Enough:
    """How much there must be to learn from.

    Attributes:
        judged: suggestions in all; a minibatch of fewer than eight has no origin worth the name, and a run has dozens.
        each: of them taken, and of them rejected.
    """

    judged: int = 200
    each: int = 40

    def check(self, judged: Iterable[Judged]) -> None:
        """Raise AlignmentError, saying how many there are and how many are needed."""
        fates = [each.fate for each in judged if each.answer != silence(each.parts)]
        rejected = fates.count("rejected")
        taken = len(fates) - rejected
        if len(fates) < self.judged or min(taken, rejected) < self.each:
            raise AlignmentError(
                f"there are {len(fates)} judged suggestions with text, {taken} of them taken and {rejected} rejected; "
                f"alignment needs {self.judged}, of either kind {self.each}"
            )
