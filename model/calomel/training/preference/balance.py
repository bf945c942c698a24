"""How much desirable and undesirable answers weigh: in all about the same, or one side is learned and the other not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.training.preference.preference import AlignmentError, Preference

# Weighted desirable : undesirable, as the authors of KTO advise.
LOWEST: Final = 1.0
HIGHEST: Final = 4 / 3


@dataclass(frozen=True, slots=True)
class Balance:
    """Weights of the two sides.

    Attributes:
        desirable, undesirable: what the loss of an answer is multiplied by.
        ratio: of the weighted sums.
    """

    desirable: float
    undesirable: float
    ratio: float

    @property
    def warning(self) -> str | None:
        """What to tell who chose these weights; None when they are good."""
        if LOWEST - 1e-9 <= self.ratio <= HIGHEST + 1e-9:
            return None
        return (
            f"desirable answers weigh {self.ratio:.2f} times the undesirable ones, outside of 1 to 4/3: "
            "without --desirable-weight and --undesirable-weight they are balanced"
        )


def balance(preferences: Sequence[Preference], desirable: float | None, undesirable: float | None) -> Balance:
    """The weights to use; what is None is chosen so that the ratio lies in the middle of what is advised.

    Raises AlignmentError when one side is missing.
    """
    wanted = sum(each.weight for each in preferences if each.desirable)
    unwanted = sum(each.weight for each in preferences if not each.desirable)
    if not wanted or not unwanted:
        raise AlignmentError("all answers are desirable, or none: there is nothing to tell apart")
    middle = (LOWEST + HIGHEST) / 2
    if undesirable is None:
        # Neither is multiplied by more than 1 unless somebody says so.
        undesirable = (
            min(1.0, wanted / unwanted / middle) if desirable is None else desirable * wanted / unwanted / middle
        )
    if desirable is None:
        desirable = middle * undesirable * unwanted / wanted
    return Balance(
        desirable, undesirable, desirable * wanted / (undesirable * unwanted) if undesirable else float("inf")
    )
