"""Questions without an editor, for tests of what decides about answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.suggest.editor import ScriptedModel, WholeFile

from calomel.selectivity.calibrator import Calibrator, KindCalibrator
from calomel.suggest.candidates import CandidateSource
from calomel.suggest.completer import Candidate
from calomel.suggest.edit import TextEdit, plan
from calomel.suggest.judging import Proposed, SuggestionFilter
from calomel.suggest.question import Question, Trigger
from calomel.workspace.workspace import Situation


def asked(text: str, trigger: Trigger = Trigger.EDIT, **changes: Any) -> Question:
    """`|` is the cursor."""
    offset = text.index("|")
    plain = text.replace("|", "", 1)
    values: dict[str, Any] = {
        "text": plain,
        "situation": Situation("file:///a.py", "a.py", "python", plain, offset, 1),
        "trigger": trigger,
        "recent": (),
        "since_edit": 1.0,
        "decisions": (0, 0),
        "max_tokens": 64,
        "context_tokens": 1024,
        "mask": str,
    }
    return Question(**{**values, **changes})


def proposed(question: Question, text: str, log_prob: float = -0.1, **changes: Any) -> Proposed:
    """That `text` be inserted at the cursor."""
    at = question.situation.offset
    return Proposed(Candidate(text, (log_prob,)), plan(question.text, [TextEdit(at, at, text)]), **changes)


def flat(probability_log_odds: float, hopeless: frozenset[str] = frozenset()) -> Calibrator:
    """Gives every fill and every edit the same."""
    return Calibrator({kind: KindCalibrator({}, probability_log_odds, hopeless) for kind in ("fill", "edit")})


def source(model: ScriptedModel) -> CandidateSource:
    """One whose model always answers in time."""

    async def never(seconds: float) -> None:
        await asyncio.get_running_loop().create_future()

    return CandidateSource(WholeFile(), model.complete, SuggestionFilter(), never)


def counting(errors: tuple[int, int] | None) -> tuple[Callable[[int, int, str], tuple[int, int] | None], list[str]]:
    """A parser that always says the same, and what it was asked."""
    seen: list[str] = []

    def count(start: int, end: int, text: str) -> tuple[int, int] | None:
        seen.append(text)
        return errors

    return count, seen
