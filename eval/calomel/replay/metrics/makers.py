"""Whose proposals they were: how often each maker proposed, was chosen, was shown, and was right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calomel.replay.metrics.offers import seen
from calomel.replay.opportunity import Opportunity

COLUMNS: Final = ("proposed", "chosen", "shown", "accepted", "partly")


def makers(ours: Sequence[Opportunity]) -> dict[str, dict[str, int]]:
    """Opportunities by maker and by what became of its proposals.

    Proposed: the maker had one. Chosen: its proposal was the surest that the gate saw. Shown: a person saw it. Accepted
    and partly: of those shown.
    """
    names = sorted({maker for item in ours for maker in (*item.makers, *_chosen(item))})
    counts = {name: dict.fromkeys(COLUMNS, 0) for name in names}
    for item in ours:
        for maker in {*item.makers, *_chosen(item)}:
            counts[maker]["proposed"] += 1
        for maker in _chosen(item):
            counts[maker]["chosen"] += 1
            found = seen(item)
            if found is not None:
                counts[maker]["shown"] += 1
                if found.outcome in {"accepted", "partly"}:
                    counts[maker][found.outcome] += 1
    return counts


def _chosen(item: Opportunity) -> tuple[str, ...]:
    return (item.candidate.maker,) if item.candidate is not None and item.candidate.maker else ()
