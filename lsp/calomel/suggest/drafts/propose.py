"""All drafts for one moment, best first: what would continue the last edits, and the line at the cursor.

`drafts` runs the makers, drops what undoes an edit or leaves its scope, and sorts by how many edits agree.
`region_texts` are the texts that drafts make of one region, for the model to judge. `continuation` drafts the rest of a
line.
"""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from calomel.code.budget import check
from calomel.code.lines import Rows
from calomel.code.names import Names, names_of
from calomel.code.scopes import around
from calomel.infer.completer import Draft
from calomel.infer.recall import recall
from calomel.prompts.parts import Hunk, common_suffix, line_feeds
from calomel.selectivity.analogy import expected
from calomel.suggest.drafts.arguments import MAKER as ARGUMENTS
from calomel.suggest.drafts.arguments import arguments, awaited, list_edits, strays
from calomel.suggest.drafts.evidence import EditDraft, Evidence, evidence
from calomel.suggest.drafts.rename import MAKER as RENAME
from calomel.suggest.drafts.rename import Renaming, declares, is_pure, rename, renamed_words, renamings
from calomel.suggest.drafts.substitution import substitution
from calomel.suggest.drafts.template import MAKER as TEMPLATE
from calomel.suggest.drafts.template import template
from calomel.suggest.recent import standing
from calomel.suggest.signals import DraftSignals
from calomel.workspace.candidates import imports_in, resolve
from calomel.workspace.documents import Document
from calomel.workspace.edits import Planned, TextEdit, apply, trimmed
from calomel.workspace.longest_match import LongestMatch
from calomel.workspace.segment import family_of

MAKER: Final = "continuation"
RECALLED: Final = "recalled"
_LONGEST_CONTINUATION: Final = 160
# Matching characters before the cursor for a text found between the same neighbours.
_FEWEST_CHARACTERS: Final = 12


def continuation(matches: LongestMatch, document: Document, offset: int) -> tuple[Draft, ...]:
    """The line that neighbouring blocks have here, adapted to this block's numbers and names.

    Without such neighbours, what follows the longest match of the last tokens before `offset`, up to the end of that
    line. If the line continues after the cursor, what is elsewhere in the document between the same two texts. None for
    a short match.
    """
    text, row = document.text, document.line_of(offset)
    rest = document.line(row)[offset - document.line_start(row) :].rstrip("\r\n")
    draft = _beside(text, offset, offset - document.line_start(row), rest.rstrip())
    if draft is None:
        draft = _between(text, offset) if rest.strip() else _behind(matches, document, offset)
    if draft is None or not draft.text.strip() or len(draft.text) > _LONGEST_CONTINUATION:
        return ()
    return (draft,)


def _beside(text: str, offset: int, column: int, rest: str) -> Draft | None:
    found = expected(text, offset)
    if found is None or (found.votes == 1 and not found.slots) or not found.line.endswith(rest):
        return None
    line = found.line[column : len(found.line) - len(rest)]
    return Draft(line, MAKER) if line.strip() else None


def _behind(matches: LongestMatch, document: Document, offset: int) -> Draft | None:
    found = matches.find(document, offset)
    return None if found is None else Draft(found.text, MAKER)


def _between(text: str, offset: int) -> Draft | None:
    found = recall(text[:offset], text[offset:])
    if found is None or found.before < _FEWEST_CHARACTERS or "\n" in found.text or "\r" in found.text:
        return None
    return Draft(found.text, RECALLED)


# The model reads each once, in a few milliseconds.
_MOST_TEXTS: Final = 6
_TOGETHER: Final = 4


def region_texts(text: str, start: int, end: int, drafts: Sequence[EditDraft]) -> dict[Draft, DraftSignals]:
    r"""The texts that `text[start:end]` could become, best first: with all drafts of a maker, then with each alone.

    Args:
        text: the document's.
        start: where the region starts.
        end: where it ends.
        drafts: of the document, best first.

    Returns them with \n for line ends, and the least support and likeness of the drafts that make each.
    """
    counts = Counter(draft.maker for draft in drafts)
    inside = [
        draft for draft in drafts if start <= draft.start and draft.end <= end and draft.start < max(end, start + 1)
    ]
    found: dict[str, tuple[Draft, DraftSignals]] = {}
    for draft in inside:
        together = [draft]
        for other in inside:
            alike = other.maker == draft.maker and not (other.alone or draft.alone)
            if alike and len(together) < _TOGETHER and all(_apart(other, each) for each in together):
                together.append(other)
        for chosen in [together, [draft]] if together[1:] else [[draft]]:
            edits = sorted(TextEdit(each.start - start, each.end - start, each.text) for each in chosen)
            new = apply(text[start:end], edits)
            if new != text[start:end]:
                support, likeness = min(each.support for each in chosen), min(each.likeness for each in chosen)
                signals = DraftSignals(support, likeness, counts[draft.maker])
                found.setdefault(new, (Draft(line_feeds(new), draft.maker), signals))
    return dict(islice(found.values(), _MOST_TEXTS))


def _apart(one: EditDraft, other: EditDraft) -> bool:
    """Whether both drafts can be applied: they neither touch nor start at the same place."""
    return one.end < other.start or other.end < one.start


# How often each maker was right, alone and with one edit of support, on edit histories of the training packages.
WORTH: Final = {
    "rename": 0.95,
    "awaited": 0.8,
    "arguments": 0.7,
    "substitution": 0.68,
    "template": 0.75,
}
_MOST: Final = 64
_MOST_OF_ONE: Final = 128
# Edits of another file that agree, for anything but a rename to be continued.
_ENOUGH: Final = 3
# Languages whose files see the names of all files in their folder.
_BY_FOLDER: Final = frozenset({"go", "java", "kt", "kts", "c_sharp", "swift"})
# In a longer text, only what is near the cursor is considered.
_LONGEST: Final = 120_000


def drafts(
    text: str,
    hunks: Sequence[Hunk],
    cursor: int,
    path: str | None = None,
    names: Names | None = None,
) -> tuple[EditDraft, ...]:
    """What would continue the last edits, best first, one draft per resulting text.

    The order: more edits agree, more alike, nearer to the cursor, below before above.

    Args:
        text: the document's.
        hunks: the last edits, newest last, including the one in progress.
        cursor: offset.
        path: of the document, as in hunks; None when all hunks are its own.
        names: of the document's language; None to go by its path.
    """
    hunks = [each for each in standing(text, hunks, path) if path is None or sees(text, path, each.path)]
    if not hunks:
        return ()
    low, high = _window(text, cursor)
    part, cursor = text[low:high], cursor - low
    names = names or names_of(None, path)
    found = [*_unfinished(part, hunks, cursor, path, names), *_all(part, hunks, path, names)]
    return tuple(_moved(draft, low) for draft in _ordered(part, found, cursor))


def _moved(draft: EditDraft, by: int) -> EditDraft:
    return replace(draft, start=draft.start + by, end=draft.end + by)


def _all(text: str, hunks: Sequence[Hunk], path: str | None, names: Names) -> list[EditDraft]:
    rows = Rows(text, names)
    seen = evidence(rows, hunks, path)
    renames = renamings(rows, seen)
    found = list(islice(rename(rows, renames), _MOST_OF_ONE))
    renames = [each for each in renames if each.is_known]
    here = [hunk for hunk in hunks if path is None or hunk.path == path]
    if len(here) == len(hunks):
        found += _others(rows, seen, renames)
    else:
        found += _others(rows, evidence(rows, here, path), renames)
        found += [draft for draft in _others(rows, seen, renames) if draft.support >= _ENOUGH]
    renamed = _elsewhere_renamed(rows, renames)
    was = {edit.row: edit.old for edit in seen.edits if edit.row is not None}
    deleted = {line.strip() for line in seen.deleted}
    formed = [draft for draft in found if draft.maker == TEMPLATE]
    followed = {draft.changed(rows) for draft in found if draft.maker == ARGUMENTS}

    edited = [edit.row for edit in seen.edits if edit.row is not None]
    homes = {around(rows, each) for each in edited} if all(declares(rows, each) for each in edited) else set()

    def elsewhere(draft: EditDraft) -> bool:
        """Whether it does to a key or a field what was done only to those of one other structure."""
        check()
        row = rows.row(draft.start)
        return len(homes) == 1 and draft.maker != RENAME and declares(rows, row) and around(rows, row) not in homes

    def fits(draft: EditDraft) -> bool:
        check()
        first, last = rows.row(draft.start), rows.row(draft.end)
        at, line, new = draft.changed(rows)
        if new == line or new in {was.get(each) for each in range(first, last + 1)}:
            return False  # it restores a line as it was before an edit
        if draft.start == draft.end and draft.text.strip() in deleted:
            return False
        if draft.maker == RENAME and any(each.start <= draft.start and draft.end <= each.end for each in formed):
            return False  # more than the name changes there
        if first != last:
            return True
        # It gives a list what only lists of another name get, or changes a name that means something else here.
        if draft.maker != ARGUMENTS and (at, line, new) not in followed and strays(rows, seen, line, new):
            return False
        return draft.maker == RENAME or renamed.get(first, renamed[None]).isdisjoint(renamed_words(line, new, names))

    return [draft for draft in found if fits(draft) and not elsewhere(draft)]


def _others(rows: Rows, seen: Evidence, renames: Sequence[Renaming]) -> list[EditDraft]:
    """The drafts of all makers but that of renames, whose edits tell the others nothing."""
    seen = replace(seen, edits=tuple(edit for edit in seen.edits if not is_pure(edit, renames, rows.names)))
    makers = [arguments(rows, seen), awaited(rows, seen)]
    # What becomes of a function's parameters is nothing that other lists repeat.
    bare = [edit for edit in seen.edits if not any(each.defines for each in list_edits(edit.old, edit.new))]
    seen = replace(seen, edits=tuple(bare))
    makers += [template(rows, seen), substitution(rows, seen, renames)]
    return [draft for maker in makers for draft in islice(maker, _MOST_OF_ONE)]


def sees(text: str, path: str, other: str) -> bool:
    """Whether a file is another one, or can see its names: it imports it, or both are in a folder that shares names."""
    if path == other:
        return True
    kind = family_of(path)
    if kind != family_of(other):
        return False
    if kind in _BY_FOLDER and posixpath.dirname(path) == posixpath.dirname(other):
        return True
    there = posixpath.join("/", other)
    named = {posixpath.basename(there): (there,)}
    here = posixpath.join("/", path)
    return any(resolve(each, here, lambda name: named.get(name, ())) for each in imports_in(text, kind))


def _elsewhere_renamed(rows: Rows, renames: Sequence[Renaming]) -> dict[int | None, set[tuple[str, str]]]:
    """The renames that do not concern a line, by lines that some concern; None for all others."""
    pairs = {(each.old, each.new): {rows.row(place.start) for place in each.places} for each in renames}
    concerned = set().union(*pairs.values())
    return {row: {pair for pair, own in pairs.items() if row not in own} for row in (None, *concerned)}


def _unfinished(text: str, hunks: Sequence[Hunk], cursor: int, path: str | None, names: Names) -> list[EditDraft]:
    """The rest of the edit in progress: drafts for the text before it that agree with what is typed."""
    newest = hunks[-1]
    if len(hunks) < 2 or (path is not None and newest.path != path):  # noqa: PLR2004
        return []
    rows = Rows(text, names)
    after = [line.rstrip("\r\n") for line in newest.after.splitlines()]
    at = rows.find(after, newest.start_line)
    if at is None or not at <= rows.row(cursor) <= at + len(after):
        return []
    start, end = rows.start(at), rows.start(at + len(after))
    before = text[:start] + newest.before + text[end:]
    found = []
    for draft in _all(before, hunks[:-1], path, names):
        goal = draft.apply(before)
        touches = draft.end >= start and draft.start <= start + len(newest.before)
        if draft.alone or not touches or goal[:cursor] != text[:cursor] or goal == text:
            continue
        rest = common_suffix(goal[cursor:], text[cursor:])
        edit = replace(draft, start=cursor, end=len(text) - rest, text=goal[cursor : len(goal) - rest])
        # It must continue what is typed, not undo it.
        if edit.text and edit.end - edit.start <= len(newest.before) + len(newest.after):
            found.append(replace(edit, support=draft.support + 1))
    return found


def _ordered(text: str, found: Iterable[EditDraft], cursor: int) -> list[EditDraft]:
    same: defaultdict[Planned, list[EditDraft]] = defaultdict(list)
    for draft in found:
        same[trimmed(Planned(draft.start, draft.end, draft.text, text[draft.start : draft.end]))].append(draft)
    rows_below = text.count("\n", 0, cursor)

    def order(agreeing: list[EditDraft]) -> tuple[float, bool, int]:
        best = max(agreeing, key=_worth)
        distance = text.count("\n", 0, best.start) - rows_below
        agreed = len({draft.maker for draft in agreeing}) - 1
        return -_worth(best) - 0.1 * agreed, distance < 0, abs(distance)

    return [max(agreeing, key=_worth) for agreeing in sorted(same.values(), key=order)][:_MOST]


def _worth(draft: EditDraft) -> float:
    """From the worth of its maker towards 1 with more support, times likeness."""
    return (1 - (1 - WORTH.get(draft.maker, 0.5)) / draft.support) * draft.likeness


def _window(text: str, cursor: int) -> tuple[int, int]:
    """The range of whole lines around the cursor to consider."""
    if len(text) <= _LONGEST:
        return 0, len(text)
    low = max(0, cursor - _LONGEST // 2)
    high = min(len(text), cursor + _LONGEST // 2)
    low = text.find("\n", low) + 1 if low else 0
    end = text.rfind("\n", cursor, high)
    return low, high if end < 0 else end + 1
