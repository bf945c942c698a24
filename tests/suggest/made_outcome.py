"""An outcome with everything in it, for logs: a module that imports little, since other processes import it too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calomel.suggest.offers import Outcome


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
