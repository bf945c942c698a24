"""What an alignment did, for people and for `alignment.json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from calomel.training.preference.balance import Balance
from calomel.training.preference.evaluation import Evaluation, to_json

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
        return {
            "steps": self.steps,
            "questions": self.questions,
            "answers": self.answers,
            "left_out": self.left_out,
            "balance": asdict(self.balance),
            "before": to_json(self.before),
            "after": to_json(self.after),
        }
