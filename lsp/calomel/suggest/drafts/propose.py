"""All drafts for one moment, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from calomel.prompts.parts import Hunk
from calomel.selectivity.analogy import expected
from calomel.suggest.completer import Draft
from calomel.suggest.drafts.arguments import MAKER as ARGUMENTS
from calomel.suggest.drafts.arguments import arguments, awaited, by_name, strays, without_parameter
from calomel.suggest.drafts.evidence import EditDraft, Evidence, evidence
from calomel.suggest.drafts.imports import imports
from calomel.suggest.drafts.names import relatives
from calomel.suggest.drafts.rename import MAKER as RENAME
from calomel.suggest.drafts.rename import leaves_scope, rename, renamings
from calomel.suggest.drafts.shape import repeated, shape_of_siblings
from calomel.suggest.drafts.sibling import sibling
from calomel.suggest.drafts.substitution import extraction, substitution
from calomel.suggest.drafts.text import Rows
from calomel.suggest.recall import recall
from calomel.suggest.recent import standing
from calomel.workspace.documents import Document
from calomel.workspace.longest_match import LongestMatch

MAKER: Final = "continuation"
RECALLED: Final = "recalled"
# Three tokens stand everywhere: `self . x`, `( ) :`.
_FEWEST: Final = 5
_LONGEST_CONTINUATION: Final = 160
# Between two texts, so many characters before the cursor.
_FEWEST_CHARACTERS: Final = 12


def continuation(
    matches: LongestMatch, document: Document, offset: int, mask: Callable[[str], str]
) -> tuple[Draft, ...]:
    """The line that neighbours of this block have here, as they would have it with this block's numbers and names.

    Without such neighbours, what follows the longest match of the last tokens before `offset`, up to the end of that
    line. Where the line goes on behind the cursor, what stands elsewhere in the document between the same two texts.
    None for a short match, and none that `mask` finds a secret in.
    """
    end = offset
    text = document.text
    while end < len(text) and text[end] not in "\r\n":
        end += 1
    rest = text[offset:end]
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    draft = _beside(text, offset, offset - start, rest.rstrip())
    if draft is None:
        draft = _between(text, offset) if rest.strip() else _behind(matches, document, offset)
    if draft is None or not draft.text.strip() or len(draft.text) > _LONGEST_CONTINUATION:
        return ()
    line = text[start:offset] + draft.text + rest
    return (draft,) if mask(line) == line else ()


def _beside(text: str, offset: int, column: int, rest: str) -> Draft | None:
    found = expected(text, offset)
    if found is None or (found.votes == 1 and not found.slots) or not found.line.endswith(rest):
        return None
    line = found.line[column : len(found.line) - len(rest)]
    return Draft(line, MAKER) if line.strip() else None


def _behind(matches: LongestMatch, document: Document, offset: int) -> Draft | None:
    found = matches.find(document, offset)
    return None if found is None or found.tokens < _FEWEST else Draft(found.text, MAKER)


def _between(text: str, offset: int) -> Draft | None:
    found = recall(text[:offset], text[offset:])
    if found is None or found.before < _FEWEST_CHARACTERS or "\n" in found.text or "\r" in found.text:
        return None
    return Draft(found.text, RECALLED)


# Each is read by the model once: a few milliseconds.
_MOST_TEXTS: Final = 6
_TOGETHER: Final = 4


@dataclass(frozen=True, slots=True)
class RegionText:
    """A text for the model to judge, and how many of the last edits agree with it."""

    draft: Draft
    support: int


def region_texts(text: str, start: int, end: int, drafts: Iterable[EditDraft]) -> tuple[RegionText, ...]:
    """The texts that `text[start:end]` could become, best first: all that one maker does to it, then each draft alone.

    Args:
        text: the document's.
        start: where the region starts.
        end: where it ends.
        drafts: of the document, best first.
    """
    inside = [
        draft for draft in drafts if start <= draft.start and draft.end <= end and draft.start < max(end, start + 1)
    ]
    found: dict[str, RegionText] = {}
    sets: list[list[EditDraft]] = []
    for draft in inside:
        together = [draft]
        for other in inside:
            if (
                other.maker == draft.maker
                and not (other.alone or draft.alone)
                and len(together) < _TOGETHER
                and all(_apart(other, each) for each in together)
            ):
                together.append(other)
        if len(together) > 1:
            sets.append(together)
        sets.append([draft])
    for chosen in sets:
        new = _applied(text, start, end, chosen)
        if new != text[start:end] and new not in found:
            found[new] = RegionText(Draft(new, chosen[0].maker), min(draft.support for draft in chosen))
        if len(found) >= _MOST_TEXTS:
            break
    return tuple(found.values())


def _apart(one: EditDraft, other: EditDraft) -> bool:
    """Whether both can be done: they do not touch, and do not begin at one place."""
    return one.end < other.start or other.end < one.start


def _applied(text: str, start: int, end: int, chosen: Sequence[EditDraft]) -> str:
    parts: list[str] = []
    at = start
    for draft in sorted(chosen, key=lambda draft: draft.start):
        parts += (text[at : draft.start], draft.text)
        at = draft.end
    return "".join([*parts, text[at:end]])


# How often each was right, alone and with one edit of support, on stories of packages that train the model.
WORTH: Final = {
    "rename": 0.95,
    "by_name": 0.9,
    "awaited": 0.8,
    "extraction": 0.9,
    "imports": 0.65,
    "shape": 0.73,
    "arguments": 0.7,
    "substitution": 0.68,
    "repeated": 0.2,
    "sibling": 0.2,
}
_MOST: Final = 64
_MOST_OF_ONE: Final = 128
# In a longer text only what is near the cursor is looked at.
_LONGEST: Final = 120_000
# Lines around an unfinished edit that its continuation is drafted with.
_AROUND: Final = 120


def drafts(
    text: str, hunks: Sequence[Hunk], cursor: int, path: str | None = None, others: Sequence[str] = ()
) -> tuple[EditDraft, ...]:
    """What would go on with the last edits, best first, one for each text that would result.

    The order: what more edits agree with, what is more alike, what is nearer to the cursor, below before above.

    Args:
        text: the document's.
        hunks: the last edits, newest last, the one that is being made included.
        cursor: offset.
        path: of the document, as hunks name it; None when all hunks are its own.
        others: texts of other files, which may have imports that are missing here.
    """
    hunks = standing(text, hunks, path)
    if not hunks:
        return ()
    low, high = _window(text, cursor)
    part, cursor = text[low:high], cursor - low
    found = [*_unfinished(part, hunks, cursor, path), *_all(part, hunks, cursor, path, others)]
    return tuple(
        replace(draft, start=draft.start + low, end=draft.end + low) for draft in _ordered(part, found, cursor)
    )


def _all(
    text: str,
    hunks: Sequence[Hunk],
    cursor: int,
    path: str | None,
    others: Sequence[str] = (),
    *,
    begun: bool = False,
) -> list[EditDraft]:
    rows = Rows(text)
    seen = evidence(rows, hunks, path)
    row = rows.row(cursor)
    makers: Iterable[Iterable[EditDraft]] = (
        rename(rows, seen),
        relatives(rows, seen),
        arguments(rows, seen),
        without_parameter(rows, seen),
        by_name(rows, seen),
        awaited(rows, seen),
        shape_of_siblings(rows, seen, row),
        substitution(rows, seen),
        sibling(rows, seen),
        repeated(rows, seen, row, begun=begun),
        extraction(rows, seen),
        imports(rows, seen, path, others),
    )
    found = [draft for maker in makers for draft in islice(maker, _MOST_OF_ONE)]
    own = [draft for draft in found if draft.maker == ARGUMENTS]
    local = [each for each in renamings(rows, seen) if each.local is not None]
    return [
        draft
        for draft in found
        if not _undoes(rows, draft, seen)
        and (draft.maker == ARGUMENTS or not strays(rows, seen, draft, own))
        and (draft.maker == RENAME or not leaves_scope(rows, draft, local))
    ]


def _unfinished(text: str, hunks: Sequence[Hunk], cursor: int, path: str | None) -> list[EditDraft]:
    """What the edit being made is on its way to: a draft for the text before it that agrees with what is typed."""
    newest = hunks[-1]
    if len(hunks) < 2 or (path is not None and newest.path != path):  # noqa: PLR2004
        return []
    rows = Rows(text)
    after = [line.rstrip("\r\n") for line in newest.after.splitlines()]
    at = rows.find(after, newest.start_line)
    if at is None or not at <= rows.row(cursor) <= at + len(after):
        return []
    # Evidence is near, and this is one place: the rest of the text would cost as much again.
    low, high = rows.start(max(0, at - _AROUND)), rows.start(min(len(rows), at + len(after) + _AROUND))
    moved = [replace(hunk, start_line=max(0, hunk.start_line - max(0, at - _AROUND))) for hunk in hunks[:-1]]
    start, end = rows.start(at) - low, rows.start(at + len(after)) - low
    text, cursor = text[low:high], cursor - low
    before = text[:start] + newest.before + text[end:]
    old_cursor = min(cursor, start + len(newest.before))
    found = []
    for draft in _all(before, moved, old_cursor, path, begun=True):
        if draft.end < start or draft.start > start + len(newest.before):
            continue
        goal = draft.apply(before)
        if goal[:cursor] != text[:cursor] or goal == text:
            continue
        rest = 0
        most = min(len(goal), len(text)) - cursor
        while rest < most and goal[-1 - rest] == text[-1 - rest]:
            rest += 1
        edit = replace(draft, start=cursor, end=len(text) - rest, text=goal[cursor : len(goal) - rest])
        # It must go on with what is typed, not take it back.
        if len(edit.text) > 0 and edit.end - edit.start <= len(newest.before) + len(newest.after):
            found.append(replace(edit, start=edit.start + low, end=edit.end + low, support=draft.support + 1))
    return found


def _undoes(rows: Rows, draft: EditDraft, seen: Evidence) -> bool:
    """Whether a draft makes a line what it was before, or brings back what was deleted."""
    first, last = rows.row(draft.start), rows.row(draft.end)
    start = rows.start(first)
    whole = rows.text[start : draft.start] + draft.text + rows.text[draft.end : rows.end(last)]
    if any(edit.row is not None and first <= edit.row <= last and edit.old == whole for edit in seen.edits):
        return True
    if draft.start == draft.end:
        return draft.text.strip() in {line.strip() for line in seen.deleted}
    return whole == rows.text[start : rows.end(last)]


def _ordered(text: str, found: Iterable[EditDraft], cursor: int) -> list[EditDraft]:
    best: dict[tuple[int, int, str], EditDraft] = {}
    agreed: dict[tuple[int, int, str], set[str]] = {}
    for draft in found:
        key = _trimmed(text, draft)
        known = best.get(key)
        agreed.setdefault(key, set()).add(draft.maker)
        if known is None or _worth(draft) > _worth(known):
            best[key] = draft
    rows_below = text.count("\n", 0, cursor)

    def order(item: tuple[tuple[int, int, str], EditDraft]) -> tuple[float, bool, int]:
        key, draft = item
        distance = text.count("\n", 0, draft.start) - rows_below
        return -_worth(draft) - 0.1 * (len(agreed[key]) - 1), distance < 0, abs(distance)

    return [draft for _, draft in sorted(best.items(), key=order)][:_MOST]


def _worth(draft: EditDraft) -> float:
    """Between the worth of its maker and 1, the nearer to 1 the more edits agree."""
    return (1 - (1 - WORTH.get(draft.maker, 0.5)) / draft.support) * draft.likeness


def _trimmed(text: str, draft: EditDraft) -> tuple[int, int, str]:
    """The same edit without what its old and its new text share."""
    start, end, new = draft.start, draft.end, draft.text
    old = text[start:end]
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    old, new = old[front:], new[front:]
    back = 0
    while back < min(len(old), len(new)) and old[-1 - back] == new[-1 - back]:
        back += 1
    return start + front, end - back, new[: len(new) - back]


def _window(text: str, cursor: int) -> tuple[int, int]:
    """The whole lines around the cursor that are looked at."""
    if len(text) <= _LONGEST:
        return 0, len(text)
    low = max(0, cursor - _LONGEST // 2)
    high = min(len(text), cursor + _LONGEST // 2)
    low = text.find("\n", low) + 1 if low else 0
    end = text.rfind("\n", cursor, high)
    return low, high if end < 0 else end + 1
