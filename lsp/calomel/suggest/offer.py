"""One suggestion that was given to the editor, until the user has decided about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from calomel.suggest.completer import CompleteRequest, Kind
from calomel.suggest.outcome_signals import OutcomeSignals
from calomel.suggest.planned import Change, Planned
from calomel.suggest.rebase import MAX_AGREEMENT_OFFSET, rebase
from calomel.suggest.trigger import Trigger
from calomel.suggest.units import utf16_length

Progress = Literal["apart", "shorter", "done", "against"]

# Nobody types more in one keystroke; editors close brackets by themselves, which makes two.
_MOST_BY_HAND = 2


@dataclass(slots=True)
class Offer:
    """A suggestion in the editor's hands.

    Attributes:
        id: the same as long as the user types into it.
        edits: what is left of it, of the text as it is now; empty when all is done.
        signals: numbers about it, from before it was shown.
        maker: who proposed it.
        request: what the model was asked, secrets masked.
        proposed: the maker's own text, of which `edits` are what is worth showing.
        answered: the insert text that the editor was given last; lengths in partial acceptance refer to it.
        since: when the editor displayed it; None while that is not known.
        gone: when it was not there any more; None as long as it may be.
        seen: it was visible long enough to be noticed, and that was told.
        taken: UTF-16 units of `answered` that were accepted in parts.
        decided: the last outcome that was told; None while it is open.
        pending: why it will count as ignored in a moment, unless the user's decision comes before.
    """

    id: str
    uri: str
    kind: Kind
    language_id: str
    trigger: Trigger
    probability: float
    model: str
    edits: tuple[Planned, ...]
    answered: str
    since: float | None = None
    gone: float | None = None
    signals: OutcomeSignals | None = field(default=None, repr=False)
    maker: str = ""
    request: CompleteRequest | None = field(default=None, repr=False)
    proposed: str = field(default="", repr=False)
    seen: bool = False
    taken: int = 0
    decided: str | None = None
    pending: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether the user may still be looking at it."""
        return bool(self.edits) and self.pending is None and self.decided in {None, "partly_accepted", "ignored"}

    @property
    def length(self) -> int:
        """UTF-16 units of the insert text that the editor has."""
        return utf16_length(self.answered)

    def changed(self, change: Change) -> Progress:
        """Go along with one change of its document."""
        left = self.after(change)
        if left is None:
            return "against"
        shorter = size(left) < size(self.edits)
        self.edits = left
        return "done" if not left else "shorter" if shorter else "apart"

    def after(self, change: Change) -> tuple[Planned, ...] | None:
        """What would be left of it after `change`; None when the change disagrees."""
        return rebase(self.edits, change, max_offset=MAX_AGREEMENT_OFFSET if self.kind == "edit" else 0)

    def was_accepted_by(self, change: Change) -> bool:
        """Whether `change` must be an acceptance: it does the suggestion, or whole words of it, in one go."""
        if not self.is_open or max(len(change.inserted), len(change.removed)) <= _MOST_BY_HAND:
            return False
        left = self.after(change)
        if left is None or size(left) >= size(self.edits):
            return False
        return len(left) < len(self.edits) or (
            len(left) == len(self.edits) and _ends_word(self.edits[0].text, left[0].text)
        )

    def is_nearer_by(self, change: Change) -> bool:
        """Whether `change` leaves less of it to be done."""
        left = self.after(change)
        return left is not None and size(left) < size(self.edits)


def size(edits: tuple[Planned, ...]) -> int:
    """Characters that edits remove and insert."""
    return sum(len(edit.text) + len(edit.removed) for edit in edits)


def _ends_word(whole: str, left: str) -> bool:
    """Whether what was taken from the beginning of `whole` ends with a word or a line."""
    taken = whole[: len(whole) - len(left)]
    if not taken.strip() or not left:
        return False
    return not (_is_letter(taken[-1]) and _is_letter(left[0]))


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"
