"""How close a text is to another one: chrF of the change, exact match, and syntax errors."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from calomel.replay.events import shared_ends
from calomel.workspace.syntax import SyntaxTrees

ORDERS: Final = range(1, 7)
BETA: Final = 2.0
_SPACES: Final = re.compile(r"\s+")


def chrf(candidate: str, reference: str) -> float:
    """0 to 100: F-scores of all orders that either text has, averaged; 100 when both are empty."""
    scores = []
    for order in ORDERS:
        ours, theirs = _grams(candidate, order), _grams(reference, order)
        if ours or theirs:
            matches = (ours & theirs).total()
            scores.append(_f_score(_share(matches, ours.total()), _share(matches, theirs.total())))
    return 100.0 * sum(scores) / len(scores) if scores else 100.0


def changed_middle(before: str, after: str) -> str:
    """The lines of `after` between those that it shares with the beginning and the end of `before`."""
    old, new = _lines(before), _lines(after)
    start, end = shared_ends(old, new)
    return "\n".join(new[start : len(new) - end])


def suite_delta_chrf(before: str, actual: str, expected: str) -> float:
    """0 to 100: chrF of the changed lines alone, as the public suite of scenarios computes it.

    White space counts as it is, and so does an empty line at the end. Deletions that leave no trace in the changed
    lines do not count.
    """
    return chrf(changed_middle(before, actual), changed_middle(before, expected))


def delta_chrf(before: str, actual: str, expected: str) -> float:
    """0 to 100: how well the added and removed n-grams agree with those that should have been.

    Runs of white space count as one space. Precision and recall are averaged over the orders, an order in which
    neither side changed anything counts as right.
    """
    start, ours, theirs = (_SPACES.sub(" ", text) for text in (before, actual, expected))
    precision = recall = 0.0
    for order in ORDERS:
        made, wanted = _changes(start, ours, order), _changes(start, theirs, order)
        if not made and not wanted:
            precision, recall = precision + 1, recall + 1
            continue
        matches = (made & wanted).total()
        precision += _share(matches, made.total())
        recall += _share(matches, wanted.total())
    return 100.0 * _f_score(precision / len(ORDERS), recall / len(ORDERS))


def _changes(before: str, after: str, order: int) -> Counter[tuple[bool, str]]:
    """N-grams added (True) and removed (False), with counts."""
    old, new = _grams(before, order), _grams(after, order)
    came = {(True, gram): count for gram, count in (new - old).items()}
    return Counter(came | {(False, gram): count for gram, count in (old - new).items()})


def _grams(text: str, order: int) -> Counter[str]:
    return Counter(text[at : at + order] for at in range(len(text) - order + 1))


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _f_score(precision: float, recall: float) -> float:
    weighted = BETA**2 * precision + recall
    return (1 + BETA**2) * precision * recall / weighted if weighted else 0.0


def is_exact(actual: str, expected: str) -> bool:
    """Whether the texts are the same, except for the kind of line ends and a final one."""
    return _same_ends(actual) == _same_ends(expected)


def _same_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


# A replay has time: this limit only prevents an endless parse; it is not the editor's budget.
_SECONDS = 2.0


def parse_error_delta(before: str, after: str, language_id: str) -> int | None:
    """Syntax errors in the whole text after a suggestion, minus those before it; None without a grammar."""
    trees = SyntaxTrees()
    earlier = trees.error_count(before, language_id, seconds=_SECONDS)
    later = trees.error_count(after, language_id, seconds=_SECONDS)
    return None if earlier is None or later is None else later - earlier
