"""An outcome with everything in it, for logs: a module that imports little, since other processes import it too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from calomel.suggest.offers import Outcome
from calomel.suggest.outcome_log import OutcomeRecord, each_record


def an_outcome(**changes: Any) -> Outcome:
    whole = Outcome(
        id="00ff",
        outcome="accepted",
        reason="by_command",
        kind="fill",
        uri="file:///home/ada/secret-project/plans/rocket.py",
        language_id="python",
        trigger="edit",
        model="calomel-nano",
        probability=0.75,
        visible_seconds=0.6,
        length=12,
        accepted_length=12,
        text="launch(now)\n",
    )
    return replace(whole, **changes)


def read(path: Path) -> list[OutcomeRecord]:
    """The records of a log."""
    return [each for each in each_record(path) if each is not None]


def bad_lines(path: Path) -> int:
    """How many lines of a log are none of ours."""
    return [*each_record(path)].count(None)
