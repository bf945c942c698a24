"""A suggestion that says what stands right behind the cursor already."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.around import LINE_END, head_of, rest_of
from calomel.selectivity.filters.letters import letters
from calomel.selectivity.proposal import Proposal

# Fewer letters may well stand twice: `a, a`. A line of its own is rarely meant twice, whatever it says.
_LEAST_LETTERS: Final = 3
_PAIRS: Final = ("()", "[]", "{}")
_QUOTES: Final = "\"'`"
_CLOSERS: Final = frozenset(")]}" + _QUOTES)


def duplicate_of_suffix(proposal: Proposal) -> bool:
    """Whether all that it inserts follows its place: on its line, or in whole lines."""
    least = 1 if proposal.kind == "fill" else _LEAST_LETTERS
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


def _follows_on_line(text: str, at: int, said: str) -> bool:
    rest = rest_of(text, at).strip()
    if not rest.startswith(said):
        return False
    if said == rest and letters(said) > 0:
        return True
    if set(said) <= _CLOSERS:
        head = head_of(text, at)
        quote = said[0]
        of_three = quote in _QUOTES and (head.endswith(quote) or rest.startswith(quote * 2))
        return not of_three and _balanced(head + rest)
    return letters(said) >= _LEAST_LETTERS and not _continues(said, rest[len(said) :])


def _follows_in_lines(text: str, at: int, new: str, least: int) -> bool:
    """Whether the next lines are these; they may begin with this one's rest, or behind it."""
    if LINE_END.match(new.lstrip(" \t")) is None and head_of(text, at).strip() and not rest_of(text, at).strip():
        return False
    said, following = new.strip(), text[at : at + len(new) + 256].strip()
    behind = following[len(said) :]
    return following.startswith(said) and letters(said) >= least and (not behind or LINE_END.match(behind) is not None)


def _balanced(line: str) -> bool:
    """Whether nothing on a line waits for another bracket or quote; counted, not parsed."""
    return all(line.count(opening) == line.count(closing) for opening, closing in _PAIRS) and all(
        line.count(quote) % 2 == 0 for quote in _QUOTES
    )


def _continues(said: str, behind: str) -> bool:
    """Whether a word goes on: `print` before `printer` repeats nothing."""
    return _is_word(said[-1:]) and _is_word(behind[:1])


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
