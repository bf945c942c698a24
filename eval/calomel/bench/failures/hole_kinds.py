"""Kinds of wrong answers to a hole: one rule each, tried in order; the first that holds names the failure.

From what is nearly right to what is wrong altogether, so that a kind says the least that would have to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from calomel.bench.failures.hole_case import HoleCase
from calomel.bench.failures.words import (
    foreign_words,
    names,
    net_brackets,
    pieces,
    place_of,
    visible,
    word_before,
    word_behind,
)

OTHER: Final = "other"

# A shorter text stands in every file.
_COPY_CHARACTERS: Final = 6
# So much of what stands behind, said again at the end of an answer that is not right before, is no chance.
_REPEATED_CHARACTERS: Final = 4
_STUTTER: Final = re.compile(r"\b(\w{2,})\b\W{0,2}\b\1\b|([^\w\s])\2{3,}|(\S.{1,20}?)\3\3")


def _silent(case: HoleCase) -> bool:
    return not visible(case.answer)


def _indentation(case: HoleCase) -> bool:
    return _flush(case, case.answer) == _flush(case, case.truth)


def _whitespace(case: HoleCase) -> bool:
    return visible(case.answer) == visible(case.truth)


def _repeats_suffix(case: HoleCase) -> bool:
    answer, behind = visible(case.answer), visible(case.suffix)
    truth = visible(case.truth)
    if not behind:
        return False
    if answer.startswith(truth):
        surplus = answer[len(truth) :]
        return bool(surplus) and behind.startswith(surplus)
    # Not where the truth ends like that, too.
    most = min(len(answer), len(behind))
    return any(
        answer.endswith(behind[:size]) and not truth.endswith(behind[:size])
        for size in range(_REPEATED_CHARACTERS, most + 1)
    )


def _end_not_found(case: HoleCase) -> bool:
    return case.cut


def _ended_early(case: HoleCase) -> bool:
    return visible(case.truth).startswith(visible(case.answer))


def _ended_late(case: HoleCase) -> bool:
    return visible(case.answer).startswith(visible(case.truth))


def _stutters(case: HoleCase) -> bool:
    return _STUTTER.search(case.answer) is not None and _STUTTER.search(case.truth) is None


def _wrong_length(case: HoleCase) -> bool:
    """One has all words and signs of the other in their order, and at most twice as many."""
    short, long = sorted((_whole_pieces(case, case.answer), _whole_pieces(case, case.truth)), key=len)
    if not short or len(long) > 2 * len(short) or len(short) == len(long):
        return False
    rest = iter(long)
    return all(piece in rest for piece in short)


def _copy_missed(case: HoleCase) -> bool:
    wanted = (word_before(case.prefix) + case.truth).strip()
    return len(visible(wanted)) >= _COPY_CHARACTERS and wanted in case.seen


def _wrong_language(case: HoleCase) -> bool:
    if place_of(case.prefix, case.language) != "code":
        return False
    return bool(foreign_words(case.language) & set(pieces(_whole(case, case.answer))) - set(pieces(case.seen)))


def _context_ignored(case: HoleCase) -> bool:
    known = names(case.seen, case.language)
    wanted, said = (names(_whole(case, text), case.language) for text in (case.truth, case.answer))
    return bool((wanted - said) & known) and bool(said - wanted - known)


def _unbalanced(case: HoleCase) -> bool:
    return net_brackets(case.answer) != net_brackets(case.truth)


def _wrong_word(case: HoleCase) -> bool:
    """The cursor stands in a word, and another word came of it."""
    if not word_before(case.prefix) or not word_behind(case.truth):
        return False
    first, wanted = (word_behind(text + case.suffix) for text in (case.answer, case.truth))
    return first != wanted


def _began_right(case: HoleCase) -> bool:
    wanted, said = visible(case.truth), visible(case.answer)
    common = next((at for at, (one, other) in enumerate(zip(wanted, said, strict=False)) if one != other), len(said))
    return 2 * common >= len(wanted)


# In the order in which they are tried, each with what a table says of it.
RULES: Final[Mapping[str, tuple[Callable[[HoleCase], bool], str]]] = {
    "silent": (_silent, "nothing visible was said"),
    "indentation": (_indentation, "right but for the indentation of lines"),
    "whitespace": (_whitespace, "right but for white space"),
    "repeats_suffix": (_repeats_suffix, "what stands behind the hole is said again"),
    "end_not_found": (_end_not_found, "goes on to the bound on tokens"),
    "ended_early": (_ended_early, "the truth's beginning, no more"),
    "ended_late": (_ended_late, "the truth and something behind it"),
    "stutters": (_stutters, "a word twice in a row, or the same again and again"),
    "wrong_length": (_wrong_length, "the right words in order, some missing or too many"),
    "copy_missed": (_copy_missed, "the truth stands in the visible text, word for word"),
    "wrong_language": (_wrong_language, "a keyword of another language"),
    "context_ignored": (_context_ignored, "a name of the visible text was wanted, one of nowhere was said"),
    "unbalanced": (_unbalanced, "brackets or quotes do not close as in the truth"),
    "wrong_word": (_wrong_word, "the word under the cursor became another one"),
    "began_right": (_began_right, "the first half of the truth is right"),
}


def hole_kind(case: HoleCase) -> str:
    """The first rule that holds for a wrong answer."""
    return next((name for name, (rule, _) in RULES.items() if rule(case)), OTHER)


def hole_kinds(case: HoleCase) -> tuple[str, ...]:
    """All rules that hold; `other` where none does."""
    return tuple(name for name, (rule, _) in RULES.items() if rule(case)) or (OTHER,)


def _flush(case: HoleCase, text: str) -> str:
    """The lines without indentation and spaces at their ends."""
    tail = case.suffix.split("\n", 1)[0]
    head = case.prefix.rsplit("\n", 1)[-1]
    return "\n".join(line.strip() for line in (head + text + tail).split("\n"))


def _whole(case: HoleCase, text: str) -> str:
    """With the rest of the words that the hole's ends stand in."""
    return word_before(case.prefix) + text + word_behind(case.suffix)


def _whole_pieces(case: HoleCase, text: str) -> list[str]:
    return pieces(_whole(case, text))
