"""Names of one place as they are called at another: what differs between two lines of one shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from calomel.suggest.drafts.tokens import Token, is_literal, is_name, parts, tokens

_EQUAL: Final = 2.0
_SAME_KIND: Final = 0.7
_OTHER_KIND: Final = 0.2
_GAP: Final = -0.4
# Longer lines are aligned at their beginning alone: the table is quadratic.
_LONGEST: Final = 60


def aligned(one: Sequence[str], other: Sequence[str]) -> list[int | None]:
    """For each token of `one` the place of its counterpart in `other`; names, numbers and strings may stand for others.

    Needleman and Wunsch's alignment.
    """
    one, other = one[:_LONGEST], other[:_LONGEST]
    rows, columns = len(one), len(other)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        best[row][columns] = best[row + 1][columns] + _GAP
    for column in range(columns - 1, -1, -1):
        best[rows][column] = best[rows][column + 1] + _GAP
    for row in range(rows - 1, -1, -1):
        here, below, a = best[row], best[row + 1], one[row]
        for column in range(columns - 1, -1, -1):
            skip = max(below[column], here[column + 1]) + _GAP
            worth = _worth(a, other[column])
            here[column] = max(skip, below[column + 1] + worth) if worth else skip
    places: list[int | None] = [None] * rows
    row = column = 0
    while row < rows and column < columns:
        worth = _worth(one[row], other[column])
        if worth and best[row][column] == best[row + 1][column + 1] + worth:
            places[row] = column
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column] + _GAP:
            row += 1
        else:
            column += 1
    return places


def _worth(one: str, other: str) -> float:
    if one == other:
        return _EQUAL
    if one.isspace() and other.isspace():
        return 1.0
    kinds = (is_name(one), is_literal(one)), (is_name(other), is_literal(other))
    if kinds[0] == (False, False) or kinds[1] == (False, False):
        return 0.0
    return _SAME_KIND if kinds[0] == kinds[1] else _OTHER_KIND


def differing_names(old: str, new: str) -> dict[str, str] | None:
    """What is called otherwise in `new`, a line of the shape of `old`; None when they have not one shape.

    A name that is called two things is called nothing.
    """
    one, other = [token.text for token in tokens(old.strip())], [token.text for token in tokens(new.strip())]
    places = aligned(one, other)
    found: dict[str, str] = {}
    ambiguous: set[str] = set()
    missing = 0
    for at, place in enumerate(places):
        if place is None:
            missing += not one[at].isspace()
            continue
        a, b = one[at], other[place]
        if is_name(a) or is_literal(a):
            if found.setdefault(a, b) != b:
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


def token_texts(line: Sequence[Token]) -> list[str]:
    """Their texts."""
    return [token.text for token in line]
