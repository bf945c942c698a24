"""How near a text comes to another one: chrF of the change, lines, what it undoes, and errors of syntax."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from typing import Final

from rapidfuzz.distance import LCSseq

from calomel.replay.events import shared_ends
from calomel.workspace.syntax import SyntaxTrees

ORDERS: Final = range(1, 7)
BETA: Final = 2.0
_SPACES: Final = re.compile(r"\s+")


def chrf(candidate: str, reference: str) -> float:
    """0 to 100: F-scores of all orders that either text has, averaged; 100 when both are empty."""
    scores = []
    for order in ORDERS:
        ours, theirs = _grams(candidate, order), _grams(reference, order)
        if ours or theirs:
            matches = (ours & theirs).total()
            scores.append(_f_score(_share(matches, ours.total()), _share(matches, theirs.total())))
    return 100.0 * sum(scores) / len(scores) if scores else 100.0


def changed_middle(before: str, after: str) -> str:
    """The lines of `after` between those that it shares with the beginning and the end of `before`."""
    old, new = _lines(before), _lines(after)
    start, end = shared_ends(old, new)
    return "\n".join(new[start : len(new) - end])


def suite_delta_chrf(before: str, actual: str, expected: str) -> float:
    """0 to 100: chrF of the changed lines alone, as the public suite of scenarios computes it.

    White space counts as it stands, and so does an empty line at the end. What was deleted without a trace in the
    changed lines is not seen.
    """
    return chrf(changed_middle(before, actual), changed_middle(before, expected))


def delta_chrf(before: str, actual: str, expected: str) -> float:
    """0 to 100: how well the n-grams that came and went agree with those that should have.

    Runs of white space count as one space. Precision and recall are averaged over the orders, an order in which
    neither side changed anything counts as right.
    """
    start, ours, theirs = (_SPACES.sub(" ", text) for text in (before, actual, expected))
    precision = recall = 0.0
    for order in ORDERS:
        made, wanted = _changes(start, ours, order), _changes(start, theirs, order)
        if not made and not wanted:
            precision, recall = precision + 1, recall + 1
            continue
        matches = (made & wanted).total()
        precision += _share(matches, made.total())
        recall += _share(matches, wanted.total())
    return 100.0 * _f_score(precision / len(ORDERS), recall / len(ORDERS))


def _changes(before: str, after: str, order: int) -> Counter[tuple[bool, str]]:
    """N-grams that came (True) and that went (False), how often each."""
    old, new = _grams(before, order), _grams(after, order)
    came = {(True, gram): count for gram, count in (new - old).items()}
    return Counter(came | {(False, gram): count for gram, count in (old - new).items()})


def _grams(text: str, order: int) -> Counter[str]:
    return Counter(text[at : at + order] for at in range(len(text) - order + 1))


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _f_score(precision: float, recall: float) -> float:
    weighted = BETA**2 * precision + recall
    return (1 + BETA**2) * precision * recall / weighted if weighted else 0.0


def line_f1(before: str, actual: str, expected: str) -> float:
    """0 to 1: multisets of removed and added lines, compared; line ends do not count. 1 when neither changed any."""
    ours, theirs = _changed(before, actual), _changed(before, expected)
    both, missed = (ours & theirs).total(), (ours - theirs).total() + (theirs - ours).total()
    return 2 * both / (2 * both + missed) if both or missed else 1.0


def is_exact(actual: str, expected: str) -> bool:
    """Whether the texts are the same, but for line ends and one at the end."""
    return _same_ends(actual) == _same_ends(expected)


def position_error(before: str, actual: str, expected: str) -> int | None:
    """Lines between the first line that the suggestion changes and the first that the person changed.

    None when either of them changes nothing.
    """
    ours, theirs = _first_change(before, actual), _first_change(before, expected)
    return None if ours is None or theirs is None else abs(ours - theirs)


def _changed(before: str, after: str) -> Counter[tuple[str, str]]:
    old, new = Counter(before.splitlines()), Counter(after.splitlines())
    removed = {("-", line): count for line, count in (old - new).items()}
    return Counter(removed | {("+", line): count for line, count in (new - old).items()})


def _first_change(before: str, after: str) -> int | None:
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return None
    return shared_ends(old, new)[0]


def _same_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


_TOKEN: Final = re.compile(r"\w+|\s|[^\w\s]")


def _hunks(before: str, after: str) -> list[tuple[int, int, str]]:
    """The edits from one text to the other by words: start and end in `before`, and the new text."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    # Ends that are equal make up most of a file, and the comparison's time grows with the square of the rest.
    head, tail = shared_ends(old, new)
    starts = [0]
    for token in old:
        starts.append(starts[-1] + len(token))
    changed = new[head : len(new) - tail]
    matcher = difflib.SequenceMatcher(None, old[head : len(old) - tail], changed, autojunk=False)
    return [
        (starts[head + first], starts[head + last], "".join(changed[new_first:new_last]))
        for tag, first, last, new_first, new_last in matcher.get_opcodes()
        if tag != "equal"
    ]


def reversal_ratio(before: str, now: str, predicted: str) -> float:
    """0 to 1: of all characters that `predicted`, made of `now`, deletes and inserts, the share that undoes.

    Undone is what made `now` of `before`: characters deleted of those that came, and characters brought back where they
    went. Continuing a word undoes nothing: `epr` to `eprintln!()` inserts nine characters.
    """
    came, gone = _traces(before, now)
    undone = total = 0
    for start, end, text in _bare_hunks(now, predicted):
        total += (end - start) + len(text)
        undone += sum(max(0, min(end, last) - max(start, first)) for first, last in came)
        lost = "".join(old for place, old in gone if start <= place <= end)
        undone += int(LCSseq.similarity(lost, text))
    return undone / total if total else 0.0


def _traces(before: str, now: str) -> tuple[list[tuple[int, int]], list[tuple[int, str]]]:
    """What the edit left in `now`: ranges that came, and places where text went, with that text."""
    came: list[tuple[int, int]] = []
    gone: list[tuple[int, str]] = []
    moved = 0
    for start, end, text in _bare_hunks(before, now):
        place = start + moved
        if text:
            came.append((place, place + len(text)))
        if end > start:
            gone.append((place, before[start:end]))
        moved += len(text) - (end - start)
    return came, gone


def _bare_hunks(before: str, after: str) -> list[tuple[int, int, str]]:
    """Hunks without what both sides share: common ends, and an old text that the new one merely fills up."""
    bare: list[tuple[int, int, str]] = []
    for first, last, text in _hunks(before, after):
        head, tail = shared_ends(before[first:last], text)
        start, end, new = first + head, last - tail, text[head : len(text) - tail]
        pieces = _fills_up(before[start:end], new) if start < end and len(new) > end - start else None
        if pieces is None:
            bare.append((start, end, new))
        else:
            bare += [(start + at, start + at, piece) for at, piece in pieces]
    return [hunk for hunk in bare if hunk[0] < hunk[1] or hunk[2]]


def _fills_up(old: str, new: str) -> list[tuple[int, str]] | None:
    """Insertions that make `new` of `old`; None when characters of `old` are missing."""
    insertions: list[tuple[int, str]] = []
    at = 0
    for index, character in enumerate(old):
        found = new.find(character, at)
        if found < 0:
            return None
        if found > at:
            insertions.append((index, new[at:found]))
        at = found + 1
    return [*insertions, (len(old), new[at:])] if at < len(new) else insertions


# A replay has time: this is a limit against one that never ends, not a budget of the editor's.
_SECONDS = 2.0


def parse_error_delta(before: str, after: str, language_id: str) -> int | None:
    """Errors of the whole text after a suggestion, less those before it; None without a grammar."""
    trees = SyntaxTrees()
    earlier = trees.error_count(before, language_id, seconds=_SECONDS)
    later = trees.error_count(after, language_id, seconds=_SECONDS)
    return None if earlier is None or later is None else later - earlier
