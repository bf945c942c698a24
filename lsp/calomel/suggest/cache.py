"""A cache of the model's answers, rebased over changes for as long as they still apply."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from calomel.infer.completer import Kind
from calomel.suggest.judging import Judged
from calomel.suggest.silence import SilenceReason
from calomel.workspace.documents import TextChange
from calomel.workspace.edits import Planned, apply, edits_of, rebase

# The size of Copilot's cache of next edits.
_ENTRIES: Final = 50

_EntryKey = tuple[Kind, int, int, int, int]


@dataclass(slots=True)
class Entry:
    """One answer for one state of a document.

    Attributes:
        kind: `fill` or `edit`.
        offset: of the cursor when it was made.
        decision: what may be shown; or why the model's answer is not shown.
        window: range in which the cursor must be for an `edit` to be shown.
        edits: rebased to the current text; None when the text disagrees, and without any to show.
        original: its edits, in offsets of the text that it was made for.
        agreed: every change since then followed the answer.
        goal: hash of the resulting text, compared with the result of the rebased edits.
        total: how many suggestions its edits were offered as; 0 before the first.
        begun: some of its edits are done, so what is left follows wherever the cursor is.
        model: id of the one that answered.
    """

    kind: Kind
    offset: int
    decision: Judged | SilenceReason
    window: tuple[int, int] = (0, 0)
    edits: tuple[Planned, ...] | None = None
    agreed: bool = True
    goal: int = 0
    total: int = 0
    begun: bool = False
    model: str = ""
    original: tuple[Planned, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.original = self.decision.edits if isinstance(self.decision, Judged) else ()
        self.edits = self.original or None

    def changed(self, change: TextChange, *, continues: bool) -> None:
        """Rebase over one change of the document, which `continues` the last edit or begins another one."""
        if self.edits:
            along = any(edit.start <= change.end and edit.end >= change.start for edit in self.edits)
            if self.kind == "edit" and continues and not along:
                self.edits = None  # it followed from an edit that was half done
                return
            self.agreed = self.agreed and along
            count = len(self.edits)
            self.edits = rebase(self.edits, change, kind=self.kind)
            self.begun |= self.edits is not None and len(self.edits) < count
            self.window = _moved(self.window, change)


class Cache:
    """The last answers about one document.

    An entry is found by the exact text it was made for, or if everything typed since agrees.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[_EntryKey, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, text: str, entry: Entry, rank: int = 0) -> None:
        """Cache an answer for the document's `text`; of several for one state, `find` returns the one of rank 0."""
        state = _state(entry.kind, text, entry.offset, rank)
        self._entries.pop(state, None)
        self._entries[state] = entry
        entry.goal = hash(apply(text, edits_of(entry.original)))
        while len(self._entries) > _ENTRIES:
            self._entries.popitem(last=False)

    def find(self, kind: Kind, text: str, cursor: int) -> Entry | None:
        """The entry for this state, with `edits` of `text`; None without one.

        Entries without edits are found by their exact state only.
        """
        state = _state(kind, text, cursor)
        entry = self._entries.get(state)
        if entry is not None and all(edit.fits(text) for edit in entry.original):
            self._entries.move_to_end(state)
            entry.edits, entry.agreed, entry.begun = entry.original or None, True, False
            return entry
        for key, other in reversed(self._entries.items()):
            if other.kind == kind and self._holds(other, text, cursor):
                self._entries.move_to_end(key)
                return other
        return None

    def every(self, kind: Kind, text: str, cursor: int) -> Iterator[Entry]:
        """All entries that may be shown in this state, newest first."""
        for state, entry in reversed(self._entries.items()):
            if state == _state(kind, text, cursor, state[-1]) and all(edit.fits(text) for edit in entry.original):
                entry.edits, entry.agreed = entry.original or None, True
            if entry.kind == kind and self._holds(entry, text, cursor):
                yield entry

    def beside(self, edits: Sequence[Planned]) -> tuple[Planned, ...]:
        """What else the answer that has these edits would change."""
        for entry in reversed(self._entries.values()):
            if entry.kind == "edit" and entry.edits and set(edits) <= set(entry.edits):
                return tuple(edit for edit in entry.edits if edit not in edits)
        return ()

    def changed(self, change: TextChange, *, continues: bool) -> None:
        """Rebase the entries over one change; see `Entry.changed`."""
        for entry in self._entries.values():
            entry.changed(change, continues=continues)

    def clear(self, kind: Kind | None = None) -> None:
        """Forget everything, for another model or other settings; or the entries of `kind` only."""
        for state in [state for state in self._entries if kind in {None, state[0]}]:
            del self._entries[state]

    def _holds(self, entry: Entry, text: str, cursor: int) -> bool:
        """Whether a rebased entry may be shown: it fits the text and the cursor, and has the original's result."""
        if not entry.edits or not all(edit.fits(text) for edit in entry.edits):
            return False
        if entry.kind == "fill":
            near = len(entry.edits) == 1 and entry.edits[0].start == cursor and not entry.edits[0].removed
        else:
            low, high = entry.window
            near = entry.begun or low <= cursor <= high or any(_beside(text, edit, cursor) for edit in entry.edits)
        return near and (not entry.agreed or hash(apply(text, edits_of(entry.edits))) == entry.goal)


def _state(kind: Kind, text: str, cursor: int, rank: int = 0) -> _EntryKey:
    return kind, len(text), hash(text), cursor, rank


def _moved(window: tuple[int, int], change: TextChange) -> tuple[int, int]:
    low, high = window
    by = len(change.inserted) - (change.end - change.start)
    if change.end <= low:
        return low + by, high + by
    if change.start > high:
        return window
    return min(low, change.start), max(high + by, change.start)


def _beside(text: str, edit: Planned, cursor: int) -> bool:
    """Whether no more than two lines lie between the cursor and an edit."""
    low, high = sorted((cursor, edit.start))
    return low >= edit.start - len(edit.removed) and text.count("\n", low, high) <= 2  # noqa: PLR2004
