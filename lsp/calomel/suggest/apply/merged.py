"""What came of a merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NO_PLACE: Final = "The update could not be placed in the original code; the original code is returned."
TOO_LARGE: Final = "The original code and the update are too long to be compared; the original code is returned."
BREAKS: Final = (
    "The update would make syntax errors that the original code does not have; the original code is returned."
)
UNDECIDED: Final = "The update fits more than one place in the original code; the original code is returned."


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge.

    Attributes:
        text: the merged file; the original where the merge is not sure.
        sure: whether `text` is what the snippet says.
        ambiguous: otherwise, the files that it may mean, likeliest first; none where there is no place at all.
        warning: what a person should know; quotes nothing.
    """

    text: str
    sure: bool
    ambiguous: tuple[str, ...] = ()
    warning: str | None = None
