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
        silence: all suggestions were rejected: leaving everything as it is would have been right.
        wanted: all were rejected: what the person wrote instead would have been right.
        unsilence: one was accepted: leaving everything as it is would have been wrong.
        partly: a suggestion of which a part was taken is desirable.
    """

    silence: float = 0.5
    wanted: float = 0.5
    unsilence: float = 0.5
    partly: float = 0.5


def preferences_of(judged: Iterable[Judged], lessons: Lessons) -> Iterator[Preference]:
    """The suggestions themselves, and the answers that would have been right or wrong in their place.

    Silence is right where every suggestion to a question was rejected, and is counted once for all of them. A
    suggestion to do nothing was never seen by anybody and teaches nothing.
    """
    questions: dict[PromptParts, list[Judged]] = {}
    for each in judged:
        if each.answer != silence(each.parts):
            questions.setdefault(each.parts, []).append(each)
    for suggestions in questions.values():
        for each in suggestions:
            weight = lessons.partly if each.fate == "partly" else 1.0
            yield from _preference(each, each.answer, each.fate != "rejected", weight)
        taken = [each for each in suggestions if each.fate != "rejected"]
        surest = max(taken or suggestions, key=lambda each: (each.fate == "accepted", each.certainty))
        nothing = silence(surest.parts)
        if taken:
            weight = lessons.partly if surest.fate == "partly" else 1.0
            yield from _preference(surest, nothing, False, lessons.unsilence * weight)
            continue
        yield from _preference(surest, nothing, True, lessons.silence)
        answers = {nothing, *(each.answer for each in suggestions)}
        for wanted in dict.fromkeys(each.wanted for each in suggestions):
            if wanted is not None and wanted not in answers:
                yield from _preference(surest, wanted, True, lessons.wanted)


def _preference(judged: Judged, answer: str, desirable: bool, weight: float) -> Iterator[Preference]:  # noqa: FBT001
    weight *= judged.certainty
    if weight > 0:
        yield Preference(judged.parts, judged.kind, answer, desirable, weight, judged.group, judged.max_context)


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
