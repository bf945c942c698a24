"""Filters of what a suggestion says twice: what stands behind it, below it, above it, or in itself."""

from __future__ import annotations

import re
from typing import Final

from rapidfuzz.distance import Levenshtein

from calomel.selectivity.proposal import (
    LINE_END,
    Proposal,
    above,
    below,
    filled,
    head_of,
    is_word,
    rest_of,
    split_lines,
)

# Values that fill tables and default arguments.
_LITERAL: Final = re.compile(
    r"\b(?:0[xX][\da-fA-F_]+|\d[\w.]*|None|True|False|null|nil|true|false|undefined|NaN|nan|inf)\b"
)
# What the user wrote of a line is meant; only the rest of it is the suggestion's. Fewer letters may well stand twice:
# `a, a`.
_LEAST_WRITTEN: Final = 3
# Lines that may stand twice: a bracket, `pass`, `else:`.
_LEAST_IN_LINES: Final = 5
_PAIRS: Final = ("()", "[]", "{}")
_QUOTES: Final = "\"'`"
_CLOSERS: Final = frozenset(")]}" + _QUOTES)
_COMPARED_LINES: Final = 3
# Of the shorter text; from Tabby's dropDuplicated.
_ALLOWED_DISTANCE: Final = 0.05
# A long name with one letter more or less is the same name; a short one, or another digit, is another.
_LONG_WORD: Final = 5
_WORD: Final = re.compile(r"\w+")
# From Tabby's removeLineEndsWithRepetition: a piece of three characters six times, one of ten characters four times.
_SHORT_PIECE: Final = 3
_SHORT_TIMES: Final = 6
_LONG_PIECE: Final = 10
_LONG_TIMES: Final = 4
_SEPARATOR: Final = 2
# Characters of a line's end that are looked at.
_LOOKED_AT: Final = 400
_LINES: Final = 80
# The same line so often, or the same block of lines twice, directly behind each other.
_LINE_TIMES: Final = 3
_LEAST_LINE_LETTERS: Final = 3
_LEAST_BLOCK_LETTERS: Final = 12
_LARGEST_BLOCK: Final = 12


def duplicate_of_suffix(proposal: Proposal) -> bool:
    """Whether all that it inserts follows its place: on its line, or in whole lines."""
    # A line of its own is rarely meant twice, whatever it says.
    least = 1 if proposal.kind == "fill" else _LEAST_WRITTEN
    return any(
        start == end
        and new.strip() != ""
        and (
            _follows_on_line(proposal.text, start, new.strip())
            if LINE_END.search(new.strip(" \t")) is None
            else _follows_in_lines(proposal.text, start, new, least)
        )
        for start, end, new in proposal.edits
    )


def repeats_below(proposal: Proposal) -> bool:
    """Whether its first three filled lines equal those below, give or take a twentieth, or its last one the next."""
    return any(
        not proposal.text[start:end].strip() and _says_lines_below(proposal, start, end, new)
        for start, end, new in proposal.edits
    )


def repeats_above(proposal: Proposal) -> bool:
    """Whether its lines are those directly above, word for word and as many, or the brackets that one ends with."""
    return any(
        not proposal.text[start:end].strip() and _says_lines_above(proposal.text, start, end, new)
        for start, end, new in proposal.edits
    )


def repeats_itself(proposal: Proposal) -> bool:
    """Whether its last line ends in a loop, or the same lines come again directly behind themselves.

    Numbers and other literals may repeat: tables do.
    """
    return any(_ends_in_loop(new) or _repeats_lines(new) for _, _, new in proposal.edits)


def _letters(text: str) -> int:
    """How much a text says: letters of names and words; numbers, `None`, `true` and their like are none."""
    return sum(map(str.isalpha, _LITERAL.sub("", text)))


def _follows_on_line(text: str, at: int, said: str) -> bool:
    rest = rest_of(text, at).strip()
    if not rest.startswith(said):
        return False
    if said == rest and _letters(said) > 0:
        return True
    if set(said) <= _CLOSERS:
        head = head_of(text, at)
        quote = said[0]
        of_three = quote in _QUOTES and (head.endswith(quote) or rest.startswith(quote * 2))
        return not of_three and _balanced(head + rest)
    # A word that goes on: `print` before `printer` repeats nothing.
    goes_on = is_word(said[-1:]) and is_word(rest[len(said) :][:1])
    return _letters(said) >= _LEAST_WRITTEN and not goes_on


def _follows_in_lines(text: str, at: int, new: str, least: int) -> bool:
    """Whether the next lines are these; they may begin with this one's rest, or behind it."""
    if LINE_END.match(new.lstrip(" \t")) is None and head_of(text, at).strip() and not rest_of(text, at).strip():
        return False
    said, following = new.strip(), text[at : at + len(new) + 256].strip()
    behind = following[len(said) :]
    return following.startswith(said) and _letters(said) >= least and (not behind or LINE_END.match(behind) is not None)


def _balanced(line: str) -> bool:
    """Whether nothing on a line waits for another bracket or quote; counted, not parsed."""
    return all(line.count(opening) == line.count(closing) for opening, closing in _PAIRS) and all(
        line.count(quote) % 2 == 0 for quote in _QUOTES
    )


def _says_lines_below(proposal: Proposal, start: int, end: int, new: str) -> bool:
    if _letters(new) < _LEAST_WRITTEN:
        return False
    head, rest = head_of(proposal.text, start), rest_of(proposal.text, end)
    lines = split_lines(head + new)
    following = below(proposal.text, end)
    if new[:1] in {"\r", "\n"}:
        lines = lines[1:]
    if rest.strip():
        if lines[-1].strip():
            return False  # the last line goes on with what stands behind it
        following = [rest, *following]
    elif _leads_to_itself(lines, following):
        return True
    own = filled(lines, _COMPARED_LINES)
    others = filled(following, len(own))
    if not own or len(others) < len(own):
        return False
    first, second = "\n".join(own), "\n".join(others)
    if _letters(first) < _LEAST_IN_LINES:
        return False
    return first == second or (proposal.kind == "fill" and _alike(first, second))


def _leads_to_itself(lines: list[str], following: list[str]) -> bool:
    """Whether the last of several lines is the one behind them."""
    own = [line.rstrip() for line in lines if line.strip()]
    next_line = next((line.rstrip() for line in following if line.strip()), "")
    return len(own) > 1 and own[-1] == next_line and _letters(next_line) >= _LEAST_IN_LINES


def _alike(one: str, other: str) -> bool:
    allowed = int(_ALLOWED_DISTANCE * min(len(one), len(other)))
    if Levenshtein.distance(one, other, score_cutoff=allowed + 1) > max(1, allowed):
        return False
    words, others = _WORD.findall(one), _WORD.findall(other)
    return len(words) == len(others) and all(map(_same, words, others))


def _same(one: str, other: str) -> bool:
    """`value` and `values` are, `x1` and `x2` or `width` and `height` are not."""
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= _LONG_WORD and long.startswith(short) and long[len(short) :].isalpha())


def _says_lines_above(text: str, start: int, end: int, new: str) -> bool:
    if _letters(new) < _LEAST_WRITTEN or (new[-1:] not in {"\r", "\n"} and rest_of(text, end).strip()):
        return False
    head = head_of(text, start)
    own = filled(split_lines(head + new))
    others = above(text, start)
    # Where the cursor's line is done already, it is the first of those above.
    if head.strip() and new[:1] in {"\r", "\n"}:
        own, others = own[1:], [*others, head]
    if len(own) == 1 and own[0][0] in "([{" and others and others[-1].rstrip().endswith(own[0]):
        return True
    # A blank line between separates on purpose.
    others = [line.strip() for line in others[-len(own) :]]
    return bool(own) and own == others and _letters("".join(own)) >= _LEAST_IN_LINES


def _ends_in_loop(new: str) -> bool:
    line = new.rstrip()[-_LOOKED_AT:]
    line = line[max(line.rfind("\n"), line.rfind("\r")) + 1 :]
    for size in range(_SHORT_PIECE, (len(line) + _SEPARATOR) // _LONG_TIMES + 1):
        # The line's end is the same as what stands one piece before it; the last piece may lack its separator.
        same = size * ((_SHORT_TIMES if size < _LONG_PIECE else _LONG_TIMES) - 1) - _SEPARATOR
        if same + size <= len(line) and line[-same:] == line[-same - size : -size] and _letters(line[-size:]) > 0:
            return True
    return False


def _repeats_lines(new: str) -> bool:
    lines = [line for each in split_lines(new)[:_LINES] if (line := each.rstrip())]
    if len(lines) < _LINE_TIMES:
        return False
    for size in range(1, min(len(lines) // 2, _LARGEST_BLOCK) + 1):
        least, times = (_LEAST_LINE_LETTERS, _LINE_TIMES) if size == 1 else (_LEAST_BLOCK_LETTERS, 2)
        row = 0
        for at in range(len(lines) - size):
            row = row + 1 if lines[at] == lines[at + size] else 0
            if row >= size * (times - 1) and _letters("".join(lines[at - size + 1 : at + 1])) >= least:
                return True
    return False
