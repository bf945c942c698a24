"""Which places of a scene are asked about."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from typing import Final

from calomel.prompts.region import line_start, region_around
from calomel.training.edits.scene import REGION, Focus, is_silent
from calomel.training.edits.story import Change

MOST: Final = 6
# Characters around a place in which another one is near.
_NEAR: Final = 1600
_WORD: Final = re.compile(r"[^\W\d]\w{2,}")
_TRIES: Final = 12
# Of the places that are done, how many are asked about; of the others, how many share a word with the change.
_DONE_SHARE: Final = 0.5
_SAME_WORD_SHARE: Final = 0.5


def asked(
    text: str,
    changes: Sequence[Change],
    wanted: Iterable[Focus],
    near: Iterable[int],
    silence: str,
    count: int,
    rng: random.Random,
) -> tuple[Focus, ...]:
    """`wanted` in its order, then up to `count` places where nothing is to change; every region once.

    Args:
        text: of the scene.
        changes: still to come, in its coordinates.
        wanted: places to ask about; a silent one is left out where something is to change.
        near: offsets worth a silent question, best first: places that are done.
        silence: kind of the silent places.
        count: of silent places besides those in `wanted`.
        rng: draws them.
    """
    found: list[Focus] = []
    regions: list[tuple[int, int]] = []

    def add(focus: Focus) -> bool:
        start, end = region_around(text, focus.offset, REGION)
        if any((start < stop and begin < end) or (start, end) == (begin, stop) for begin, stop in regions):
            return False
        if focus.silent and not is_silent(text, changes, focus.offset):
            return False
        found.append(focus)
        regions.append((start, end))
        return True

    for focus in wanted:
        if len(found) < MOST:
            add(focus)
    done = [line_start(text, offset) for offset in near]
    anchors = [focus.offset for focus in found] or done or [0]
    left = min(count, MOST - len(found))
    for offset in done:
        if left and rng.random() < _DONE_SHARE:
            left -= add(Focus(offset, silence, cursor=False))
    for _ in range(_TRIES):
        if left:
            left -= add(Focus(_nearby(text, rng.choice(anchors), rng), silence, cursor=False))
    return tuple(found)


def _nearby(text: str, anchor: int, rng: random.Random) -> int:
    """The start of some line near `anchor`; often one that shares a word with its line."""
    low, high = max(0, anchor - _NEAR), min(len(text), anchor + _NEAR)
    if rng.random() < _SAME_WORD_SHARE:
        words = _WORD.findall(text, line_start(text, anchor), anchor + 80)
        if words:
            same = [match.start() for match in re.finditer(rf"\b{rng.choice(words)}\b", text[low:high])]
            if same:
                return line_start(text, low + rng.choice(same))
    return line_start(text, rng.randint(low, high))
