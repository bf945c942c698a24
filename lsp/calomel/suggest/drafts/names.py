"""Names that are made as a renamed one: the same words in another spelling, and a word that was replaced twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from calomel.suggest.drafts.evidence import EditDraft, Evidence
from calomel.suggest.drafts.rename import MAKER, Renaming, is_quoted, renamings
from calomel.suggest.drafts.text import (
    Rows,
    Token,
    begins_function,
    function_rows,
    indent_of,
    is_literal,
    is_name,
    parts,
    tokens,
)

_EQUAL: Final = 2.0
_NAME, _LITERAL, _BLANK = 1, 2, 3
# Of two kinds of tokens; what is not here stands for itself alone.
_WORTH: Final = {
    (_NAME, _NAME): 0.7,
    (_LITERAL, _LITERAL): 0.7,
    (_BLANK, _BLANK): 0.7,
    (_NAME, _LITERAL): 0.2,
    (_LITERAL, _NAME): 0.2,
}
_GAP: Final = -0.4
# Longer lines are aligned at their beginning alone: the table is quadratic.
_LONGEST: Final = 60


@lru_cache(maxsize=4096)
def aligned(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[int | None, ...]:
    """For each token of `one` the place of its counterpart in `other`; names, numbers and strings may stand for others.

    Needleman and Wunsch's alignment. From one keystroke to the next the same lines are compared.
    """
    places: list[int | None] = [None] * len(one)
    front = 0
    while front < min(len(one), len(other)) and one[front] == other[front]:
        places[front] = front
        front += 1
    back = 0
    while back < min(len(one), len(other)) - front and one[-1 - back] == other[-1 - back]:
        back += 1
        places[-back] = len(other) - back
    middle = one[front : len(one) - back][:_LONGEST], other[front : len(other) - back][:_LONGEST]
    for at, place in _table(*middle):
        places[front + at] = front + place
    return tuple(places)


def _table(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int]]:
    rows, columns = len(one), len(other)
    kinds, other_kinds = [_kind(text) for text in one], [_kind(text) for text in other]
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    worths: list[list[float]] = []
    for row in range(rows):
        best[row][columns] = (rows - row) * _GAP
        a, kind = one[row], kinds[row]
        pairs = zip(other, other_kinds, strict=True)
        worths.append([_EQUAL if a == b else _WORTH.get((kind, like), 0.0) for b, like in pairs])
    for column in range(columns):
        best[rows][column] = (columns - column) * _GAP
    for row in range(rows - 1, -1, -1):
        here, below, worth = best[row], best[row + 1], worths[row]
        for column in range(columns - 1, -1, -1):
            skip = max(below[column], here[column + 1]) + _GAP
            both = below[column + 1] + worth[column] if worth[column] else skip
            here[column] = max(both, skip)
    row = column = 0
    while row < rows and column < columns:
        worth_here = worths[row][column]
        if worth_here and best[row][column] == best[row + 1][column + 1] + worth_here:
            yield row, column
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column] + _GAP:
            row += 1
        else:
            column += 1


def _kind(text: str) -> int:
    """0 for what stands for itself alone, else what it may stand for: a name, a literal, blanks."""
    return _NAME if is_name(text) else _LITERAL if is_literal(text) else _BLANK if text.isspace() else 0


def differing_names(old: str, new: str) -> dict[str, str] | None:
    """What is called otherwise in `new`, a line of the shape of `old`; None when they have not one shape.

    A name that is called two things is called nothing.
    """
    one, other = token_texts(tokens(old.strip())), token_texts(tokens(new.strip()))
    places = aligned(one, other)
    found: dict[str, str] = {}
    ambiguous: set[str] = set()
    missing = 0
    for at, place in enumerate(places):
        if place is None:
            missing += not one[at].isspace()
            continue
        a, b = one[at], other[place]
        if (is_name(a) or is_literal(a)) and found.setdefault(a, b) != b:
            ambiguous.add(a)
    extra = len(other) - sum(place is not None for place in places)
    if missing + extra > max(1, len(one) // 4):
        return None
    return {a: b for a, b in found.items() if a != b and a not in ambiguous}


def renamed(texts: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Tokens with their names as the other place calls them, also where these are parts of longer names."""
    pieces = {old: new for old, new in names.items() if is_name(old) and is_name(new)}
    return tuple(_renamed(text, names, pieces) for text in texts)


def renamed_line(line: str, names: Mapping[str, str]) -> str:
    """The same for a whole line."""
    return "".join(renamed([token.text for token in tokens(line)], names))


def _renamed(text: str, names: Mapping[str, str], pieces: Mapping[str, str]) -> str:
    if text in names:
        return names[text]
    if is_literal(text) and len(text) > 1:
        inner = text[1:-1]
        return text[0] + pieces[inner] + text[-1] if inner in pieces else _inside(text, pieces)
    return _inside(text, pieces) if is_name(text) else text


def _inside(text: str, pieces: Mapping[str, str]) -> str:
    for old, new in pieces.items():
        one, other = parts(old), parts(new)
        if not one or not other:
            continue
        for a, b in (
            (old, new),
            ("_".join(one), "_".join(other)),
            ("".join(map(str.capitalize, one)), "".join(map(str.capitalize, other))),
            ("_".join(one).upper(), "_".join(other).upper()),
        ):
            at = text.find(a)
            if len(a) > 1 and at >= 0 and _bounded(text, at, at + len(a)):
                return text[:at] + b + text[at + len(a) :]
    return text


def _bounded(text: str, start: int, end: int) -> bool:
    """Whether a part of a name is a whole word of it: `user` in `user_name` and `User` in `getUser`."""
    before, first = text[start - 1 : start], text[start : start + 1]
    last, after = text[end - 1 : end], text[end : end + 1]
    begins = not before.isalnum() or (before.islower() and first.isupper())
    return begins and (not after.isalnum() or (last.islower() and after.isupper()))


def token_texts(line: Sequence[Token]) -> tuple[str, ...]:
    """Their texts."""
    return tuple(token.text for token in line)


_CLASS: Final = re.compile(
    r"\s*(?:(?:export|default|abstract|pub)\s+)*(?:class|impl(?:<[^>]*>)?(?:\s+\w+\s+for)?)\s+(\w+)"
)
_METHOD: Final = re.compile(r"\s*func\s*\(\s*\w*\s*\*?(\w+)[^)]*\)")
_NAMES: Final = re.compile(r"\b(?:def|class|fn|func|function)\s+$")
_RECEIVER: Final = re.compile(r"([\w$]*)(?:\([^()]*\))?\??(?:\.|->)\s*$")
_OWN: Final = frozenset({"self", "this", "cls"})
# What a value is made of that is no instance of a class with another name: a literal, or a call of a known type.
_OTHER: Final = re.compile(r"[\[{(\"'`\d]|(?:set|list|dict|tuple|str|frozenset)\(|(?:new\s+)?[A-Z]\w*\(")


def in_scope(rows: Rows, row: int, name: str) -> bool:
    """Whether a name stands for something in a line: in a function around it, or at the top of the file."""
    around: list[range] = []
    function = function_rows(rows, row)
    while function is not None:
        around.append(function)
        width = len(indent_of(rows.lines[function.start]))
        outer = _outer(rows, function.start, width)
        function = None if outer is None else function_rows(rows, outer)
    for match in re.finditer(rf"(?<![\w$.]){re.escape(name)}(?![\w$]|\s*=(?!=)[^\n]*\()", rows.text):
        at = rows.row(match.start())
        line = rows.lines[at]
        if at == row:
            continue
        if any(at in each for each in around):
            return True
        if not indent_of(line) and (
            not begins_function(rows, at) or _NAMES.search(line[: match.start() - rows.start(at)])
        ):
            return True
    return False


def receiver_of(text: str, at: int) -> str | None:
    """What stands before the dot before a name: `cart` of `cart.add`; None without a dot."""
    match = _RECEIVER.search(text[text.rfind("\n", 0, at) + 1 : at])
    return None if match is None else match.group(1)


def owner_of(rows: Rows, row: int) -> str | None:
    """The class or type that a definition in a line belongs to; None outside of every one."""
    method = _METHOD.match(rows.lines[row])
    if method is not None:
        return method.group(1)
    at: int | None = row
    while at is not None:
        match = _CLASS.match(rows.lines[at])
        if match is not None and at != row:
            return match.group(1)
        at = _outer(rows, at, len(indent_of(rows.lines[at])))
    return None


def may_be(rows: Rows, at: int, owner: str | None) -> bool:
    """Whether what is called at an offset may be that of `owner`: a method of this class, or a function of none."""
    receiver = receiver_of(rows.text, at)
    if owner is None or receiver is None:
        return owner is None and receiver is None
    if receiver in _OWN:
        return owner_of(rows, rows.row(at)) == owner
    bound = rf"(?<![\w$]){re.escape(receiver)}\s*(?::[^=\n]*)?:?=(?!=)\s*(\S[^\n]*)"
    values = [match.group(1) for match in re.finditer(bound, rows.text)] if receiver else []
    return not values or not all(_OTHER.match(value) and owner not in value for value in values)


def _outer(rows: Rows, row: int, width: int) -> int | None:
    """The nearest line above with less indentation."""
    for above in range(row - 1, -1, -1):
        line = rows.lines[above]
        if line.strip() and len(indent_of(line)) < width:
            return above
    return None


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
