"""What another threshold would have done, as far as the log can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from calomel.suggest.gate import THRESHOLDS
from calomel.suggest.silence import SilenceReason
from calomel.suggest.stats.story import Story

STEPS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One threshold.

    Attributes:
        threshold: the least probability of what is shown.
        name: of the setting, where it has one.
        shown: suggestions that it would have shown.
        wanted: of these, taken or written by hand.
        missed: wanted ones that it would not have shown.
        of: suggestions of which the gate had the last word.
    """

    threshold: float
    name: str
    shown: int
    wanted: int
    missed: int
    of: int


def what_if(found: Sequence[Story], named: Mapping[str, float] = THRESHOLDS) -> tuple[WhatIf, ...]:
    """Each threshold, lowest first, over what a threshold decides about.

    Neither what the user asked for by hand, which is shown at any, nor what was held back for another reason.

    Args:
        found: suggestions of a log.
        named: what the names of thresholds come to.
    """
    decided = [
        (story.probability, story.wanted)
        for story in found
        if not story.explicit and (story.shown or story.reason == SilenceReason.LOW_CONFIDENCE)
    ]
    names = {threshold: name for name, threshold in named.items()}
    return tuple(_at(each, names.get(each, ""), decided) for each in sorted({*STEPS, *names}))


def _at(threshold: float, name: str, decided: Sequence[tuple[float, bool]]) -> WhatIf:
    shown = [wanted for probability, wanted in decided if probability >= threshold]
    wanted = sum(shown)
    return WhatIf(threshold, name, len(shown), wanted, sum(each for _, each in decided) - wanted, len(decided))
