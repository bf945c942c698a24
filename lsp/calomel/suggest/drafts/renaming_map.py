"""Names of one place as they are called at another: what differs between two lines of one shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from calomel.suggest.drafts.tokens import Token, is_literal, is_name, parts, tokens

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
