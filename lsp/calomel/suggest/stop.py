"""Stop strings: where an answer ends by its text, and what of a growing answer may already be shown."""

from __future__ import annotations

from collections.abc import Sequence


def cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """`text` up to the first of `stops`, and whether one was found. An empty stop string never matches."""
    found = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return (text[: min(found)], True) if found else (text, False)


def settled(text: str, stops: Sequence[str]) -> str:
    """The part of a growing `text` that no stop string can still take back."""
    longest = 0
    for stop in stops:
        for size in range(min(len(stop) - 1, len(text)), longest, -1):
            if text.endswith(stop[:size]):
                longest = size
                break
    return text[: len(text) - longest]
