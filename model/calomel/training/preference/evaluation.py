"""What weights think of held-out answers: of suggestions that were taken, of rejected ones, and of silence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from calomel.training.preference.dataset import Lesson
from calomel.training.preference.references import Reference

MODES: Final = ("canvas", "causal")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Means over held-out answers of one kind and one mode; NaN where there is none.

    Attributes:
        taken, rejected: score, in nats, of suggestions that were taken or rejected.
        silence: score of leaving everything as it is, over all questions.
        silence_wanted: the same where a suggestion was rejected.
        auroc: how well `score of the suggestion - score of silence` tells taken suggestions from rejected ones.
        count: suggestions.
    """

    taken: float
    rejected: float
    silence: float
    silence_wanted: float
    auroc: float
    count: int

    @property
    def margin(self) -> float:
        """How much likelier taken suggestions are than rejected ones, in nats."""
        return self.taken - self.rejected

    def to_json(self) -> dict[str, float | None]:
        """Plain numbers; None for those that are not known."""
        values = {
            "taken": self.taken,
            "rejected": self.rejected,
            "margin": self.margin,
            "silence": self.silence,
            "silence_wanted": self.silence_wanted,
            "auroc": self.auroc,
        }
        rounded = {name: None if math.isnan(value) else round(value, 4) for name, value in values.items()}
        return {**rounded, "count": self.count}


def evaluate(lessons: Sequence[Lesson], scores: Sequence[Reference]) -> dict[str, dict[str, Evaluation]]:
    """By kind (`fill`, `edit`, `all`), then by mode; kinds that nobody asked for are left out."""
    found: dict[str, dict[str, Evaluation]] = {}
    for kind in ("fill", "edit", "all"):
        pairs = [pair for pair in zip(lessons, scores, strict=True) if kind in (pair[0].kind, "all")]
        if pairs:
            found[kind] = {mode: _evaluate(pairs, mode) for mode in MODES}
    return found


def to_json(evaluations: dict[str, dict[str, Evaluation]]) -> dict[str, Any]:
    """The same as plain values."""
    return {kind: {mode: each.to_json() for mode, each in modes.items()} for kind, modes in evaluations.items()}


def _evaluate(pairs: Sequence[tuple[Lesson, Reference]], mode: str) -> Evaluation:
    taken: list[float] = []
    rejected: list[float] = []
    above_taken: list[float] = []
    above_rejected: list[float] = []
    quiet: list[float] = []
    quiet_wanted: list[float] = []
    for lesson, reference in pairs:
        scores: Sequence[float] = getattr(reference, mode)
        silent = None if lesson.silence is None else lesson.question.answers[lesson.silence].key
        keep = math.nan if lesson.silence is None else scores[lesson.silence]
        wanted = _silence_wanted(lesson, silent)
        if silent is not None:
            quiet.append(keep)
            quiet_wanted += [keep] if wanted else []
        judged = zip(lesson.question.answers, lesson.weights, lesson.desirable, scores, strict=True)
        for answer, weight, good, score in judged:
            # Where silence was right, a desirable text is what the person wrote: nobody suggested it.
            if answer.key == silent or not weight or (good and wanted):
                continue
            (taken if good else rejected).append(score)
            (above_taken if good else above_rejected).append(score - keep)
    ranked = auroc(above_taken, above_rejected)
    return Evaluation(
        _mean(taken), _mean(rejected), _mean(quiet), _mean(quiet_wanted), ranked, len(taken) + len(rejected)
    )


def _silence_wanted(lesson: Lesson, silent: str | None) -> bool:
    judged = zip(lesson.question.answers, lesson.weights, lesson.desirable, strict=True)
    return any(answer.key == silent and weight > 0 and good for answer, weight, good in judged)


def auroc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Chance that one of `right` is above one of `wrong`, ties counted half; NaN where one of them is missing."""
    pairs = len(right) * len(wrong)
    if not pairs:
        return math.nan
    return sum((one > other) + (one == other) / 2 for one in right for other in wrong) / pairs


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
