"""Hard filters: what must never be shown, however sure the model is. Each a pure function in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from calomel.selectivity.filters.cut_off import cut_off
from calomel.selectivity.filters.deletes_too_much import deletes_too_much
from calomel.selectivity.filters.deletes_typed import deletes_typed
from calomel.selectivity.filters.duplicate_of_suffix import duplicate_of_suffix
from calomel.selectivity.filters.empty_comment import empty_comment
from calomel.selectivity.filters.no_change import no_change
from calomel.selectivity.filters.path_line import path_line
from calomel.selectivity.filters.prompt_marker import prompt_marker
from calomel.selectivity.filters.reinserts_deleted import reinserts_deleted
from calomel.selectivity.filters.repeats_above import repeats_above
from calomel.selectivity.filters.repeats_below import repeats_below
from calomel.selectivity.filters.repeats_itself import repeats_itself
from calomel.selectivity.filters.reverts_edit import reverts_edit
from calomel.selectivity.filters.secret import secret
from calomel.selectivity.filters.too_large import too_large
from calomel.selectivity.filters.unbalanced import unbalanced
from calomel.selectivity.filters.unparsable import unparsable
from calomel.selectivity.filters.whitespace_only import whitespace_only
from calomel.selectivity.filters.wrong_region import wrong_region
from calomel.selectivity.proposal import Proposal

Filter = Callable[[Proposal], bool]

# By the reason that a silence gets; the cheapest first, but secrets before all that is a matter of taste.
FILTERS: Final[dict[str, Filter]] = {
    "no_change": no_change,
    "secret": secret,
    "cut_off": cut_off,
    "whitespace_only": whitespace_only,
    "wrong_region": wrong_region,
    "deletes_too_much": deletes_too_much,
    "too_large": too_large,
    "prompt_marker": prompt_marker,
    "reverts_edit": reverts_edit,
    "reinserts_deleted": reinserts_deleted,
    "deletes_typed": deletes_typed,
    "duplicate_of_suffix": duplicate_of_suffix,
    "repeats_below": repeats_below,
    "repeats_above": repeats_above,
    "repeats_itself": repeats_itself,
    "empty_comment": empty_comment,
    "path_line": path_line,
    "unbalanced": unbalanced,
    "unparsable": unparsable,
}


# Brackets are counted in a few lines, of which an edit may take some away.
_OF_FILLS: Final = frozenset({"unbalanced"})
# One that parses; all others look at a few lines.
THOROUGH: Final = ("unparsable",)
QUICK: Final = tuple(name for name in FILTERS if name not in THOROUGH)


def fired(proposal: Proposal, names: Iterable[str] = tuple(FILTERS)) -> Iterator[str]:
    """The names of the filters that drop a proposal, one after the other: whoever wants one pays for no more."""
    steps = _OF_FILLS if proposal.kind == "edit" else frozenset[str]()
    return (name for name in names if name not in steps and FILTERS[name](proposal))
