"""Whether a suggestion undoes what the person has just done: the complaint that is heard most."""

from __future__ import annotations

from typing import NamedTuple

from calomel.replay.metrics.words import common_characters, hunks


class Reversal(NamedTuple):
    """Characters of a suggestion that undo, and all characters that it deletes and inserts."""

    reversed: int
    total: int

    @property
    def ratio(self) -> float:
        """0 for a suggestion that undoes nothing, 1 for one that does nothing else."""
        return self.reversed / self.total if self.total else 0.0


def reversal(before: str, now: str, predicted: str) -> Reversal:
    """What `predicted`, made of `now`, undoes of the edit that made `now` of `before`.

    Counted are characters it deletes of those that came, and characters it brings back where they went. Continuing a
    word undoes nothing: `epr` to `eprintln!()` inserts nine characters.
    """
    came, gone = _traces(before, now)
    undone = total = 0
    for start, end, text in _bare_hunks(now, predicted):
        total += (end - start) + len(text)
        undone += sum(max(0, min(end, last) - max(start, first)) for first, last in came)
        lost = "".join(old for place, old in gone if start <= place <= end)
        undone += common_characters(lost, text)
    return Reversal(undone, total)


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
    for first, last, text in hunks(before, after):
        start, end, new = _trim(before, first, last, text)
        pieces = _fills_up(before[start:end], new) if start < end and len(new) > end - start else None
        if pieces is None:
            bare.append((start, end, new))
        else:
            bare += [(start + at, start + at, piece) for at, piece in pieces]
    return [hunk for hunk in bare if hunk[0] < hunk[1] or hunk[2]]


def _trim(before: str, start: int, end: int, new: str) -> tuple[int, int, str]:
    while start < end and new and before[start] == new[0]:
        start, new = start + 1, new[1:]
    while start < end and new and before[end - 1] == new[-1]:
        end, new = end - 1, new[:-1]
    return start, end, new


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
