"""Hard filters: what must never be shown, however sure the model is. Each a pure function in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from calomel.selectivity.proposal import Proposal

Filter = Callable[[Proposal], bool]

# By the reason that a silence gets; the cheapest first.
FILTERS: Final[dict[str, Filter]] = {}


def fired(proposal: Proposal) -> Iterator[str]:
    """The names of the filters that drop a proposal, one after the other: whoever wants one pays for no more."""
    return (name for name, drops in FILTERS.items() if drops(proposal))
