"""Names that are made as a renamed one: the same words in another spelling, and a word that was replaced twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from calomel.suggest.drafts.draft import EditDraft
from calomel.suggest.drafts.evidence import Evidence
from calomel.suggest.drafts.rename import MAKER, Renaming, is_quoted, renamings
from calomel.suggest.drafts.rows import Rows
from calomel.suggest.drafts.tokens import is_name, parts

_LIKENESS = 0.5


def relatives(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for `OldName` and `OLD_NAME` where `old_name` was renamed, and for other names with the word."""
    found = renamings(rows, seen)
    names = _spelled_otherwise(found)
    replaced = _replaced_words(found)
    for name in {match.group() for match in re.finditer(r"[^\W\d]\w*", rows.text)} if replaced else ():
        pieces = parts(name)
        for (old, new), count in replaced.items():
            if len(pieces) > 1 and old in pieces and name not in names and is_name(name):
                names[name] = _respelled(name, old, new), count
    for old, (new, support) in names.items():
        for match in re.finditer(rf"(?<![\w$]){re.escape(old)}(?![\w$])", rows.text):
            row = rows.row(match.start())
            alone = is_quoted(rows.lines[row], match.start() - rows.start(row))
            yield EditDraft(match.start(), match.end(), new, MAKER, support, _LIKENESS, alone=alone)


def _spelled_otherwise(found: Sequence[Renaming]) -> dict[str, tuple[str, int]]:
    names: dict[str, tuple[str, int]] = {}
    for each in found:
        one, other = parts(each.old), parts(each.new)
        if len(one) > 1 and each.local is None:
            for old, new in zip(_spellings(one), _spellings(other), strict=True):
                if old != each.old:
                    names.setdefault(old, (new, each.support))
    return names


def _replaced_words(found: Sequence[Renaming]) -> dict[tuple[str, str], int]:
    """Words that took the place of others in two names or more."""
    replaced: Counter[tuple[str, str]] = Counter()
    for each in found:
        one, other = parts(each.old), parts(each.new)
        differing = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
        if len(one) == len(other) > 1 and len(differing) == 1:
            replaced[differing[0]] += 1
    return {pair: count for pair, count in replaced.items() if count > 1}


def _spellings(pieces: list[str]) -> tuple[str, str, str, str]:
    upper = "".join(piece.capitalize() for piece in pieces)
    return "_".join(pieces), pieces[0] + upper[len(pieces[0]) :], upper, "_".join(pieces).upper()


def _respelled(name: str, old: str, new: str) -> str:
    for one, other in ((old, new), (old.capitalize(), new.capitalize()), (old.upper(), new.upper())):
        if one in name:
            return name.replace(one, other, 1)
    return name
