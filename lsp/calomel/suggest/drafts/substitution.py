"""Drafts that repeat the replacements of the last edits elsewhere.

Between the same neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from calomel.code.bindings import mentions
from calomel.code.budget import check
from calomel.code.lines import Rows
from calomel.code.tokens import changes, is_distinctive, is_name, tokens
from calomel.prompts.parts import common_prefix
from calomel.suggest.drafts.evidence import EditDraft, Evidence
from calomel.suggest.drafts.rename import Renaming

MAKER: Final = "substitution"
# Tokens on either side that are compared.
_CONTEXT: Final = 4
# Neighbours that must be the same for a text that is not distinctive.
_NEIGHBOURS: Final = 3
_PLACES: Final = 48


@dataclass(frozen=True, slots=True)
class Substitution:
    """`removed` became `inserted` between these neighbours, which exclude blanks.

    Attributes:
        removed, inserted: the texts; either may be empty.
        left: tokens before it, nearest first.
        right: tokens after it, nearest first.
        support: number of edits that did the same.
    """

    removed: str
    inserted: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    support: int = 1


def substitution(rows: Rows, seen: Evidence, renames: Sequence[Renaming]) -> Iterator[EditDraft]:
    """Drafts that repeat what was replaced, inserted into a line or deleted from it; not what is a rename."""
    known = substitutions(seen)
    taken_back = {(each.inserted, each.removed) for each in known}
    edited = {edit.row for edit in seen.edits}
    renamed = {(each.old, each.new) for each in renames}
    for each in known:
        if (each.removed, each.inserted) in taken_back | renamed or _is_variable(rows, each):
            continue
        found = _replaced(rows, each) if each.removed else _inserted(rows, each, edited)
        for start, end, likeness in islice(found, _PLACES):
            yield EditDraft(start, end, each.inserted, MAKER, each.support, likeness)


def _is_variable(rows: Rows, change: Substitution) -> bool:
    """Whether one word replaced another one that this file declares: elsewhere it may be another's, or meant."""
    old, new = change.removed.strip(), change.inserted.strip()
    if not is_name(old) or len(tokens(new)) != 1:
        return False
    return any(each.binding is not None for each in mentions(rows, old) or ())


def substitutions(seen: Evidence) -> list[Substitution]:
    """The substitutions of the last edits, newest first."""
    found: dict[tuple[str, str], Substitution] = {}
    for edit in seen.telling():
        old, new = tokens(edit.old), tokens(edit.new)
        texts = [token.text for token in old]
        ops = changes(old, new)
        for op in ops:
            removed, inserted = "".join(texts[op.first : op.last]), "".join(op.inserted)
            if removed.split() == inserted.split():
                continue
            # One of several changes of a line means little alone, unless it replaces something distinctive.
            if len(ops) > 1 and not (is_distinctive(removed) and inserted.strip()):
                continue
            left, right = _neighbours(texts, op.first, op.last)
            # An item comes and goes in lists of the same name alone, see `arguments`.
            if not (removed.strip() and inserted.strip()) and _is_item(removed + inserted, left, right):
                continue
            key = removed.strip(), inserted.strip()
            known = found.get(key)
            if known is None:
                found[key] = Substitution(removed, inserted, left, right)
            else:
                # Only the neighbours that both edits have in common matter.
                left = left[: common_prefix(known.left, left)]
                right = right[: common_prefix(known.right, right)]
                found[key] = replace(known, left=left, right=right, support=known.support + 1)
    return list(found.values())


def _neighbours(texts: Sequence[str], first: int, last: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens before and after a range, nearest first."""
    left = [text for text in reversed(texts[:first]) if not text.isspace()]
    return tuple(left[:_CONTEXT]), tuple([text for text in texts[last:] if not text.isspace()][:_CONTEXT])


def _is_item(inserted: str, left: Sequence[str], right: Sequence[str]) -> bool:
    new = inserted.strip()
    alone = left[:1] in {("(",), ("[",), ("{",)} and right[:1] in {(")",), ("]",), ("}",)}
    return new.startswith(",") or new.endswith(",") or alone


_Place = tuple[int, int, float]


def _replaced(rows: Rows, wanted: Substitution) -> Iterator[_Place]:
    target = [token.text for token in tokens(wanted.removed)]
    # Replacing a name by another is a rename, or only right between these neighbours.
    renames = is_name(wanted.removed) and is_name(wanted.inserted)
    distinctive = is_distinctive(wanted.removed) and bool(wanted.inserted) and not renames
    for row in dict.fromkeys(rows.row(match.start()) for match in re.finditer(re.escape(wanted.removed), rows.text)):
        check()
        line, start = tokens(rows.lines[row]), rows.start(row)
        texts = [token.text for token in line]
        for first in range(len(line) - len(target) + 1):
            last = first + len(target)
            if texts[first:last] != target:
                continue
            left, right = _agreement(texts, first, last, wanted)
            if not distinctive and not _enough(left, right, wanted):
                continue
            # Not where it is done already: `foo` in `old.foo` if `foo` became `old.foo`.
            if not _stands(rows.lines[row], line[first].start, wanted) and not _defines(texts[:first], wanted.inserted):
                yield start + line[first].start, start + line[last - 1].end, _likeness(left, right, wanted)


def _inserted(rows: Rows, wanted: Substitution, edited: set[int | None]) -> Iterator[_Place]:
    """The places of an insertion, which can only be found by its neighbours."""
    near = [token for token in (*wanted.left[:2], *wanted.right[:2]) if is_name(token)]
    for row, text in enumerate(rows.lines):
        if row in edited or not any(name in text for name in near):
            continue
        check()
        line = tokens(text)
        texts = [token.text for token in line]
        for first in range(len(line) + 1):
            if first < len(line) and texts[first].isspace() and not wanted.inserted[:1].isspace():
                continue
            left, right = _agreement(texts, first, first, wanted)
            at = line[first].start if first < len(line) else len(text)
            # Brackets and commas are everywhere: at least one of the same neighbours must be a name.
            named = any(is_name(token) for token in (*wanted.left[:left], *wanted.right[:right]))
            if named and _enough(left, right, wanted) and not _stands(text, at, wanted):
                yield rows.start(row) + at, rows.start(row) + at, _likeness(left, right, wanted)
                break


def _defines(before: Sequence[str], name: str) -> bool:
    """Whether a line defines the new name: there, the old text must stay."""
    return is_name(name) and name in before and any(token in {"=", ":="} for token in before)


def _stands(line: str, at: int, wanted: Substitution) -> bool:
    """Whether the new text is there already, around or next to `at`."""
    new = wanted.inserted.strip()
    if not new:
        return False
    shift = wanted.inserted.find(wanted.removed.strip()) if wanted.removed.strip() else -1
    if shift >= 0 and line[max(0, at - shift) :].startswith(wanted.inserted):
        return True
    if wanted.removed:
        return False
    return line[at:].lstrip().startswith(new) or line[:at].rstrip().endswith(new)


def _agreement(texts: list[str], first: int, last: int, wanted: Substitution) -> tuple[int, int]:
    left, right = _neighbours(texts, first, last)
    return common_prefix(left, wanted.left), common_prefix(right, wanted.right)


def _enough(left: int, right: int, wanted: Substitution) -> bool:
    """Whether enough neighbours are the same; the end of a line counts as one, too."""
    need = min(_NEIGHBOURS, len(wanted.left) + len(wanted.right))
    if wanted.support > 1:
        return left >= min(1, len(wanted.left)) and right >= min(1, len(wanted.right)) and left + right >= min(2, need)
    return left + right >= need and (left > 0 or not wanted.left) and (right > 0 or not wanted.right)


def _likeness(left: int, right: int, wanted: Substitution) -> float:
    whole = len(wanted.left) + len(wanted.right)
    return 0.3 + 0.7 * (left + right) / whole if whole else 0.5
