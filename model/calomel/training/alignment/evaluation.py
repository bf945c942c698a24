"""What weights think of held-out answers: of suggestions that were taken, of rejected ones, and of silence."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from calomel.storage import write_whole
from calomel.training.alignment.data import AlignmentError, Balance, Lesson


@dataclass(frozen=True, slots=True)
class Reference:
    """Scores of a question's A answers, see `Scores`, under the masks of one pass."""

    canvas: tuple[float, ...]
    causal: tuple[float, ...]


class References:
    """References in a file of JSON lines, each written as soon as it is known: an interrupted run goes on.

    A line names the answers that it is about; the first one says which weights and which settings it is for.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        """Read what is there. Raises AlignmentError when it was made with other weights or settings."""
        self._path = path
        self._known: dict[tuple[str, int], Reference] = {}
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps({"fingerprint": fingerprint}) + "\n")
            return
        first, *lines = path.read_text(encoding="utf-8").split("\n")
        if json.loads(first)["fingerprint"] != fingerprint:
            raise AlignmentError(f"{path} belongs to other weights or settings: choose another --out, or delete it")
        whole = first + "\n"
        # The last line may have been cut by a crash.
        for line in lines[:-1]:
            entry = json.loads(line)
            self._known[entry["answers"], entry["number"]] = Reference(tuple(entry["canvas"]), tuple(entry["causal"]))
            whole += line + "\n"
        if lines and lines[-1]:
            write_whole(path, whole)

    def get(self, keys: Sequence[str], number: int) -> Reference | None:
        """Of the answers with these keys, in pass `number`."""
        return self._known.get((" ".join(keys), number))

    def add(self, keys: Sequence[str], number: int, reference: Reference) -> None:
        """Remember one, and write it down."""
        name = " ".join(keys)
        self._known[name, number] = reference
        entry = {
            "answers": name,
            "number": number,
            "canvas": list(reference.canvas),
            "causal": list(reference.causal),
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


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
        values = {**asdict(self), "margin": self.margin}
        return {name: None if math.isnan(value) else round(value, 4) for name, value in values.items()}


def evaluate(lessons: Sequence[Lesson], scores: Sequence[Reference]) -> dict[str, dict[str, Evaluation]]:
    """By kind (`fill`, `edit`, `all`), then by mode; kinds that nobody asked for are left out."""
    found: dict[str, dict[str, Evaluation]] = {}
    for kind in ("fill", "edit", "all"):
        pairs = [pair for pair in zip(lessons, scores, strict=True) if kind in (pair[0].kind, "all")]
        if pairs:
            found[kind] = {mode: _evaluate(pairs, mode) for mode in MODES}
    return found


def _to_json(evaluations: dict[str, dict[str, Evaluation]]) -> dict[str, Any]:
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


Evaluations = dict[str, dict[str, Evaluation]]


@dataclass(frozen=True, slots=True)
class Alignment:
    """What an alignment did.

    Attributes:
        checkpoint: folder of the aligned weights.
        before, after: what the weights think of held-out answers; empty when nothing is held out. `after` is of the
            weights as they were written.
        steps: optimizer steps, all sessions together.
        questions, answers: learned from.
        left_out: answers that are too long.
        balance: the weights of the two sides.
        seconds_per_answer: of training, reference scores apart; NaN when there was no step in this session.
    """

    checkpoint: Path
    before: Evaluations
    after: Evaluations
    steps: int
    questions: int
    answers: int
    left_out: int
    balance: Balance
    seconds_per_answer: float

    def to_json(self) -> dict[str, Any]:
        """Plain values, without the folder, which may be moved."""
        values = asdict(self)
        del values["checkpoint"], values["seconds_per_answer"]
        return {**values, "before": _to_json(self.before), "after": _to_json(self.after)}
