"""Filters of what the user meant: what was just done is not reverted, and what was undone does not come back.

How much a suggestion reverts is counted in characters, like Zed's reversal ratio: those it deletes that were just
written, and those it inserts where they were just deleted. Completing a word, or a word made longer, reverts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

import regex
from rapidfuzz.distance import LCSseq, Levenshtein

from calomel.code.bindings import mentions
from calomel.code.lines import Rows
from calomel.code.names import is_word, names_of
from calomel.prompts.parts import Edit, changed_span, differences, trimmed
from calomel.selectivity.proposal import Proposal, Recent

# Whitespace characters between a deletion and the place where the text comes back.
_APART: Final = 200
# Longer texts are compared by their ends alone.
_LONGEST: Final = 2000
# Words, whitespace, and symbols one by one.
_PIECE: Final = regex.compile(r"\w+|\s+|[^\w\s]")
# Below this share a suggestion is more than a reversal: one that fixes a typo deletes and writes a few of the same
# letters.
_MOST: Final = 0.75
_LEAST_CHARACTERS: Final = 4
# A single character is often deleted to be retyped, and many texts begin with the same one.
_LEAST_BEGINNING: Final = 2
# A letter or two out of a longer text fixes a typo.
_MENDED: Final = 2
_TIMES: Final = 4
# Two letters that changed places are two edits.
_SLIP: Final = 2

_NAME: Final = regex.compile(r"(?<![\w$@#])[^\W\d]\w*")


def reverts_edit(proposal: Proposal) -> bool:
    """Whether any of it reverts a change, or most of it undoes recent edits, in both directions.

    Edits are compared word by word, text at the cursor as it is: pure insertions and deletions there have filters of
    their own. To put a slip right that the edit itself made is no reversal.
    """
    text, bare = proposal.text, words_changed if proposal.kind == "edit" else trimmed
    past = [(each.start, each.end, each.removed) for each in (*proposal.edited, *proposal.recent)]
    if past:
        ours = {each for each in bare(text, proposal.edits) if _says_something(text[each.start : each.end], each.text)}
        undone = {back for each in past for back in bare(text, [each]) if back in ours}
        if any(not _mends_slip(text, each) for each in undone):
            return True
    if not proposal.recent:
        return False
    deleted, typed, inserted, restored = _undone(proposal)
    back = typed + restored
    return bool(typed and restored) and back >= max(_LEAST_CHARACTERS, _MOST * (deleted + inserted))


def _mends_slip(text: str, edit: Edit) -> bool:
    """Whether an edit turns a word that is nowhere else into one that is, but for some letters in its middle."""
    gone, came = text[edit.start : edit.end], edit.text
    if not (gone.isidentifier() and came.isidentifier() and gone[:1] == came[:1] and gone[-1:] == came[-1:]):
        return False
    words = _PIECE.findall(text)
    return words.count(gone) == 1 and came in words and Levenshtein.distance(gone, came) <= _SLIP


def resumes_undone(proposal: Proposal) -> bool:
    """Whether any of it replaces the same text by the same text as an edit that was undone."""
    if proposal.kind != "edit" or not proposal.withdrawn:
        return False
    changed = ((proposal.text[start:end], new) for start, end, new in words_changed(proposal.text, proposal.edits))
    return any(
        (gone.strip(), came.strip()) in proposal.withdrawn and _says_something(gone, came) for gone, came in changed
    )


def reinserts_deleted(proposal: Proposal) -> bool:
    """Whether an insertion begins with what was deleted at its place, or is the beginning of it."""
    past = [each for each in _done(proposal.recent) if each.removed.strip() and not each.inserted]
    if not past:
        return False
    for start, end, new in trimmed(proposal.text, proposal.edits):
        back = new.strip()
        if start < end or not back:
            continue
        for each in past:
            gone = each.removed.strip()
            if (gone.startswith(back) or (len(gone) >= _LEAST_BEGINNING and back.startswith(gone))) and _near(
                proposal, start, each.start
            ):
                return True
    return False


def deletes_typed(proposal: Proposal) -> bool:
    """Whether it only deletes, mostly text that was just written."""
    if proposal.kind == "fill" or not proposal.recent:
        return False
    edits = trimmed(proposal.text, proposal.edits)
    if not edits or any(new.strip() for _, _, new in edits):
        return False
    deleted, typed, _, _ = _undone(proposal)
    written = sum(len(each.inserted) for each in proposal.recent)
    mends = deleted <= _MENDED and written >= _TIMES * deleted
    return not mends and deleted > 0 and typed >= _MOST * deleted


def unknown_name(proposal: Proposal) -> bool:
    """Whether it uses, away from the cursor's line, a name that occurs or is declared nowhere else in the file.

    Members of anything but the object itself belong to types that the file need not show.
    """
    if proposal.kind != "edit" or proposal.builtins is None:
        return False
    text, after, by = proposal.text, proposal.after, 0
    written: list[tuple[int, int]] = []
    for start, end, new in words_changed(text, proposal.edits):
        low, high = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        if not low <= proposal.cursor <= (len(text) if high < 0 else high):
            written.append((start + by, start + by + len(new)))
        by += len(new) - (end - start)
    names = {name for low, high in written for name in _NAME.findall(after, low, high)} - proposal.builtins
    unknown = [name for name in names if _whole(name).search(text) is None]
    if not unknown:
        return False
    rows = Rows(after, names_of(proposal.language_id))
    for name in unknown:
        found = mentions(rows, name) or ()
        used = (each for each in found if each.role == "variable" or each.receiver in {"self", "this"})
        declared = any(each.mode for each in found)
        if not declared and any(low <= each.start < high for each in used for low, high in written):
            return True
    return False


def _whole(name: str) -> regex.Pattern[str]:
    return regex.compile(rf"(?<!\w){regex.escape(name)}(?!\w)")


def words_changed(text: str, edits: Sequence[tuple[int, int, str]]) -> list[Edit]:
    """The edits as replacements of whole words: turning `names` into `name` changes the word, it deletes no letter."""
    found: list[Edit] = []
    for start, end, new in trimmed(text, edits):
        low, high = start, end
        if _joins(text[low - 1 : low], text[start:end][:1], new[:1]):
            while low and is_word(text[low - 1]):
                low -= 1
        if _joins(text[high : high + 1], text[start:end][-1:], new[-1:]):
            while high < len(text) and is_word(text[high]):
                high += 1
        whole = text[low:start] + new + text[end:high]
        if max(high - low, len(whole)) > _LONGEST:
            found.append(Edit(low, high, whole))
            continue
        old, now = _PIECE.findall(text[low:high]), _PIECE.findall(whole)
        starts = list(accumulate(map(len, old), initial=low))
        found += [Edit(starts[a], starts[b], "".join(now[c:d])) for a, b, c, d in differences(old, now)]
    return found


def _says_something(gone: str, came: str) -> bool:
    """Whether a change is more than a single character inserted or deleted, which may fix a typo."""
    return bool(gone.strip() and came.strip()) or len((gone + came).strip()) > 1


def _done(recent: Sequence[Recent]) -> Iterator[Recent]:
    """What was done, trimmed: replacing `get` by `getter` inserted `ter` and deleted nothing.

    An editor may report edits of several words as one, from the first to the last; the text in between is unchanged.
    """
    for each in recent:
        for at, removed, inserted in _bare(each.removed, each.inserted):
            yield Recent(each.start + at, each.start + at + len(inserted), removed, inserted)


@lru_cache(maxsize=256)
def _bare(removed: str, inserted: str) -> tuple[tuple[int, str, str], ...]:
    """Where in `inserted` text was written, and what it replaced, without the unchanged parts."""
    found: list[tuple[int, str, str]] = []
    by = 0
    for start, end, new in words_changed(removed, [(0, len(removed), inserted)]):
        first, last, new_last = changed_span(removed[start:end], new)
        found.append((start + by + first, removed[start + first : start + last], new[first:new_last]))
        by += len(new) - (end - start)
    return tuple(found)


def _undone(proposal: Proposal) -> tuple[int, int, int, int]:
    """Characters that a suggestion deletes, those just written, that it inserts, and those just deleted there."""
    deleted = typed = inserted = restored = 0
    past = list(_done(proposal.recent))
    for start, end, new in trimmed(proposal.text, proposal.edits):
        deleted += end - start
        inserted += len(new)
        typed += min(
            end - start, sum(max(0, min(end, each.end) - max(start, each.start)) for each in past if each.inserted)
        )
        back = (_common(each.removed, new) for each in past if each.removed and start <= each.end and each.start <= end)
        restored += min(len(new), max(back, default=0))
    return deleted, typed, inserted, restored


def _near(proposal: Proposal, at: int, place: int) -> bool:
    """Whether there is only whitespace between two places."""
    first, last = sorted((at, place))
    return last - first <= _APART and not proposal.text[first:last].strip()


def _common(one: str, other: str) -> int:
    """Characters that two texts have in the same order, counted only if they are most of one of them."""
    if len(one) > _LONGEST or len(other) > _LONGEST:
        first, last, _ = changed_span(one, other)
        return first + len(one) - last
    # A third of unrelated code is common by chance.
    length = int(LCSseq.similarity(one, other))
    return length if 2 * length > min(len(one), len(other)) else 0


def _joins(beside: str, gone: str, came: str) -> bool:
    """Whether a change at the edge of a word changes that word."""
    return is_word(beside) and (is_word(gone) or is_word(came))
