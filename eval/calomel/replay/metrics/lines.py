"""A suggestion's changed lines beside those that the person made."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple


class LineScore(NamedTuple):
    """Lines removed and added: those in both, in the suggestion alone, in the person's edit alone."""

    both: int
    ours_alone: int
    theirs_alone: int

    @property
    def f1(self) -> float:
        """0 to 1; 1 when neither side changed anything."""
        missed = self.ours_alone + self.theirs_alone
        return 2 * self.both / (2 * self.both + missed) if self.both or missed else 1.0


def line_score(before: str, actual: str, expected: str) -> LineScore:
    """Multisets of removed and added lines, compared; line ends do not count."""
    ours, theirs = _changed(before, actual), _changed(before, expected)
    return LineScore((ours & theirs).total(), (ours - theirs).total(), (theirs - ours).total())


def is_exact(actual: str, expected: str) -> bool:
    """Whether the texts are the same, but for line ends and one at the end."""
    return _same_ends(actual) == _same_ends(expected)


def is_no_op(before: str, actual: str) -> bool:
    """Whether a suggestion changes nothing."""
    return before == actual


def position_error(before: str, actual: str, expected: str) -> int | None:
    """Lines between the first line that the suggestion changes and the first that the person changed.

    None when either of them changes nothing.
    """
    ours, theirs = _first_change(before, actual), _first_change(before, expected)
    return None if ours is None or theirs is None else abs(ours - theirs)


def _changed(before: str, after: str) -> Counter[tuple[str, str]]:
    old, new = Counter(before.splitlines()), Counter(after.splitlines())
    removed = {("-", line): count for line, count in (old - new).items()}
    return Counter(removed | {("+", line): count for line, count in (new - old).items()})


def _first_change(before: str, after: str) -> int | None:
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return None
    return next(
        (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new))
    )


def _same_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
